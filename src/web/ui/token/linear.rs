//! The running and coming linear unlocks of a token.

use serde::Serialize;

use model::{KnownSupply, LinearAhead, LinearPiece, SumWindow, Timestamp, TokenSnapshot, TokenSupply, phrase, wire::UnlockEvent};

/// The maximum number of rows.
const MAX_ROWS: usize = 60;

/// A linear unlock that has not ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TokenLinearRow {
    allocation: String,
    begin: String,
    end: String,
    is_running: bool,
    /// Whether it is known only from daily emission.
    is_from_emission: bool,
    /// Tokens. `None` if unknown, as for all amounts.
    per_day: Option<f64>,
    /// USD per day.
    value_per_day: Option<f64>,
    total: Option<f64>,
    remaining: Option<f64>,
}

/// Returns the linear unlocks, soonest first.
pub(super) fn rows(
    snapshot: &TokenSnapshot,
    events: &[&UnlockEvent],
    supply: &TokenSupply,
    now: Timestamp,
) -> Vec<TokenLinearRow> {
    let mut found: Vec<(LinearPiece, String, bool)> = Vec::new();
    for event in events {
        let parts = event.linear_unlocks.get().map_or(&[][..], |linear| linear.allocation_breakdown.items());
        let date = event.unlock_date.copied();
        let piece =
            |part| Some((LinearPiece::of_part(part, date)?, part.allocation_name.as_str().unwrap_or_default().to_owned(), false));
        found.extend(parts.iter().filter_map(piece));
    }
    let ahead = snapshot.schedule_header().filter(|_| supply.known == KnownSupply::All).and_then(LinearAhead::of_header);
    for run in ahead.iter().flat_map(|ahead| &ahead.runs) {
        let (start, end) = (run.starts_at(), run.ends_at());
        let amount = Some(run.amount_between(start, end));
        let piece = LinearPiece::new(start.timestamp_millis(), end.timestamp_millis(), amount);
        found.extend(piece.map(|piece| (piece, run.allocation.clone(), true)));
    }
    let at = now.timestamp_millis();
    found.retain(|(piece, ..)| piece.ends_at > at);
    found.sort_by(|(a, name, _), (b, other, _)| {
        (a.starts_at.max(at), a.ends_at, name).cmp(&(b.starts_at.max(at), b.ends_at, other))
    });
    let price = supply.price.map(|price| price.usd);
    let row = |(piece, allocation, is_from_emission): (LinearPiece, String, bool)| {
        let (begin, end) = (Timestamp::from_timestamp_millis(piece.starts_at)?, Timestamp::from_timestamp_millis(piece.ends_at)?);
        let left = piece.share_in(SumWindow { at: now, until: end });
        Some(TokenLinearRow {
            allocation: if allocation.is_empty() { "unnamed".to_owned() } else { allocation },
            begin: phrase::day(begin),
            end: phrase::day(end),
            is_running: piece.runs_at(at),
            is_from_emission,
            per_day: piece.per_day(),
            value_per_day: piece.per_day().zip(price).map(|(per_day, price)| per_day * price),
            total: piece.amount,
            remaining: piece.amount.zip(left).map(|(amount, left)| amount * left),
        })
    };
    found.into_iter().take(MAX_ROWS).filter_map(row).collect()
}
