//! The active rules with their matches, the problems of rule files, and the playground.

use std::path::Path;

use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::alerts::DoneQuery;
use super::{ActionResult, RequestVisitor, render_page, static_frame};
use crate::http::HttpDeps;
use crate::http::access::{Visitor, forms::FormFields};
use crate::http::rule_view::{self, RuleView};
use crate::ui::page::{Section, href};
use crate::ui::trial::{CodeLine, TrialView, code_lines};
use daemon::playground::{self, MAX_TEXT_BYTES, Trial};
use daemon::readiness::RuleLoad;
use model::{Diagnostic, DiagnosticLevel, SourceText, Timestamp};
use tools::ruletest::TestOutcome;

/// The initial text of the playground if the URL names no rule.
const EXAMPLE: &str = r#"[[rule]]
alert  = "BigCliffAhead"
on     = "unlock"
within = ["30d", "7d", "1d"]
when   = "cliffValue >= 5000000 || valueToMarketCap >= 2"
labels = { severity = "warning" }

[rule.annotations]
summary = "{{ token.symbol }}: {{ cliffValue | usd }} unlocks {{ when }}"
"#;

#[derive(Serialize)]
struct RulesPage {
    now: Timestamp,
    rules: Vec<RuleRow>,
    never: usize,
    /// The error of the latest load. The last valid rules stay active.
    problem: Option<String>,
    bad_files: Vec<BadFile>,
    load_at: Option<Timestamp>,
    tests: Option<Vec<TestRow>>,
    failed: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RuleRow {
    #[serde(flatten)]
    view: RuleView,
    playground: String,
    alerts: String,
}

/// A rule file with its errors, each at its line.
#[derive(Serialize)]
struct BadFile {
    name: String,
    lines: Vec<CodeLine>,
}

#[derive(Serialize)]
struct TestRow {
    name: String,
    place: String,
    is_passed: bool,
    failures: Vec<String>,
}

impl TestRow {
    fn of(outcome: &TestOutcome) -> Self {
        let failure = |failure: &tools::ruletest::TestFailure| {
            format!("{} (line {})\n{}", failure.place, failure.line, failure.lines.join("\n"))
        };
        Self {
            name: outcome.name.clone(),
            place: format!("{}:{}", file_name(&outcome.file), outcome.line),
            is_passed: outcome.is_passed(),
            failures: outcome.failures.iter().map(failure).collect(),
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The number of lines shown before and after an error.
const CONTEXT_LINES: usize = 3;

fn bad_files(load: &RuleLoad) -> Vec<BadFile> {
    let of = |source: &SourceText| {
        let diagnostics: Vec<Diagnostic> = load.diagnostics.iter().filter(|found| found.file == source.file).cloned().collect();
        let is_bad = diagnostics.iter().any(|found| found.severity == DiagnosticLevel::Error);
        is_bad.then(|| BadFile {
            name: source.file.display().to_string(),
            lines: code_lines(&source.text, &diagnostics, Some(CONTEXT_LINES)),
        })
    };
    load.texts.iter().filter_map(of).collect()
}

pub(super) async fn list(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Query(DoneQuery { done }): Query<DoneQuery>,
) -> ActionResult {
    let now = deps.app.clock.now();
    let views = rule_view::rule_views(&deps).await?;
    let load = deps.app.readiness.last_load();
    let tests = load.as_ref().and_then(|load| load.outcomes.as_ref()).map(|all| all.iter().map(TestRow::of).collect::<Vec<_>>());
    let row = |view: RuleView| RuleRow {
        playground: href("/rules/playground", &[("rule", &view.id)]),
        alerts: href("/alerts", &[("rule", &view.name)]),
        view,
    };
    let page = RulesPage {
        now,
        never: views.iter().filter(|view| view.last_match.is_none()).count(),
        rules: views.into_iter().map(row).collect(),
        problem: deps.app.readiness.rules().problem,
        bad_files: load.as_ref().map(|load| bad_files(load)).unwrap_or_default(),
        load_at: load.as_ref().map(|load| load.at),
        failed: tests.as_ref().map_or(0, |tests: &Vec<TestRow>| tests.iter().filter(|test| !test.is_passed).count()),
        tests,
    };
    Ok(render_page("rules.html", &static_frame(Section::Rules, &visitor, now, &done), &page))
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PlaygroundQuery {
    rule: String,
}

#[derive(Serialize)]
struct PlaygroundPage<'a> {
    now: Timestamp,
    text: &'a str,
    rules: Vec<String>,
    /// The rule whose text was copied into the playground. Empty if unknown.
    copied: &'a str,
    /// The effect of the copied rule in one sentence. `None` without such a rule.
    sentence: Option<String>,
    problem: Option<&'a str>,
    trial: Option<TrialView>,
}

/// `GET /rules/playground`. `?rule=NAME` copies the text of a rule.
pub(super) async fn playground(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Query(PlaygroundQuery { rule }): Query<PlaygroundQuery>,
) -> ActionResult {
    let copied = rule_view::rule_text(&deps, &rule);
    let missing = format!("No active rule is named {}.", model::phrase::name(&rule));
    let problem = (copied.is_none() && !rule.is_empty()).then_some(missing.as_str());
    Ok(page(&deps, &visitor, RuleDraft { text: copied.as_deref().unwrap_or(EXAMPLE), copied: &rule }, problem, None))
}

/// `POST /rules/playground`: runs a trial. Nothing is saved.
pub(super) async fn run_trial(
    State(deps): State<HttpDeps>,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    let text = fields.raw("text").replace("\r\n", "\n");
    let draft = RuleDraft { text: &text, copied: fields.text("copied") };
    if text.len() > MAX_TEXT_BYTES {
        let problem = format!("The text is longer than {} KiB.", MAX_TEXT_BYTES / 1024);
        let page = page(&deps, &visitor, RuleDraft { text: "", ..draft }, Some(&problem), None);
        return Ok((StatusCode::PAYLOAD_TOO_LARGE, page).into_response());
    }
    let Some(permit) = deps.playground.try_acquire() else {
        let problem = "Another trial is running. Try again in a few seconds.";
        let page = page(&deps, &visitor, draft, Some(problem), None);
        return Ok((StatusCode::SERVICE_UNAVAILABLE, page).into_response());
    };
    let (live, now) = (deps.app.live.load_full(), deps.app.clock.now());
    let watch = visitor.watch(&live.watch);
    let trial: Trial = playground::try_out(&deps.app.store, live, watch, text.clone(), now, permit).await?;
    Ok(page(&deps, &visitor, draft, None, Some(TrialView::of(&trial))))
}

/// The text of a trial, and the rule that it was copied from.
#[derive(Clone, Copy)]
struct RuleDraft<'a> {
    text: &'a str,
    copied: &'a str,
}

fn page(deps: &HttpDeps, visitor: &Visitor, draft: RuleDraft<'_>, problem: Option<&str>, trial: Option<TrialView>) -> Response {
    let now = deps.app.clock.now();
    let rules = deps.app.live.load().active.rules.rules.iter().map(|rule| rule.id.to_string()).collect();
    let sentence = rule_view::rule_sentence(deps, draft.copied);
    let page = PlaygroundPage { now, text: draft.text, rules, copied: draft.copied, sentence, problem, trial };
    render_page("playground.html", &static_frame(Section::Rules, visitor, now, ""), &page)
}
