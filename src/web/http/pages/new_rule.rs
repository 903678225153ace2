//! The form for a new rule: the questions of the command `new rule`, the text to copy, and, with `[http] edit_rules`, the button that
//! saves it.

use axum::extract::{Extension, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::{ActionResult, RequestVisitor, render_page, static_frame};
use crate::http::HttpDeps;
use crate::http::access::{ActDeps, Visitor, forms::FormFields, login::redirect};
use crate::http::error::WebError;
use crate::http::error_code::ErrorCode;
use crate::ui::page::Section;
use crate::ui::trial::{CodeLine, code_lines};
use daemon::live::LiveConfig;
use daemon::rule_edit::{self, PreparedRule};
use daemon::token_names::{FindTokenError, find_token};
use model::config::Span;
use model::{EventType, LoggedAction, Recipient, SourceText, phrase};
use tools::new_rule::{self, RuleOption, RuleRequest, RuleTopic, parse_money};
use tools::ruletest::TestOutcome;

const SEVERITIES: [&str; 3] = ["info", "warning", "critical"];
/// The valid numbers of days without a buyback.
const DAYS: std::ops::RangeInclusive<u32> = 1..=3650;
const MAX_TOKENS: usize = 50;
const MAX_RULE_NAME: usize = 80;

/// The fields of the form, as typed.
#[derive(Clone, Debug, Default, Serialize)]
struct NewRuleForm {
    about: &'static str,
    tokens: String,
    above: String,
    percent: String,
    recipients: Vec<String>,
    within: String,
    days: String,
    window: String,
    severity: String,
    name: String,
}

impl NewRuleForm {
    /// Reads the fields. Without a name, or with the default name of another kind of alert, the rule gets one that is not taken.
    fn of(fields: &FormFields, rules: &[SourceText]) -> Self {
        let text = |name: &str| fields.text(name).to_owned();
        let topic = RuleTopic::parse(fields.text("about")).unwrap_or_default();
        let or = |name: &str, usual: &str| if fields.text(name).is_empty() { usual.to_owned() } else { text(name) };
        Self {
            about: topic.word(),
            tokens: text("tokens"),
            above: text("above"),
            percent: text("percent"),
            recipients: fields.all("recipient").map(str::to_owned).collect(),
            within: or("within", "30d, 7d, 1d"),
            days: or("days", "35"),
            window: or("window", "7d"),
            severity: or("severity", "warning"),
            name: if is_usual(fields.text("name"), topic) { new_rule::free_name(topic, rules) } else { text("name") },
        }
    }

    fn topic(&self) -> RuleTopic {
        RuleTopic::parse(self.about).unwrap_or_default()
    }

    /// Reads the fields that the kind of alert has. Each error names its field.
    async fn request(&self, deps: &HttpDeps, live: &LiveConfig) -> Result<Result<RuleRequest, String>, WebError> {
        let tokens = match self.slugs(deps).await? {
            Ok(tokens) => tokens,
            Err(problem) => return Ok(Err(problem)),
        };
        Ok(self.read(tokens, live))
    }

    fn read(&self, tokens: Vec<String>, live: &LiveConfig) -> Result<RuleRequest, String> {
        let about = self.topic();
        if self.name.len() > MAX_RULE_NAME || !new_rule::is_valid_name(&self.name) {
            return Err("The name can have letters, digits, “-”, and “_”.".to_owned());
        }
        if !SEVERITIES.contains(&self.severity.as_str()) {
            return Err(format!("The severity must be one of {}.", SEVERITIES.join(", ")));
        }
        let above = match self.above.as_str() {
            text if about.has(RuleOption::Above) && !text.is_empty() => {
                Some(parse_money(text).map_err(|problem| format!("Minimum value: {problem}"))?)
            }
            _ => None,
        };
        let is_cliffs = about == RuleTopic::Cliffs;
        let percent = match self.percent.trim_end_matches(['%', ' ']) {
            text if is_cliffs && !text.is_empty() => Some(parse_percent(text)?),
            _ => None,
        };
        let span = |text: &str, name: &str| {
            text.trim().parse::<Span>().map(|span| span.to_string()).map_err(|problem| format!("{name}: {problem}"))
        };
        let within = self.within.split(',').filter(|text| !text.trim().is_empty()).map(|text| span(text, "Lead times"));
        let within = if about.has(RuleOption::Within) { within.collect::<Result<Vec<_>, _>>()? } else { Vec::new() };
        let days = if about.has(RuleOption::Days) {
            let days = self.days.parse::<u32>().ok().filter(|days| DAYS.contains(days));
            days.ok_or_else(|| format!("Days: enter a whole number from {} to {}.", DAYS.start(), DAYS.end()))?
        } else {
            *DAYS.start()
        };
        let window = if about.has(RuleOption::Window) { span(&self.window, "Window")? } else { String::new() };
        let recipients =
            Recipient::ALL.into_iter().filter(|of| is_cliffs && self.recipients.iter().any(|name| name == of.class()));
        Ok(RuleRequest {
            about,
            name: self.name.clone(),
            sample: new_rule::sample(&tokens, &live.config.watch.groups)?,
            tokens,
            above,
            percent,
            recipients: recipients.collect(),
            within,
            days,
            window,
            severity: self.severity.clone(),
        })
    }

    /// Returns the tokens with slugs in place of tickers. Groups and globs stay.
    async fn slugs(&self, deps: &HttpDeps) -> Result<Result<Vec<String>, String>, WebError> {
        let mut slugs = Vec::new();
        for text in self.tokens.split(',').map(str::trim).filter(|text| !text.is_empty()).take(MAX_TOKENS) {
            if text.starts_with('@') || text.contains(['*', '?', '[', '{']) {
                slugs.push(text.to_owned());
                continue;
            }
            match find_token(&deps.app.store, text).await {
                Ok(id) => slugs.push(id.to_string()),
                Err(FindTokenError::Name(error)) => return Ok(Err(phrase::capitalized(&error.to_string()))),
                Err(FindTokenError::Store(error)) => return Err(error.into()),
            }
        }
        Ok(Ok(slugs))
    }
}

/// Parses a share of market cap. A token can unlock more than its market cap.
fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| percent.is_finite() && *percent >= 0.0);
    percent.ok_or_else(|| "Minimum share of market cap: enter a percentage, such as 2.5.".to_owned())
}

/// Returns whether a name is empty, or the default name of a kind of alert other than `topic`.
fn is_usual(name: &str, topic: RuleTopic) -> bool {
    let is_of = |of: RuleTopic| name.strip_prefix(of.name()).is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit()));
    name.is_empty() || RuleTopic::ALL.into_iter().any(|of| of != topic && is_of(of))
}

#[derive(Serialize)]
struct NewRulePage {
    draft: NewRuleForm,
    topics: Vec<(&'static str, &'static str)>,
    /// The fields that the kind of alert has.
    has: FieldsOfTopic,
    recipients: Vec<RecipientChoice>,
    severities: [&'static str; 3],
    groups: Vec<String>,
    /// The default minimum value as text.
    usual: Option<String>,
    problem: Option<String>,
    made: Option<MadeRule>,
    can_save: bool,
}

#[derive(Serialize)]
struct FieldsOfTopic {
    above: bool,
    is_cliffs: bool,
    days: bool,
    window: bool,
}

#[derive(Serialize)]
struct RecipientChoice {
    value: &'static str,
    name: &'static str,
    about: &'static str,
    is_chosen: bool,
}

/// A rule with its checks.
#[derive(Serialize)]
struct MadeRule {
    text: String,
    /// The effect of the rule in one sentence. `None` if it has errors.
    sentence: Option<String>,
    test: String,
    file: String,
    test_file: String,
    /// The lines of the rule with problems, if it has any.
    lines: Vec<CodeLine>,
    is_valid: bool,
    /// The failures of its test.
    failures: Vec<String>,
    /// The lines that a save changes, each with its sign.
    difference: Vec<(char, String)>,
    is_new: bool,
}

impl MadeRule {
    fn of(rule: &PreparedRule) -> Self {
        let shown = |path: &std::path::Path| path.strip_prefix(".").unwrap_or(path).display().to_string();
        let lines = |outcome: &TestOutcome| outcome.failures.iter().flat_map(|failure| failure.lines.clone()).collect::<Vec<_>>();
        Self {
            text: rule.rule.clone(),
            sentence: rule.sentence.clone(),
            test: rule.test.text.clone(),
            file: shown(&rule.file.path),
            test_file: shown(&rule.test.path),
            lines: if rule.diagnostics.is_empty() { Vec::new() } else { code_lines(&rule.rule, &rule.diagnostics, None) },
            is_valid: rule.is_valid(),
            failures: rule.outcomes.iter().flat_map(lines).collect(),
            difference: rule.file.difference(),
            is_new: rule.file.before.is_none(),
        }
    }
}

/// `GET /rules/new`. The fields are in the address, so that a form can be sent as a link.
pub(super) async fn show(State(deps): State<HttpDeps>, Extension(visitor): RequestVisitor, uri: Uri) -> ActionResult {
    let fields = FormFields::parse(uri.query().unwrap_or_default().as_bytes());
    let draft = NewRuleForm::of(&fields, &deps.app.readiness.texts());
    let prepared = prepare(&deps, &draft).await?;
    page(&deps, &visitor, draft, prepared)
}

/// `POST /rules/new`: saves the rule and reloads. If the reload fails, the files are restored.
pub(super) async fn save(
    ActDeps(deps): ActDeps,
    Extension(visitor): RequestVisitor,
    Extension(fields): Extension<FormFields>,
) -> ActionResult {
    if !deps.app.live.load().config.http.edit_rules {
        return Err(WebError::new(ErrorCode::NotFound, "rules cannot be saved on the pages: set edit_rules = true in [http]"));
    }
    let draft = NewRuleForm::of(&fields, &deps.app.readiness.texts());
    let author = fields.text("author").chars().take(200).collect::<String>();
    let prepared = match prepare(&deps, &draft).await? {
        Ok(_) if author.is_empty() => Err("Nothing was saved: enter your name.".to_owned()),
        prepared => prepared,
    };
    let rule = match prepared {
        Ok(rule) => rule,
        Err(problem) => return page(&deps, &visitor, draft, Err(problem)),
    };
    let saved = {
        let (rule, author, now) = (rule.clone(), author.clone(), deps.app.clock.now());
        tokio::task::spawn_blocking(move || rule.save(&author, now).map_err(|error| error.to_string())).await
    };
    if let Err(problem) = saved.unwrap_or_else(|_| Err("the log shows the reason".to_owned())) {
        return page(&deps, &visitor, draft, Err(format!("Nothing was saved: {problem}.")));
    }
    if let Err(problem) = (deps.app.reload)().await {
        tokio::task::spawn_blocking(move || rule.withdraw()).await.ok();
        tracing::warn!(rule = draft.name, author, "a rule that was made on the pages was withdrawn, because the reload failed");
        return page(&deps, &visitor, draft, Err(format!("Nothing was saved, because the reload failed: {problem}")));
    }
    let action = LoggedAction::new(draft.name.as_str(), Some(rule.file.path.display().to_string()));
    deps.app.store.log_action(EventType::RuleSaved, action, deps.app.clock.now()).await?;
    tracing::info!(rule = draft.name, file = %rule.file.path.display(), author, "rule saved on the pages");
    Ok(redirect("/rules?done=rule-saved"))
}

/// Makes and checks the rule of a draft, or returns the problem to show in the form.
async fn prepare(deps: &HttpDeps, draft: &NewRuleForm) -> Result<Result<PreparedRule, String>, WebError> {
    let live = deps.app.live.load_full();
    let request = match draft.request(deps, &live).await? {
        Ok(request) => request,
        Err(problem) => return Ok(Err(problem)),
    };
    let (texts, base_dir, now) = (deps.app.readiness.texts(), deps.app.base_dir.clone(), deps.app.clock.now());
    let made = tokio::task::spawn_blocking(move || rule_edit::prepare(&request, &texts, &live.config, &base_dir, now)).await;
    Ok(made.unwrap_or_else(|_| Err("The rule could not be checked. The log shows the reason.".to_owned())))
}

fn page(deps: &HttpDeps, visitor: &Visitor, draft: NewRuleForm, prepared: Result<PreparedRule, String>) -> ActionResult {
    let live = deps.app.live.load_full();
    let topic = draft.topic();
    let recipient = |of: Recipient| RecipientChoice {
        value: of.class(),
        name: of.name(),
        about: of.about(),
        is_chosen: draft.recipients.iter().any(|name| name == of.class()),
    };
    let status = if prepared.is_err() { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    let page = NewRulePage {
        topics: RuleTopic::ALL.map(|topic| (topic.word(), topic.about())).to_vec(),
        has: FieldsOfTopic {
            above: topic.has(RuleOption::Above),
            is_cliffs: topic == RuleTopic::Cliffs,
            days: topic.has(RuleOption::Days),
            window: topic.has(RuleOption::Window),
        },
        recipients: Recipient::ALL.into_iter().map(recipient).collect(),
        severities: SEVERITIES,
        groups: live.watch.groups().map(|group| format!("@{group}")).collect(),
        usual: topic.default_value().map(phrase::usd),
        made: prepared.as_ref().ok().map(MadeRule::of),
        problem: prepared.err(),
        can_save: live.config.http.edit_rules,
        draft,
    };
    let now = deps.app.clock.now();
    let response: Response = render_page("new-rule.html", &static_frame(Section::Rules, visitor, now, ""), &page);
    Ok((status, response).into_response())
}
