//! The JSON object in the body of a request. Errors use the names of the API, not those of a parser.

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse as _;
use serde_json::{Map, Value};

use super::MAX_REQUEST_BYTES;
use super::error::WebError;
use super::error_code::ErrorCode;
use model::{Timestamp, closest, parse_timestamp};

/// A field of a body: its name, and the other name that clients of similar APIs or of our commands use.
pub(super) type FieldNames = (&'static str, Option<&'static str>);

/// The body of a request, as an extractor.
#[derive(Debug)]
pub(super) struct JsonBody(Map<String, Value>);

impl<S: Send + Sync> FromRequest<S> for JsonBody {
    type Rejection = WebError;

    async fn from_request(request: Request, state: &S) -> Result<Self, WebError> {
        if !is_json(request.headers()) {
            let message = "the body must be JSON: send the header `Content-Type: application/json`";
            return Err(WebError::new(ErrorCode::UnsupportedMediaType, message));
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| match rejection.into_response().status() {
            StatusCode::PAYLOAD_TOO_LARGE => {
                let message = format!("the request body is larger than {} KiB", MAX_REQUEST_BYTES / 1024);
                WebError::new(ErrorCode::BodyTooLarge, message)
            }
            _ => WebError::invalid_body("the body ended early"),
        })?;
        Self::parse(&bytes)
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

impl JsonBody {
    pub fn parse(bytes: &[u8]) -> Result<Self, WebError> {
        match serde_json::from_slice(bytes) {
            Ok(Value::Object(fields)) => Ok(Self(fields)),
            Ok(_) => Err(WebError::invalid_body("the body must be a JSON object")),
            Err(error) => {
                let (line, column) = (error.line(), error.column());
                Err(WebError::invalid_body(format!("the body is not valid JSON: see line {line}, column {column}")))
            }
        }
    }

    /// Renames fields with the other name, and rejects unknown ones.
    pub fn with_fields(self, declared: &[FieldNames]) -> Result<Self, WebError> {
        let mut fields = Map::new();
        for (given, value) in self.0 {
            let Some((name, other)) = declared.iter().find(|(name, other)| *name == given || *other == Some(given.as_str()))
            else {
                return Err(unknown_field(&given, declared));
            };
            if fields.insert((*name).to_owned(), value).is_some() {
                let other = other.unwrap_or_default();
                return Err(WebError::invalid_body(format!("`{name}` and `{other}` are the same field: use one of them")));
            }
        }
        Ok(Self(fields))
    }

    /// Returns the value of a field. `None` if it is missing or null.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub fn required_text(&self, name: &str) -> Result<String, WebError> {
        self.text(name)?.ok_or_else(|| missing(name))
    }

    pub fn text(&self, name: &str) -> Result<Option<String>, WebError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_str().map(|text| Some(text.to_owned())).ok_or_else(|| wrong_type(name, "a text"))
    }

    /// Returns a flag. A missing one is `false`.
    pub fn boolean(&self, name: &str) -> Result<bool, WebError> {
        self.boolean_or(name, false)
    }

    pub fn boolean_or(&self, name: &str, default: bool) -> Result<bool, WebError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        value.as_bool().ok_or_else(|| wrong_type(name, "true or false"))
    }

    /// Returns an instant such as `2026-03-09T12:00:00Z`, or a date, which means midnight UTC.
    pub fn required_time(&self, name: &str) -> Result<Timestamp, WebError> {
        self.time(name)?.ok_or_else(|| missing(name))
    }

    pub fn time(&self, name: &str) -> Result<Option<Timestamp>, WebError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let at = parse_timestamp(&text);
        at.map(Some).ok_or_else(|| wrong_type(name, "a time such as 2026-03-09T12:00:00Z or 2026-03-09"))
    }

    pub fn required_list(&self, name: &str) -> Result<&[Value], WebError> {
        let value = self.get(name).ok_or_else(|| missing(name))?;
        value.as_array().map(Vec::as_slice).ok_or_else(|| wrong_type(name, "a list"))
    }
}

impl TryFrom<&Value> for JsonBody {
    type Error = ();

    fn try_from(value: &Value) -> Result<Self, ()> {
        value.as_object().map(|fields| Self(fields.clone())).ok_or(())
    }
}

fn missing(name: &str) -> WebError {
    WebError::invalid_body(format!("the field `{name}` is missing"))
}

fn wrong_type(name: &str, expected: &str) -> WebError {
    WebError::invalid_body(format!("the field `{name}` is not valid: expected {expected}"))
}

fn unknown_field(given: &str, declared: &[FieldNames]) -> WebError {
    let names = || declared.iter().map(|(name, _)| *name);
    match closest(given, names()) {
        Some(near) => WebError::invalid_body(format!("unknown field `{given}`: did you mean `{near}`?")).with_suggestions([near]),
        None => {
            let names = names().collect::<Vec<_>>().join(", ");
            WebError::invalid_body(format!("unknown field `{given}`: expected one of {names}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: &[FieldNames] = &[("author", Some("createdBy")), ("comment", None), ("until", None)];

    fn error(text: &str) -> String {
        let checked = JsonBody::parse(text.as_bytes()).and_then(|body| {
            let body = body.with_fields(FIELDS)?;
            body.required_text("author")?;
            body.boolean("comment")?;
            body.time("until")
        });
        checked.expect_err(text).message().to_owned()
    }

    #[test]
    fn errors_name_the_field() {
        for (text, expected) in [
            ("", "not valid JSON: see line 1, column 0"),
            ("{\"author\": ", "not valid JSON: see line 1, column 11"),
            ("[]", "must be a JSON object"),
            ("{}", "the field `author` is missing"),
            (r#"{"author": null}"#, "the field `author` is missing"),
            (r#"{"author": 1}"#, "the field `author` is not valid: expected a text"),
            (r#"{"autor": "a"}"#, "unknown field `autor`: did you mean `author`?"),
            (r#"{"nothing-alike": "a"}"#, "expected one of author, comment, until"),
            (r#"{"author": "a", "createdBy": "b"}"#, "`author` and `createdBy` are the same field"),
            (r#"{"author": "a", "comment": "x"}"#, "the field `comment` is not valid: expected true or false"),
            (r#"{"author": "a", "until": "soon"}"#, "expected a time such as 2026-03-09T12:00:00Z"),
        ] {
            let found = error(text);
            assert!(found.contains(expected) && !found.contains("serde"), "{text}: {found}");
        }
    }

    #[test]
    fn other_names_have_the_same_meaning() {
        let body = JsonBody::parse(br#"{"createdBy": "ann"}"#).and_then(|body| body.with_fields(FIELDS)).expect("valid");
        assert_eq!(body.required_text("author").ok().as_deref(), Some("ann"));
    }

    #[test]
    fn content_type_must_be_json() {
        let headers = |kind: &'static str| [(header::CONTENT_TYPE, kind.parse().expect("a value"))].into_iter().collect();
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/vnd.api+json", true),
            ("text/plain", false),
            ("application/x-www-form-urlencoded", false),
        ] {
            assert_eq!(is_json(&headers(kind)), expected, "{kind}");
        }
        assert!(!is_json(&HeaderMap::new()));
    }
}
