//! The envelope around every answer: `{"metadata", "status", "data"}`. Pure.
//!
//! `data` is only marked, not read: its raw span is hashed first, and read only where it differs from the last one. Whatever is
//! not this envelope is an error with the first characters of what came instead.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::shown;
use crate::wire::{self, Maybe, Metadata};

/// One page of an answer: the text, and where in it `data` lies.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    data: Range<usize>,
    /// What the envelope says of the page.
    pub metadata: Metadata,
}

impl Page {
    /// The raw text of `data`.
    pub fn data(&self) -> &str {
        self.text.get(self.data.clone()).unwrap_or_default()
    }

    /// Bytes that it holds in memory.
    pub fn len(&self) -> usize {
        self.text.len()
    }
}

/// Why a text with status 200 is no answer.
#[derive(Debug, PartialEq)]
pub(super) enum NoAnswer {
    /// The envelope says so itself: `status: false`.
    Refused {
        /// `statusCode` of the body.
        code: Option<i64>,
        /// `errorMessage`, as it came.
        message: Option<String>,
        /// Quota, where it was reported.
        credit: Option<wire::Credit>,
    },
    /// It is no envelope, or not a whole one.
    Malformed {
        /// What it is instead.
        problem: String,
        /// Whether asking again may help: the text broke off or is no JSON at all.
        is_broken: bool,
    },
}

/// The body of a refusal, and everything an envelope may hold.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(default)]
    metadata: Maybe<Metadata>,
    #[serde(default)]
    status: Maybe<bool>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(default, rename = "statusCode")]
    status_code: Maybe<i64>,
    #[serde(default, rename = "errorMessage")]
    error_message: Maybe<String>,
}

/// Reads the envelope. `is_list` says which shape `data` must have; `content_type` is only named in messages.
pub(super) fn read(body: Vec<u8>, content_type: Option<&str>, is_list: bool) -> Result<Page, NoAnswer> {
    let malformed = |problem: String, is_broken| Err(NoAnswer::Malformed { problem, is_broken });
    let described =
        || content_type.map_or_else(|| "without a content type".to_owned(), |kind| format!("as {}", shown::excerpt(kind)));
    let mut text = match String::from_utf8(body) {
        Ok(text) => text,
        Err(error) => {
            let start: String = String::from_utf8_lossy(error.as_bytes().get(..200).unwrap_or(error.as_bytes())).into_owned();
            return malformed(format!("bytes that are no UTF-8, sent {}: \"{}\"", described(), shown::excerpt(&start)), true);
        }
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if text.trim().is_empty() {
        return malformed(format!("an empty body, sent {}", described()), true);
    }
    // A list would pass for a struct whose fields it names in order.
    let parsed =
        serde_json::from_str::<Envelope<'_>>(&text).map(|envelope| text.trim_start().starts_with('{').then_some(envelope));
    let envelope = match parsed {
        Ok(Some(envelope)) => envelope,
        Ok(None) => {
            let problem = format!(
                "JSON that is not the envelope {{metadata, status, data}}, sent {}: \"{}\"",
                described(),
                shown::excerpt(&text)
            );
            return malformed(problem, false);
        }
        Err(error) => {
            let what = if text.trim_start().starts_with('<') {
                "a page of markup instead of JSON".to_owned()
            } else if error.is_eof() {
                format!("JSON that breaks off after {} bytes", text.len())
            } else if error.is_syntax() {
                format!("text that is no JSON (line {}, column {})", error.line(), error.column())
            } else {
                "JSON that is not the envelope {metadata, status, data}".to_owned()
            };
            let problem = format!("{what}, sent {}: \"{}\"", described(), shown::excerpt(&text));
            return malformed(problem, error.is_eof() || error.is_syntax());
        }
    };
    let metadata_came = envelope.metadata.get().is_some();
    let metadata = envelope.metadata.into_option().unwrap_or_default();
    match envelope.status {
        Maybe::Value(false) => {
            return Err(NoAnswer::Refused {
                code: envelope.status_code.copied(),
                message: envelope.error_message.into_option(),
                credit: metadata.credit.into_option(),
            });
        }
        Maybe::Value(true) => {}
        // Without `status`, `metadata` at least must show that this is the envelope and not something else with a `data` in it.
        Maybe::Absent | Maybe::Null if metadata_came => {}
        Maybe::Absent | Maybe::Null => {
            let problem = format!("JSON without the envelope's `status` and `metadata`: \"{}\"", shown::excerpt(&text));
            return malformed(problem, false);
        }
    }
    let Some(data) = envelope.data else {
        return malformed(format!("an envelope without `data`: \"{}\"", shown::excerpt(&text)), false);
    };
    let expected = if is_list { ('[', "a list") } else { ('{', "an object") };
    if !data.get().starts_with(expected.0) {
        return malformed(format!("`data` that is not {}: \"{}\"", expected.1, shown::excerpt(data.get())), false);
    }
    // `data` borrows from `text`, so the difference of their addresses is its place in it.
    let start = (data.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let range = start..start + data.get().len();
    Ok(Page { data: range, metadata, text })
}

/// What the body of an error status says: its message for people, and the quota where it is reported.
pub(super) fn read_error(body: &[u8]) -> (Option<String>, Option<wire::Credit>) {
    #[derive(Deserialize)]
    struct ErrorBody {
        #[serde(default)]
        metadata: Maybe<Metadata>,
        #[serde(default, rename = "errorMessage")]
        error_message: Maybe<String>,
        #[serde(default)]
        message: Maybe<String>,
        #[serde(default)]
        error: Maybe<String>,
    }
    let Ok(body) = serde_json::from_slice::<ErrorBody>(body) else {
        return (None, None);
    };
    let message = [body.error_message, body.message, body.error].into_iter().find_map(Maybe::into_option);
    (
        message.filter(|text| !text.trim().is_empty()),
        body.metadata.into_option().and_then(|metadata| metadata.credit.into_option()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(body: &str) -> String {
        match read(body.as_bytes().to_vec(), Some("text/html"), true) {
            Err(NoAnswer::Malformed { problem, .. }) => problem,
            other => panic!("expected a malformed answer, got {other:?}"),
        }
    }

    #[test]
    fn the_raw_span_of_data_is_kept_to_the_byte() {
        let body = r#" {"metadata":{"queryDate":"2026-01-01T00:00:00Z","total":2,"new":1},"data": [ {"id":"a\u0041"} , 1.50 ],"status":true} "#;
        let page = read(body.into(), None, true).expect("an envelope");
        assert_eq!(page.data(), r#"[ {"id":"a\u0041"} , 1.50 ]"#);
        assert_eq!(page.metadata.total.copied(), Some(2));
        let page = read(format!("\u{feff}{body}").into(), None, true).expect("an envelope behind a byte order mark");
        assert_eq!(page.data(), r#"[ {"id":"a\u0041"} , 1.50 ]"#);
    }

    #[test]
    fn what_is_no_envelope_is_named_and_quoted() {
        assert!(
            problem("<!DOCTYPE html><p>\u{1b}[2J")
                .contains("a page of markup instead of JSON, sent as text/html: \"<!DOCTYPE html><p>\\u{1b}")
        );
        assert!(problem(r#"{"metadata":{},"status":true,"data":[{"id":"#).contains("breaks off after"));
        assert!(problem("").contains("empty body"));
        assert!(problem("nope").contains("no JSON"));
        assert!(problem("[]").contains("not the envelope"));
        assert!(problem(r#"[{},true,[]]"#).contains("not the envelope"));
        assert!(problem(r#"{"tokenId":"aptos","data":[]}"#).contains("without the envelope's"));
        assert!(problem(r#"{"metadata":{},"status":true}"#).contains("without `data`"));
        assert!(problem(r#"{"metadata":{},"status":true,"data":null}"#).contains("without `data`"));
        assert!(problem(r#"{"metadata":{},"status":true,"data":{}}"#).contains("not a list"));
        assert!(problem(r#"{"metadata":{},"status":true,"data":[],"data":[]}"#).contains("not the envelope"));
        assert!(problem("{\"status\":true,\"metadata\":{},\"data\":[]}trailing").contains("no JSON"));
    }

    #[test]
    fn the_shape_of_data_is_checked() {
        assert!(read(br#"{"metadata":{},"status":true,"data":{}}"#.to_vec(), None, false).is_ok());
        assert!(read(br#"{"metadata":{},"status":true,"data":[]}"#.to_vec(), None, false).is_err());
        assert!(read(br#"{"metadata":{},"data":[]}"#.to_vec(), None, true).is_ok());
    }

    #[test]
    fn a_refusal_inside_a_success_is_a_refusal() {
        let body = br#"{"status":false,"statusCode":429,"errorMessage":"too fast"}"#;
        let refused = NoAnswer::Refused { code: Some(429), message: Some("too fast".into()), credit: None };
        assert_eq!(read(body.to_vec(), None, true).expect_err("refused"), refused);
    }

    #[test]
    fn a_lone_surrogate_or_bad_bytes_are_no_panic() {
        assert!(read(br#"{"metadata":{},"status":true,"data":[{"id":"\ud800"}]}"#.to_vec(), None, true).is_ok());
        assert!(read(br#"{"status":false,"errorMessage":"\ud800"}"#.to_vec(), None, true).is_err());
        assert!(read(vec![0xff, 0xfe, 0x00], None, true).is_err());
    }

    #[test]
    fn error_bodies_tell_their_message() {
        assert_eq!(read_error(br#"{"errorMessage":"x-api-key not found"}"#).0.as_deref(), Some("x-api-key not found"));
        assert_eq!(read_error(b"<html>").0, None);
    }
}
