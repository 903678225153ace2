//! Parses the pages of a response into typed records. Pure.
//!
//! An invalid field or record is skipped with a parse warning. A response fails only if its JSON cannot be read, if its list is missing, or
//! if it is about another token.

mod decodable;
mod record;
mod rows;

use crate::{page_walk::ResponsePages, redact, route::EndpointRoute};
use decodable::decodable;
use model::poll::{Payload, PollRequest, PollResponse};
use model::wire::{self, Maybe, ParseWarning, PathStep, ReadJson, ReadReport, ReadRows};
use record::{UsableRecord, note_shares};

/// The maximum number of stored parse warnings per response. Further warnings are only counted.
const MAX_WARNINGS: usize = 100;

/// Parses all pages of a response.
///
/// # Errors
///
/// Fails if the pages are not a valid response to `request`.
pub(super) fn response(request: &PollRequest, route: EndpointRoute, pages: &ResponsePages) -> Result<PollResponse, String> {
    let mut notes = ParseNotes { many_pages: pages.pages.len() > 1, ..ParseNotes::default() };
    let payload = match route {
        EndpointRoute::TokenList => Payload::Tokens(list(pages, &mut notes)?),
        EndpointRoute::Upcoming => Payload::Upcoming(list(pages, &mut notes)?),
        EndpointRoute::UnlockEvents => Payload::UnlockEvents(list(pages, &mut notes)?),
        EndpointRoute::DailyEmission | EndpointRoute::WeeklyEmission => Payload::Emissions(list(pages, &mut notes)?),
        EndpointRoute::InvestorList => Payload::Investors(list(pages, &mut notes)?),
        EndpointRoute::Burn => Payload::Burns(object(pages, &mut notes, |data: &mut wire::BurnData| {
            check_subject(request, data.token_id.as_str())?;
            let total = data.total_burn_amount.copied();
            drop_unusable(&mut data.burns, "burns", total)
        })?),
        EndpointRoute::Buyback => Payload::Buybacks(object(pages, &mut notes, |data: &mut wire::BuybackData| {
            check_subject(request, data.token_id.as_str())?;
            let total = data.total_buyback_amount.copied();
            drop_unusable(&mut data.buybacks, "buybacks", total)
        })?),
        EndpointRoute::Allocations => Payload::Allocations(object(pages, &mut notes, |data: &mut wire::AllocationsData| {
            drop_unusable(&mut data.allocations, "allocations", None)
        })?),
        EndpointRoute::InvestorDetail => Payload::Investor(object(pages, &mut notes, |data: &mut wire::InvestorDetail| {
            check_subject(request, data.investor_id.as_str())?;
            if let (PollRequest::Investor { id }, None) = (request, data.investor_id.as_str()) {
                data.investor_id = id.clone().into();
            }
            drop_unusable(&mut data.funding_rounds, "fundingRounds", None)
        })?),
    };
    Ok(PollResponse {
        payload,
        hash: pages.hash(),
        parse_warnings: notes.parse_warnings,
        parse_warnings_total: notes.total,
        dropped: notes.dropped,
    })
}

/// The parse warnings of all pages.
#[derive(Default)]
struct ParseNotes {
    many_pages: bool,
    parse_warnings: Vec<ParseWarning>,
    total: usize,
    dropped: usize,
}

impl ParseNotes {
    fn add(&mut self, page: usize, gathered: ReadReport) {
        self.total += gathered.total;
        self.dropped += gathered.dropped;
        let room = MAX_WARNINGS.saturating_sub(self.parse_warnings.len());
        self.parse_warnings.extend(gathered.parse_warnings.into_iter().take(room).map(|warning| {
            let path = if self.many_pages { format!("page {}: {}", page + 1, warning.path) } else { warning.path };
            ParseWarning { path, ..warning }
        }));
    }
}

fn list<T: UsableRecord + ReadRows>(pages: &ResponsePages, notes: &mut ParseNotes) -> Result<Vec<T>, String> {
    let mut records = Vec::new();
    for (index, page) in pages.pages.iter().enumerate() {
        let skip = pages.repeated.get(index).map_or(&[][..], Vec::as_slice);
        let (read, gathered) = read(page.data(), |text| rows::read(text, skip, &mut records));
        notes.add(index, gathered);
        read?;
    }
    records.shrink_to_fit();
    Ok(records)
}

/// Parses an object, which always has one page, and checks it.
fn object<T>(pages: &ResponsePages, notes: &mut ParseNotes, check: impl FnOnce(&mut T) -> Result<(), String>) -> Result<T, String>
where
    Maybe<T>: ReadJson,
{
    let text = pages.pages.first().map_or("", |page| page.data());
    let mut check = Some(check);
    let (read, gathered) = read(text, |text| {
        let value = Maybe::<T>::read_json(text)?;
        // The check runs here so that its warnings are recorded too.
        Ok(value.into_option().map(|mut value| match check.take().map_or(Ok(()), |check| check(&mut value)) {
            Ok(()) => Ok(value),
            Err(problem) => Err(problem),
        }))
    });
    notes.add(0, gathered);
    read?.ok_or_else(|| "`data` is not an object".to_owned())?
}

/// Parses a page with `read`. If that fails because of an unrepresentable number or character, tries again without it.
fn read<T>(text: &str, mut read: impl FnMut(&str) -> Result<T, serde_json::Error>) -> (Result<T, String>, ReadReport) {
    let (first, gathered) = wire::gather(|| read(text));
    let error = match first {
        Ok(value) => return (Ok(value), gathered),
        Err(error) => error,
    };
    let (decodable, replaced) = decodable(text);
    if replaced == 0 {
        return (Err(unreadable(&error)), gathered);
    }
    let (second, gathered) = wire::gather(|| {
        wire::note(|| match replaced {
            1 => "a number or character cannot be represented; it is ignored".to_owned(),
            _ => format!("{replaced} numbers or characters cannot be represented; they are ignored"),
        });
        read(&decodable)
    });
    (second.map_err(|error| unreadable(&error)), gathered)
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("`data` cannot be read: {}", redact::excerpt(&error.to_string()))
}

/// Drops the unusable records of a list in an object. The list must not be missing unless the total is zero.
fn drop_unusable<T: UsableRecord>(items: &mut Maybe<Vec<T>>, name: &'static str, total: Option<f64>) -> Result<(), String> {
    let Some(list) = items.get_mut() else {
        return if total == Some(0.0) { Ok(()) } else { Err(format!("`data.{name}` is missing or not a list")) };
    };
    let mut index = 0;
    list.retain(|record| {
        let is_usable = wire::at(PathStep::Field(name), || {
            wire::at(PathStep::Index(index), || {
                let why = record.unusable();
                match &why {
                    Some(why) => wire::note_dropped(|| format!("{why}; the record is left out")),
                    None => note_shares(record),
                }
                why.is_none()
            })
        });
        index += 1;
        is_usable
    });
    Ok(())
}

/// Checks that a response is about the requested token or investor, because a broken cache must not change a token's history. Ignores case.
/// Accepts responses that do not name their subject, and responses about many tokens. Returns the problem as text.
fn check_subject(request: &PollRequest, actual: Option<&str>) -> Result<(), String> {
    let expected = match request {
        PollRequest::Token { token, .. } => token.as_str(),
        PollRequest::Investor { id } => id.as_str(),
        PollRequest::TokenList | PollRequest::Upcoming { .. } | PollRequest::Investors => return Ok(()),
    };
    match actual {
        Some(actual) if !actual.trim().eq_ignore_ascii_case(expected.trim()) => {
            Err(format!("the response is about \"{}\" instead", redact::excerpt(actual)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
