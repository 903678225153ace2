//! Parses parameter values.

use chrono::NaiveDate;

use super::{FiniteNumber, MAX_SLUG, StandardAllocation};
use crate::refusal::{Refusal, redact};

pub fn slug(text: &str) -> Result<String, Refusal> {
    if text.is_empty() || text.chars().count() > MAX_SLUG || text.chars().any(char::is_control) {
        return Err(Refusal::bad_request(format!(
            "\"{}\" is not a valid id: expected a slug of at most {MAX_SLUG} characters",
            redact(text)
        )));
    }
    Ok(text.to_owned())
}

/// Parses ids separated by commas, and sorts them so that equivalent queries are equal.
pub fn slugs(name: &str, text: &str) -> Result<Vec<String>, Refusal> {
    let ids = text.split(',').map(str::trim).filter(|id| !id.is_empty());
    let mut ids: Vec<String> = ids.map(slug).collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Err(Refusal::bad_request(format!("{name} is empty: omit it for all tokens")));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

pub fn date(name: &str, text: &str) -> Result<NaiveDate, Refusal> {
    let plain = text.len() == 10 && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    let date = if plain { NaiveDate::parse_from_str(text, "%Y-%m-%d").ok() } else { None };
    date.ok_or_else(|| Refusal::bad_request(format!("{name} \"{}\" is not a valid date: expected YYYY-MM-DD", redact(text))))
}

pub fn whole(name: &str, text: &str) -> Result<u64, Refusal> {
    let number = if text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None };
    number.filter(|number| *number >= 1).ok_or_else(|| {
        Refusal::bad_request(format!("{name} \"{}\" is not a valid number: expected an integer from 1", redact(text)))
    })
}

pub fn decimal(name: &str, text: &str) -> Result<FiniteNumber, Refusal> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    number
        .map(|number| FiniteNumber(number.to_bits()))
        .ok_or_else(|| Refusal::bad_request(format!("{name} \"{}\" is not a number", redact(text))))
}

pub fn truth(name: &str, text: &str) -> Result<bool, Refusal> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(Refusal::bad_request(format!("{name} \"{}\" is not valid: expected true or false", redact(text)))),
    }
}

pub fn standards(text: &str) -> Result<Vec<StandardAllocation>, Refusal> {
    let mut standards = Vec::new();
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let Some((_, standard)) = StandardAllocation::WORDS.iter().find(|(known, _)| *known == word) else {
            let known = StandardAllocation::WORDS.map(|(known, _)| known).join(", ");
            return Err(Refusal::bad_request(format!("unknown standardAllocation \"{}\": expected {known}", redact(word))));
        };
        standards.push(*standard);
    }
    if standards.is_empty() {
        return Err(Refusal::bad_request("standardAllocation is empty: omit it for all categories"));
    }
    standards.sort_unstable();
    standards.dedup();
    Ok(standards)
}
