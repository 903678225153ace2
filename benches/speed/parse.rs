//! Compares parsing a response into records with only scanning its JSON.

use std::time::Duration;

use anyhow::bail;
use chrono::NaiveDate;
use cliffwatch::{
    model::{
        poll::{PollOutcome, PollRequest},
        supply::{ContentHash, Endpoint},
    },
    source::read_body,
};
use serde::de::IgnoredAny;

use crate::{
    made::{bundled, tranches},
    measure::{best, line, ratio},
};

pub fn run() -> anyhow::Result<()> {
    let mut responses: Vec<(PollRequest, Vec<u8>, ContentHash)> = Vec::new();
    let mut rows = 0;
    for (token, events, text) in bundled()? {
        rows += tranches(&events);
        let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token, start: NaiveDate::MIN, end: NaiveDate::MAX };
        let body = format!(r#"{{"metadata":{{"queryDate":"2026-01-01T00:00:00Z"}},"status":true,"data":{text}}}"#).into_bytes();
        match read_body(&request, 4, body.clone(), None) {
            Ok(PollOutcome::Fresh(response)) => responses.push((request, body, response.hash)),
            other => bail!("cannot read a bundled schedule: {other:?}"),
        }
    }
    let bytes: usize = responses.iter().map(|(_, body, _)| body.len()).sum();
    let speed = |took: Duration| format!("{:.0} MB/s", bytes as f64 / 1e6 / took.as_secs_f64());

    let skipped = best(|| responses.iter().filter(|(_, body, _)| serde_json::from_slice::<IgnoredAny>(body).is_ok()).count());
    let fresh = best(|| {
        responses.iter().map(|(request, body, _)| read_body(request, 4, body.clone(), None)).filter(Result::is_ok).count()
    });
    let unchanged = best(|| {
        responses
            .iter()
            .map(|(request, body, hash)| read_body(request, 4, body.clone(), Some(*hash)))
            .filter(Result::is_ok)
            .count()
    });
    line("scanning JSON only", &speed(skipped), &format!("{:.1} MB, {rows} tranches", bytes as f64 / 1e6));
    line("an unchanged response", &speed(unchanged), &format!("{:.2} times that", ratio(unchanged, skipped)));
    line("a fresh response, parsed into records", &speed(fresh), &format!("{:.2} times that", ratio(fresh, skipped)));
    Ok(())
}
