//! The envelope of every response: `{"metadata", "status", "data"}`. Pure.
//!
//! `data` remains raw JSON, whose hash is compared before it is parsed. If a hash of the feed is known, [`skim`] does not even validate
//! `data`: it takes everything between the name and the last bracket, and an equal hash proves that it is the same JSON. Errors quote
//! the beginning of an invalid body.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::redact;
use model::wire::{self, Maybe, Metadata};

/// A page of a response.
#[derive(Debug)]
pub(super) struct ResponsePage {
    text: String,
    /// The range of `data` in `text`.
    data: Range<usize>,
    pub metadata: Metadata,
    /// Whether `data` was not validated, so that it may not be JSON.
    pub is_skimmed: bool,
    /// The number of rows in `data`. `None` if they were not counted.
    pub rows: Option<usize>,
}

impl ResponsePage {
    /// Returns the raw JSON of `data`.
    pub fn data(&self) -> &str {
        self.text.get(self.data.clone()).unwrap_or_default()
    }

    /// Returns the size of the whole text in bytes.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Returns the buffer of the text.
    pub fn into_body(self) -> Vec<u8> {
        self.text.into_bytes()
    }

    /// Returns whether `data` is an empty list or object.
    pub fn is_blank(&self) -> bool {
        let data = self.data();
        data.get(1..data.len().saturating_sub(1)).is_none_or(|inside| inside.trim().is_empty())
    }

    /// Validates `data` and counts its rows. Returns the body if it is not valid.
    pub fn validated(self) -> Result<Self, Vec<u8>> {
        let rows = match self.data().starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(self.data()).map(|rows| Some(rows.len())),
            false => serde_json::from_str::<&RawValue>(self.data()).map(|_| None),
        };
        match rows {
            Ok(rows) => Ok(Self { is_skimmed: false, rows, ..self }),
            Err(_) => Err(self.into_body()),
        }
    }
}

/// Why a body with status 200 is not a valid envelope.
#[derive(Debug, PartialEq)]
pub(super) enum EnvelopeError {
    /// An envelope with `status: false`.
    Refused { code: Option<i64>, message: Option<String>, credit: Option<wire::Credit> },
    /// Not a complete envelope.
    Malformed {
        /// A description of the body that was received.
        problem: String,
        /// Whether the text is incomplete or not JSON, so that a retry may help.
        is_broken: bool,
    },
}

#[derive(Deserialize)]
struct ResponseEnvelope<'a> {
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

/// Parses the envelope. `data` must be a list if `is_list`, else an object. `content_type` is only for messages.
pub(super) fn read(body: Vec<u8>, content_type: Option<&str>, is_list: bool) -> Result<ResponsePage, EnvelopeError> {
    let malformed = |problem: String, is_broken| Err(EnvelopeError::Malformed { problem, is_broken });
    let described =
        || content_type.map_or_else(|| "without a content type".to_owned(), |kind| format!("as {}", redact::excerpt(kind)));
    let mut text = match String::from_utf8(body) {
        Ok(text) => text,
        Err(error) => {
            let start: String = String::from_utf8_lossy(error.as_bytes().get(..200).unwrap_or(error.as_bytes())).into_owned();
            return malformed(format!("bytes that are not UTF-8, sent {}: \"{}\"", described(), redact::excerpt(&start)), true);
        }
    };
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    if text.trim().is_empty() {
        return malformed(format!("an empty body, sent {}", described()), true);
    }
    let envelope = match envelope_of(&text) {
        Ok(Some(envelope)) => envelope,
        Ok(None) => {
            let problem = format!(
                "JSON that is not the envelope {{metadata, status, data}}, sent {}: \"{}\"",
                described(),
                redact::excerpt(&text)
            );
            return malformed(problem, false);
        }
        Err(error) => {
            let what = if text.trim_start().starts_with('<') {
                "a page of markup instead of JSON".to_owned()
            } else if error.is_eof() {
                format!("JSON that breaks off after {} bytes", text.len())
            } else if error.is_syntax() {
                format!("text that is not JSON (line {}, column {})", error.line(), error.column())
            } else {
                "JSON that is not the envelope {metadata, status, data}".to_owned()
            };
            let problem = format!("{what}, sent {}: \"{}\"", described(), redact::excerpt(&text));
            return malformed(problem, error.is_eof() || error.is_syntax());
        }
    };
    let metadata_came = envelope.metadata.get().is_some();
    let metadata = envelope.metadata.into_option().unwrap_or_default();
    match envelope.status {
        Maybe::Value(false) => {
            return Err(EnvelopeError::Refused {
                code: envelope.status_code.copied(),
                message: envelope.error_message.into_option(),
                credit: metadata.credit.into_option(),
            });
        }
        Maybe::Value(true) => {}
        // Without `status`, at least `metadata` must distinguish the envelope from another object with `data`.
        Maybe::Absent | Maybe::Null if metadata_came => {}
        Maybe::Absent | Maybe::Null => {
            let problem = format!("JSON without the envelope's `status` and `metadata`: \"{}\"", redact::excerpt(&text));
            return malformed(problem, false);
        }
    }
    let Some(data) = envelope.data else {
        return malformed(format!("an envelope without `data`: \"{}\"", redact::excerpt(&text)), false);
    };
    let expected = if is_list { ('[', "a list") } else { ('{', "an object") };
    if !data.get().starts_with(expected.0) {
        return malformed(format!("`data` that is not {}: \"{}\"", expected.1, redact::excerpt(data.get())), false);
    }
    let start = place(data, &text);
    let range = start..start + data.get().len();
    Ok(ResponsePage { data: range, metadata, text, is_skimmed: false, rows: None })
}

fn envelope_of(text: &str) -> Result<Option<ResponseEnvelope<'_>>, serde_json::Error> {
    // serde would also accept a list with the fields in order.
    serde_json::from_str::<ResponseEnvelope<'_>>(text).map(|envelope| text.trim_start().starts_with('{').then_some(envelope))
}

/// Returns the position in `text` of a value that borrows from it.
fn place(value: &RawValue, text: &str) -> usize {
    (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Parses the envelope without validating `data`. Returns the body if that is not possible or `status` is not a success.
///
/// Takes everything between the name `data` and the last bracket as its value, and parses the envelope with an empty value in its
/// place. If the value is valid JSON, the result equals the result of [`read`]. An equal hash of a previous response proves that it is.
pub(super) fn skim(body: Vec<u8>, is_list: bool) -> Result<ResponsePage, Vec<u8>> {
    let text = String::from_utf8(body).map_err(std::string::FromUtf8Error::into_bytes)?;
    match skimmed(&text, is_list) {
        Some((data, metadata)) => Ok(ResponsePage { text, data, metadata, is_skimmed: true, rows: None }),
        None => Err(text.into_bytes()),
    }
}

fn skimmed(text: &str, is_list: bool) -> Option<(Range<usize>, Metadata)> {
    const NAME: &str = "\"data\"";
    let (open, close, nothing) = if is_list { ('[', ']', "[]") } else { ('{', '}', "{}") };
    let after_name = text.find(NAME)? + NAME.len();
    let start = text.len() - text.get(after_name..)?.trim_start().strip_prefix(':')?.trim_start().len();
    let rest = text.get(start..)?;
    // The last brace belongs to the envelope.
    let within = if is_list { rest } else { rest.get(..rest.rfind('}')?)? };
    let end = start + within.rfind(close)? + close.len_utf8();
    if !rest.starts_with(open) || end < start + nothing.len() {
        return None;
    }
    let around = [text.get(..start)?, nothing, text.get(end..)?].concat();
    let envelope = envelope_of(&around).ok()??;
    let is_there = envelope.data.is_some_and(|data| data.get() == nothing && place(data, &around) == start);
    let metadata = envelope.metadata.into_option();
    match envelope.status {
        Maybe::Value(true) => {}
        Maybe::Absent | Maybe::Null if metadata.is_some() => {}
        _ => return None,
    }
    is_there.then(|| (start..end, metadata.unwrap_or_default()))
}

/// Returns the message and the reported quota in the body of an error response.
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
mod tests;
