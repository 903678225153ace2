//! From the bytes of an answer to records, beside counting their bytes as JSON alone.

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
    let mut answers: Vec<(PollRequest, Vec<u8>, ContentHash)> = Vec::new();
    let mut rows = 0;
    for (token, events, text) in bundled()? {
        rows += tranches(&events);
        let request = PollRequest::Token { endpoint: Endpoint::UnlockEvents, token, start: NaiveDate::MIN, end: NaiveDate::MAX };
        let body = format!(r#"{{"metadata":{{"queryDate":"2026-01-01T00:00:00Z"}},"status":true,"data":{text}}}"#).into_bytes();
        match read_body(&request, 4, body.clone(), None) {
            Ok(PollOutcome::Fresh(answer)) => answers.push((request, body, answer.hash)),
            other => bail!("a bundled schedule cannot be read: {other:?}"),
        }
    }
    let bytes: usize = answers.iter().map(|(_, body, _)| body.len()).sum();
    let speed = |took: Duration| format!("{:.0} MB/s", bytes as f64 / 1e6 / took.as_secs_f64());

    let skipped = best(|| answers.iter().filter(|(_, body, _)| serde_json::from_slice::<IgnoredAny>(body).is_ok()).count());
    let fresh =
        best(|| answers.iter().map(|(request, body, _)| read_body(request, 4, body.clone(), None)).filter(Result::is_ok).count());
    let unchanged = best(|| {
        answers.iter().map(|(request, body, hash)| read_body(request, 4, body.clone(), Some(*hash))).filter(Result::is_ok).count()
    });
    line("JSON gone through, nothing kept", &speed(skipped), &format!("{:.1} MB, {rows} tranches", bytes as f64 / 1e6));
    line("an unchanged answer", &speed(unchanged), &format!("{:.2} times that", ratio(unchanged, skipped)));
    line("a fresh answer, read into records", &speed(fresh), &format!("{:.2} times that", ratio(fresh, skipped)));
    Ok(())
}
