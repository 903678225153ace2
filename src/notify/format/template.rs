//! A body defined by the operator: a template over the data of the `cliffwatch` body.
//!
//! The template is compiled and tried when the config is loaded. If it fails later, the built-in body is sent with the error, so that
//! no alert is lost. In a JSON template, every `{{ value }}` is written as JSON including quotes, so that text from outside cannot
//! change the structure, and the result must be valid JSON. Run time and output are limited.

// The templates of rules have the same memory limits.
#[path = "../../rules/template/bounds.rs"]
mod bounds;

use std::{collections::BTreeMap, io::Read, sync::Arc};

use minijinja::value::{Enumerator, Object, Serde};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, UndefinedBehavior, Value};
use serde_json::json;

use super::marked::html_text;
use super::{FormatKey, FormatKeyValue, FormatSpec, KeyProblem, RequestError, TextOfKey, WebhookFormat, WebhookRequest};
use crate::card::{Brief, ShareStyle, color};
use crate::message;
use bounds::Unbounded;
use model::{DueDelivery, ReceiverName, Resource, SourceBody, Timestamp, TokenBody, config, phrase};

const MAX_TEMPLATE_BYTES: usize = 64 * 1024;

const MAX_BODY_BYTES: usize = message::MAX_BODY_BYTES;

/// The maximum number of steps to render a template.
const FUEL: u64 = 1_000_000;

/// The maximum depth of calls within a template.
const MAX_DEPTH: usize = 50;

const MAX_TITLE_CHARS: usize = 300;

/// The maximum number of alerts listed in `text`.
const MAX_LINES: usize = 40;

const NAME: &str = "template";

const TEMPLATE: FormatKey = FormatKey { file: Some("template_file"), ..FormatKey::plain("template", FormatKeyValue::Text) };
const CONTENT_TYPE: FormatKey = FormatKey::plain("content_type", FormatKeyValue::Text);

pub(super) const SPEC: FormatSpec = FormatSpec {
    keys: &[
        FormatKey { example: "`template = '{\"text\": {{ title }}}'`, or `template_file`", ..TEMPLATE.needed() },
        CONTENT_TYPE,
        FormatKey::SIGNING,
        FormatKey::BEARER,
    ],
    check,
    ..FormatSpec::new("template", read)
};

fn read(receiver: &config::ReceiverSettings) -> Result<WebhookFormat, KeyProblem> {
    let (key, source) = match (receiver.format_text(TEMPLATE.name), receiver.format_text("template_file")) {
        (None, Some(path)) => ("template_file", read_source(path)?),
        (inline, _) => (TEMPLATE.name, inline.unwrap_or_default().to_owned()),
    };
    let template = BodyTemplate::new(&source, receiver.format_text(CONTENT_TYPE.name))
        .map_err(|error| KeyProblem::wrong(key, error.to_string()))?;
    Ok(WebhookFormat::new(move |brief, _| {
        let (body, template_error) = template.body(brief)?;
        Ok(vec![WebhookRequest { template_error, ..WebhookRequest::bytes(template.content_type.clone(), body) }])
    }))
}

fn check(text_of: &TextOfKey<'_>) -> Result<(), KeyProblem> {
    let Some(source) = text_of(TEMPLATE.name) else { return Ok(()) };
    let tried = BodyTemplate::new(&source, text_of(CONTENT_TYPE.name).as_deref());
    tried.map(|_| ()).map_err(|error| KeyProblem::wrong(TEMPLATE.name, error.to_string()))
}

fn read_source(path: &str) -> Result<String, KeyProblem> {
    let mut source = String::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_TEMPLATE_BYTES as u64 + 1).read_to_string(&mut source))
        .map_err(|error| KeyProblem::unreadable("template_file", format!("cannot read {path}: {error}")))?;
    Ok(source)
}

/// A template that rendered the sample successfully.
#[derive(Clone, Debug)]
pub struct BodyTemplate {
    source: String,
    content_type: String,
    kind: BodyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyKind {
    Json,
    Html,
    Text,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("the template has {0} bytes, more than the limit of {MAX_TEMPLATE_BYTES}")]
    Long(usize),
    #[error("{message}{}", line.map(|line| format!(" (line {line} of the template)")).unwrap_or_default())]
    Wrong {
        message: String,
        /// The line, from 1.
        line: Option<usize>,
    },
    #[error(
        "the template does not produce valid JSON ({0}): remove quotes around `{{{{ … }}}}`, which writes its own; for another kind of \
         body, set `content_type`"
    )]
    NotJson(String),
    #[error("{0:?} is not a valid content type; example: \"application/json\" or \"text/plain; charset=utf-8\"")]
    ContentType(String),
}

impl BodyTemplate {
    /// Checks a template and renders it with a sample alert.
    pub fn new(source: &str, content_type: Option<&str>) -> Result<Self, TemplateError> {
        let content_type = content_type.unwrap_or("application/json").trim().to_owned();
        let is_good = content_type.contains('/')
            && content_type.len() <= 200
            && content_type.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if !is_good {
            return Err(TemplateError::ContentType(content_type));
        }
        if source.len() > MAX_TEMPLATE_BYTES {
            return Err(TemplateError::Long(source.len()));
        }
        let essence = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let kind = match essence.as_str() {
            "application/json" => BodyKind::Json,
            other if other.ends_with("+json") => BodyKind::Json,
            "text/html" | "application/xml" | "text/xml" => BodyKind::Html,
            other if other.ends_with("+xml") => BodyKind::Html,
            _ => BodyKind::Text,
        };
        let template = Self { source: source.to_owned(), content_type, kind };
        let sample = sample();
        template.render(&Brief {
            delivery: &sample,
            external_url: Some("https://cliffwatch.example.com"),
            now: sample.due_at,
        })?;
        Ok(template)
    }

    /// Returns the body and `None`, or the built-in body and the error if the template fails.
    ///
    /// # Errors
    ///
    /// Fails if the built-in body cannot be written either.
    fn body(&self, brief: &Brief<'_>) -> Result<(Vec<u8>, Option<String>), RequestError> {
        let error = match self.render(brief) {
            Ok(body) => return Ok((body, None)),
            Err(error) => format!("the receiver's template failed, so this is the built-in message: {error}"),
        };
        let body = match self.kind {
            BodyKind::Json => {
                let body = message::webhook_body(brief.delivery, brief.external_url)?.ok_or(RequestError::Nothing)?;
                let mut value: serde_json::Value = serde_json::from_slice(&body)?;
                if let Some(object) = value.as_object_mut() {
                    object.insert("templateError".into(), error.clone().into());
                }
                serde_json::to_vec(&value)?
            }
            BodyKind::Html => {
                let text = format!("{}\n\n{error}\n", text(brief));
                format!("<pre>{}</pre>\n", html_text(&text)).into_bytes()
            }
            BodyKind::Text => format!("{}\n\n{error}\n", text(brief)).into_bytes(),
        };
        Ok((body, Some(error)))
    }

    fn render(&self, brief: &Brief<'_>) -> Result<Vec<u8>, TemplateError> {
        if let Some(Unbounded { at, message, help }) = bounds::unbounded(&self.source, &bounds::tags_of(&self.source)) {
            let line = self.source.get(..at.start).map(|before| before.lines().count().max(1));
            return Err(TemplateError::Wrong { message: format!("{message} ({help})"), line });
        }
        let wrong = |error: Error| TemplateError::Wrong {
            message: match error.detail() {
                Some(detail) => format!("{}: {detail}", error.kind()),
                None => error.kind().to_string(),
            },
            line: error.line(),
        };
        let mut environment = Environment::new();
        let kind = self.kind;
        environment.set_auto_escape_callback(move |_| match kind {
            BodyKind::Json => AutoEscape::Json,
            BodyKind::Html => AutoEscape::Html,
            BodyKind::Text => AutoEscape::None,
        });
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_fuel(Some(FUEL));
        environment.set_recursion_limit(MAX_DEPTH);
        environment.remove_global("debug");
        for (name, show) in [("usd", phrase::usd as fn(f64) -> String), ("amount", phrase::amount), ("percent", phrase::percent)]
        {
            environment.add_filter(name, move |value: Value| number(&value, show));
        }
        bounds::bound(&mut environment);
        let context = context(brief).map_err(|error| TemplateError::NotJson(error.to_string()))?;
        let source = bounds::guard(&self.source, &bounds::tags_of(&self.source));
        let text = environment.render_named_str(NAME, &source, with_words(context)).map_err(wrong)?;
        if text.len() > MAX_BODY_BYTES {
            return Err(TemplateError::Wrong { message: format!("the result exceeds {MAX_BODY_BYTES} bytes"), line: None });
        }
        if self.kind == BodyKind::Json {
            serde_json::from_str::<serde::de::IgnoredAny>(&text).map_err(|error| TemplateError::NotJson(error.to_string()))?;
        }
        Ok(text.into_bytes())
    }
}

/// Formats a number, or returns "unknown" for null.
fn number(value: &Value, show: fn(f64) -> String) -> Result<String, Error> {
    if value.is_none() {
        return Ok("unknown".to_owned());
    }
    f64::try_from(value.clone())
        .map(show)
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, format!("{value} is not a number")))
}

/// Returns the variables of a template: the fields of the `cliffwatch` body, and the texts that other formats show.
fn context(brief: &Brief<'_>) -> Result<serde_json::Value, serde_json::Error> {
    let body = message::webhook_body(brief.delivery, brief.external_url)?.unwrap_or_default();
    let mut value: serde_json::Value = serde_json::from_slice(&body)?;
    if let Some(object) = value.as_object_mut() {
        let data = object.remove("data");
        if let Some(serde_json::Value::Object(data)) = data {
            object.extend(data);
        }
        object.insert("title".into(), brief.title(ShareStyle::Long, MAX_TITLE_CHARS).into());
        object.insert("text".into(), text(brief).into());
        object.insert("note".into(), brief.note().unwrap_or_default().into());
        object.insert("color".into(), format!("#{:06x}", color(brief.severity())).into());
        object.insert("page".into(), brief.page_of_all().into());
        object.insert("id".into(), brief.delivery.webhook_id.clone().into());
    }
    Ok(value)
}

/// Labels or annotations. Each rule defines its own, so a missing one is an empty string instead of an error.
#[derive(Debug)]
struct OptionalTexts(BTreeMap<String, String>);

impl Object for OptionalTexts {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let name = key.as_str()?;
        Some(Value::from(self.0.get(name).map_or("", String::as_str)))
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|name| Value::from(name.as_str())).collect())
    }
}

fn with_words(value: serde_json::Value) -> Value {
    match value {
        serde_json::Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| {
                let value = field(&name, value);
                (name, value)
            });
            Value::from(fields.collect::<BTreeMap<String, Value>>())
        }
        other => Value::from(Serde(other)),
    }
}

fn field(name: &str, value: serde_json::Value) -> Value {
    match (name, value) {
        ("alerts", serde_json::Value::Array(alerts)) => alerts.into_iter().map(with_words).collect(),
        ("labels" | "annotations", serde_json::Value::Object(words)) => {
            let text = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            Value::from_object(OptionalTexts(words.into_iter().map(|(name, value)| (name, text(value))).collect()))
        }
        (_, other) => Value::from(Serde(other)),
    }
}

/// Returns the message as plain lines.
fn text(brief: &Brief<'_>) -> String {
    let cards = brief.cards(MAX_LINES);
    let first = match cards.as_slice() {
        // The complete sentence takes the place of a title that would be cut.
        [card] if brief.is_single() => card.first_line.clone(),
        _ => brief.title(ShareStyle::Long, MAX_TITLE_CHARS),
    };
    let mut lines = vec![first];
    lines.extend(brief.note());
    match cards.as_slice() {
        [card] if brief.is_single() => lines.extend(card.lines(12)),
        cards => lines.extend(cards.iter().map(|card| format!("- {}", card.list_line()))),
    }
    lines.extend(brief.rest(cards.len()));
    lines.join("\n")
}

/// Returns the delivery that a new template is tried with: an unlock in a week.
fn sample() -> DueDelivery {
    let now = Timestamp::UNIX_EPOCH;
    let mut delivery = message::test_delivery(&ReceiverName::from("sample"), now);
    for notice in &mut delivery.notifications {
        let body = &mut notice.body;
        body.token = Some(TokenBody { id: "arbitrum".into(), name: "Arbitrum".into(), symbol: "ARB".into() });
        body.labels.insert("token".into(), "arbitrum".into());
        body.resource = Some(Resource::Unlock);
        body.days_until = Some(7.0);
        body.when = Some("on 8 Jan 1970".into());
        body.lead = Some("7d".into());
        body.source = SourceBody { polled_at: Some(now), ..SourceBody::default() };
        body.record = Some(json!({
            "unlockDate": "1970-01-08T00:00:00Z",
            "tokenName": "Arbitrum",
            "tokenSymbol": "ARB",
            "listedMethod": "INTERNAL",
            "dataSource": "Whitepaper",
            "latestUpdateDate": "1970-01-01T00:00:00Z",
            "linearUnlocks": null,
            "cliffUnlocks": {
                "cliffAmount": 1_000_000.0,
                "cliffValue": 1_000_000.0,
                "valueToMarketCap": 1.0,
                "allocationBreakdown": [{
                    "unlockDate": "1970-01-08T00:00:00Z",
                    "allocationName": "Team",
                    "standardAllocationName": "Founder / Team",
                    "cliffAmount": 1_000_000.0,
                    "cliffValue": 1_000_000.0,
                    "referencePrice": 1.0,
                    "unlockPrecision": "second",
                }],
            },
        }));
    }
    delivery
}

#[cfg(test)]
mod tests;
