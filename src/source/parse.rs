//! From the raw pages of an answer to typed records. Pure.
//!
//! Reading is lenient: what does not fit is noted and left out, and the rest is used. Only where a list as a whole is missing, or
//! the answer is about something else than was asked, is there no answer.

mod decodable;
mod record;
mod rows;

use crate::{page_walk::AnswerPages, redact, route::EndpointRoute};
use decodable::decodable;
use model::poll::{Payload, PollAnswer, PollRequest};
use model::wire::{self, Maybe, ParseWarning, PathStep, ReadJson, ReadReport, ReadRows};
use record::{UsableRecord, note_shares};

/// Parse warnings that are kept of one answer; more are counted.
const MAX_WARNINGS: usize = 100;

/// Reads all pages of an answer.
///
/// # Errors
/// Where the pages hold no answer to what was asked; the text says why.
pub(super) fn answer(request: &PollRequest, route: EndpointRoute, pages: &AnswerPages) -> Result<PollAnswer, String> {
    let mut notes = ParseNotes { many_pages: pages.pages.len() > 1, ..ParseNotes::default() };
    let payload = match route {
        EndpointRoute::TokenList => Payload::Tokens(list(pages, &mut notes)?),
        EndpointRoute::Upcoming => Payload::Upcoming(list(pages, &mut notes)?),
        EndpointRoute::UnlockEvents => Payload::UnlockEvents(list(pages, &mut notes)?),
        EndpointRoute::DailyEmission | EndpointRoute::WeeklyEmission => Payload::Emissions(list(pages, &mut notes)?),
        EndpointRoute::InvestorList => Payload::Investors(list(pages, &mut notes)?),
        EndpointRoute::Burn => Payload::Burns(object(pages, &mut notes, |data: &mut wire::BurnData| {
            is_about(request, data.token_id.as_str())?;
            let total = data.total_burn_amount.copied();
            keep_usable(&mut data.burns, "burns", total)
        })?),
        EndpointRoute::Buyback => Payload::Buybacks(object(pages, &mut notes, |data: &mut wire::BuybackData| {
            is_about(request, data.token_id.as_str())?;
            let total = data.total_buyback_amount.copied();
            keep_usable(&mut data.buybacks, "buybacks", total)
        })?),
        EndpointRoute::Allocations => Payload::Allocations(object(pages, &mut notes, |data: &mut wire::AllocationsData| {
            keep_usable(&mut data.allocations, "allocations", None)
        })?),
        EndpointRoute::InvestorDetail => Payload::Investor(object(pages, &mut notes, |data: &mut wire::InvestorDetail| {
            is_about(request, data.investor_id.as_str())?;
            if let (PollRequest::Investor { id }, None) = (request, data.investor_id.as_str()) {
                data.investor_id = id.clone().into();
            }
            keep_usable(&mut data.funding_rounds, "fundingRounds", None)
        })?),
    };
    Ok(PollAnswer { payload, hash: pages.hash(), oddities: notes.oddities, oddities_total: notes.total, dropped: notes.dropped })
}

/// What was odd on all pages together.
#[derive(Default)]
struct ParseNotes {
    many_pages: bool,
    oddities: Vec<ParseWarning>,
    total: usize,
    dropped: usize,
}

impl ParseNotes {
    fn add(&mut self, page: usize, gathered: ReadReport) {
        self.total += gathered.total;
        self.dropped += gathered.dropped;
        let room = MAX_WARNINGS.saturating_sub(self.oddities.len());
        self.oddities.extend(gathered.oddities.into_iter().take(room).map(|oddity| {
            let path = if self.many_pages { format!("page {}: {}", page + 1, oddity.path) } else { oddity.path };
            ParseWarning { path, ..oddity }
        }));
    }
}

/// Reads a list that may go over several pages.
fn list<T: UsableRecord + ReadRows>(pages: &AnswerPages, notes: &mut ParseNotes) -> Result<Vec<T>, String> {
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

/// Reads an object, which has one page, and checks it.
fn object<T>(pages: &AnswerPages, notes: &mut ParseNotes, check: impl FnOnce(&mut T) -> Result<(), String>) -> Result<T, String>
where
    Maybe<T>: ReadJson,
{
    let text = pages.pages.first().map_or("", |page| page.data());
    let mut check = Some(check);
    let (read, gathered) = read(text, |text| {
        let value = Maybe::<T>::read_json(text)?;
        // Checked while notes are gathered: what the check drops is noted as well.
        Ok(value.into_option().map(|mut value| match check.take().map_or(Ok(()), |check| check(&mut value)) {
            Ok(()) => Ok(value),
            Err(problem) => Err(problem),
        }))
    });
    notes.add(0, gathered);
    read?.ok_or_else(|| "`data` is not an object".to_owned())?
}

/// Reads one page with `read`; where its JSON cannot be decoded because of a number or a character, once more without those.
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

/// Drops the unusable records of a list inside an object. The list itself must be there, unless the total says that there is
/// nothing.
fn keep_usable<T: UsableRecord>(items: &mut Maybe<Vec<T>>, name: &'static str, total: Option<f64>) -> Result<(), String> {
    let Some(list) = items.get_mut() else {
        return if total == Some(0.0) { Ok(()) } else { Err(format!("`data.{name}` is missing or no list")) };
    };
    let mut index = 0;
    list.retain(|record| {
        let is_usable = wire::at(PathStep::Field(name), || {
            wire::at(PathStep::Index(index), || {
                let why = record.unusable();
                match why {
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

/// Whether the answer names what was asked for. A cache that mixes answers up must not rewrite a token's history.
fn is_about(request: &PollRequest, told: Option<&str>) -> Result<(), String> {
    let asked = match request {
        PollRequest::Token { token, .. } => token.as_str(),
        PollRequest::Investor { id } => id.as_str(),
        PollRequest::TokenList | PollRequest::Upcoming { .. } | PollRequest::Investors => return Ok(()),
    };
    match told {
        Some(told) if !told.trim().eq_ignore_ascii_case(asked.trim()) => {
            Err(format!("the answer is about \"{}\" instead", redact::excerpt(told)))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
