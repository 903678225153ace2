//! Rules: those at work with what they did, what is wrong with their files, and the playground.

use std::path::Path;

use axum::extract::{Extension, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::{Asked, DeskResult, shown, still_frame};
use crate::http::HttpDeps;
use crate::http::access::{Visitor, forms::FormFields};
use crate::http::rule_list::{self, RuleView};
use crate::playground::{self, MAX_TEXT, Trial};
use crate::readiness::RuleLoad;
use crate::ui::page::{Section, href};
use crate::ui::trial::{CodeLine, TrialView, code_lines};
use model::{Diagnostic, Severity, SourceText, Timestamp};
use tools::ruletest::TestOutcome;

/// What the playground begins with where no rule is named.
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
    /// What is wrong with the files as they are now; the rules before them are at work.
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

/// A file with problems, each in its place.
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

/// Lines around a problem that are shown of a file.
const AROUND: usize = 3;

fn bad_files(load: &RuleLoad) -> Vec<BadFile> {
    let of = |source: &SourceText| {
        let own: Vec<Diagnostic> = load.diagnostics.iter().filter(|found| found.file == source.file).cloned().collect();
        let is_bad = own.iter().any(|found| found.severity == Severity::Error);
        is_bad.then(|| BadFile { name: source.file.display().to_string(), lines: code_lines(&source.text, &own, Some(AROUND)) })
    };
    load.texts.iter().filter_map(of).collect()
}

pub(super) async fn list(State(deps): State<HttpDeps>, Extension(visitor): Asked) -> DeskResult {
    let now = deps.clock.now();
    let views = rule_list::views(&deps).await?;
    let load = deps.readiness.last_load();
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
        problem: deps.readiness.rules().problem,
        bad_files: load.as_ref().map(|load| bad_files(load)).unwrap_or_default(),
        load_at: load.as_ref().map(|load| load.at),
        failed: tests.as_ref().map_or(0, |tests: &Vec<TestRow>| tests.iter().filter(|test| !test.is_passed).count()),
        tests,
    };
    Ok(shown("rules.html", &still_frame(Section::Rules, &visitor, now, ""), &page))
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
    /// The rule that the text began as a copy of; empty where that is not known.
    copied: &'a str,
    problem: Option<&'a str>,
    trial: Option<TrialView>,
}

/// `GET /rules/playground`, with a copy of the rule that is named.
pub(super) async fn playground(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Query(PlaygroundQuery { rule }): Query<PlaygroundQuery>,
) -> DeskResult {
    let copied = rule_list::text_of(&deps, &rule);
    let missing = format!("No rule at work is called {}.", model::format::name(&rule));
    let problem = (copied.is_none() && !rule.is_empty()).then_some(missing.as_str());
    Ok(page(&deps, &visitor, RuleDraft { text: copied.as_deref().unwrap_or(EXAMPLE), copied: &rule }, problem, None))
}

/// `POST /rules/playground`: tries the text. Nothing is saved.
pub(super) async fn try_out(
    State(deps): State<HttpDeps>,
    Extension(visitor): Asked,
    Extension(fields): Extension<FormFields>,
) -> DeskResult {
    let text = fields.whole("text").replace("\r\n", "\n");
    let draft = RuleDraft { text: &text, copied: fields.text("copied") };
    if text.len() > MAX_TEXT {
        let problem = format!("The text is longer than {} KiB.", MAX_TEXT / 1024);
        let page = page(&deps, &visitor, RuleDraft { text: "", ..draft }, Some(&problem), None);
        return Ok((StatusCode::PAYLOAD_TOO_LARGE, page).into_response());
    }
    let Some(turn) = deps.playground.turn() else {
        let problem = "Another rule is being tried at this moment. Try again in a few seconds.";
        let page = page(&deps, &visitor, draft, Some(problem), None);
        return Ok((StatusCode::SERVICE_UNAVAILABLE, page).into_response());
    };
    let trial: Trial = playground::try_out(&deps.store, deps.live.load_full(), text.clone(), deps.clock.now(), turn).await?;
    Ok(page(&deps, &visitor, draft, None, Some(TrialView::of(&trial))))
}

/// A text to be tried, and the rule that it began as a copy of.
#[derive(Clone, Copy)]
struct RuleDraft<'a> {
    text: &'a str,
    copied: &'a str,
}

fn page(deps: &HttpDeps, visitor: &Visitor, draft: RuleDraft<'_>, problem: Option<&str>, trial: Option<TrialView>) -> Response {
    let now = deps.clock.now();
    let rules = deps.live.load().active.rules.rules.iter().map(|rule| rule.id.to_string()).collect();
    let page = PlaygroundPage { now, text: draft.text, rules, copied: draft.copied, problem, trial };
    shown("playground.html", &still_frame(Section::Rules, visitor, now, ""), &page)
}
