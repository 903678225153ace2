//! The envelope around every answer: `{"metadata", "status", "data"}`. Pure.
//!
//! `data` is only marked, not read: its raw span is hashed first, and read only where it differs from the last one. Where an answer
//! of the same feed is known, `data` is not even gone through: [`skim`] takes for it what lies between its name and the last bracket,
//! and the hash alone tells whether that is so. Whatever is not this envelope is an error with the first characters of what came
//! instead.

use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::redact;
use model::wire::{self, Maybe, Metadata};

/// One page of an answer: the text, and where in it `data` lies.
#[derive(Debug)]
pub(super) struct AnswerPage {
    text: String,
    data: Range<usize>,
    /// What the envelope says of the page.
    pub metadata: Metadata,
    /// Nobody has gone through `data` yet: only its hash, or reading it, can tell that it is JSON at all.
    pub is_skimmed: bool,
    /// Rows of `data`, where they have been counted.
    pub rows: Option<usize>,
}

impl AnswerPage {
    /// The raw text of `data`.
    pub fn data(&self) -> &str {
        self.text.get(self.data.clone()).unwrap_or_default()
    }

    /// Bytes that it holds in memory.
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether `data` is a list or an object without anything in it.
    pub fn is_blank(&self) -> bool {
        let data = self.data();
        data.get(1..data.len().saturating_sub(1)).is_none_or(|inside| inside.trim().is_empty())
    }

    /// The same, once `data` was gone through and is a list, or an object; else the text as it came.
    pub fn gone_through(self) -> Result<Self, Vec<u8>> {
        let rows = match self.data().starts_with('[') {
            true => serde_json::from_str::<Vec<&RawValue>>(self.data()).map(|rows| Some(rows.len())),
            false => serde_json::from_str::<&RawValue>(self.data()).map(|_| None),
        };
        match rows {
            Ok(rows) => Ok(Self { is_skimmed: false, rows, ..self }),
            Err(_) => Err(self.text.into_bytes()),
        }
    }
}

/// Why a text with status 200 is no answer.
#[derive(Debug, PartialEq)]
pub(super) enum EnvelopeError {
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
struct AnswerEnvelope<'a> {
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
pub(super) fn read(body: Vec<u8>, content_type: Option<&str>, is_list: bool) -> Result<AnswerPage, EnvelopeError> {
    let malformed = |problem: String, is_broken| Err(EnvelopeError::Malformed { problem, is_broken });
    let described =
        || content_type.map_or_else(|| "without a content type".to_owned(), |kind| format!("as {}", redact::excerpt(kind)));
    let mut text = match String::from_utf8(body) {
        Ok(text) => text,
        Err(error) => {
            let start: String = String::from_utf8_lossy(error.as_bytes().get(..200).unwrap_or(error.as_bytes())).into_owned();
            return malformed(format!("bytes that are no UTF-8, sent {}: \"{}\"", described(), redact::excerpt(&start)), true);
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
                format!("text that is no JSON (line {}, column {})", error.line(), error.column())
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
        // Without `status`, `metadata` at least must show that this is the envelope and not something else with a `data` in it.
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
    Ok(AnswerPage { data: range, metadata, text, is_skimmed: false, rows: None })
}

fn envelope_of(text: &str) -> Result<Option<AnswerEnvelope<'_>>, serde_json::Error> {
    // A list would pass for a struct whose fields it names in order.
    serde_json::from_str::<AnswerEnvelope<'_>>(text).map(|envelope| text.trim_start().starts_with('{').then_some(envelope))
}

/// Where in `text` a value lies that borrows from it: the difference of their addresses.
fn place(value: &RawValue, text: &str) -> usize {
    (value.get().as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// Reads the envelope without going through `data`; gives the body back where that cannot be done, or where the envelope is no
/// plain success.
///
/// What lies between the name `data` and the last bracket is taken for its value, and the envelope around it is read with nothing
/// in that place. If those bytes are a value, the whole is the envelope that [`read`] finds; that they are one is known once their
/// hash is that of a value that was read before.
pub(super) fn skim(body: Vec<u8>, is_list: bool) -> Result<AnswerPage, Vec<u8>> {
    let text = String::from_utf8(body).map_err(std::string::FromUtf8Error::into_bytes)?;
    match skimmed(&text, is_list) {
        Some((data, metadata)) => Ok(AnswerPage { text, data, metadata, is_skimmed: true, rows: None }),
        None => Err(text.into_bytes()),
    }
}

fn skimmed(text: &str, is_list: bool) -> Option<(Range<usize>, Metadata)> {
    const NAME: &str = "\"data\"";
    let (open, close, nothing) = if is_list { ('[', ']', "[]") } else { ('{', '}', "{}") };
    let after_name = text.find(NAME)? + NAME.len();
    let start = text.len() - text.get(after_name..)?.trim_start().strip_prefix(':')?.trim_start().len();
    let rest = text.get(start..)?;
    // The last brace of all is the envelope's own.
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
mod tests;
