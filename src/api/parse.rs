//! From the raw pages of an answer to typed records. Pure.
//!
//! Reading is lenient: what does not fit is noted and left out, and the rest is used. Only where a list as a whole is missing, or
//! the answer is about something else than was asked, is there no answer.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, SeqAccess, Visitor},
};

use super::{Answer, Payload, Request, route::Route, shown, walk::Pages};
use crate::wire::{self, Gathered, Lenient, Maybe, Oddity, Step};

/// Oddities kept of one answer.
const MAX_ODDITIES: usize = 100;

/// Tokens, USD or percent beyond which a number is noted as absurd.
const ABSURD: f64 = 1e30;

/// Percent of the market cap beyond which a ratio is noted as absurd.
const ABSURD_PERCENT: f64 = 1e6;

/// Reads all pages of an answer.
///
/// # Errors
/// Where the pages hold no answer to what was asked; the text says why.
pub(super) fn answer(request: &Request, route: Route, pages: &Pages) -> Result<Answer, String> {
    let mut notes = Notes { many_pages: pages.pages.len() > 1, ..Notes::default() };
    let payload = match route {
        Route::TokenList => Payload::Tokens(list(pages, &mut notes)?),
        Route::Upcoming => Payload::Upcoming(list(pages, &mut notes)?),
        Route::UnlockEvents => Payload::UnlockEvents(list(pages, &mut notes)?),
        Route::DailyEmission | Route::WeeklyEmission => Payload::Emissions(list(pages, &mut notes)?),
        Route::InvestorList => Payload::Investors(list(pages, &mut notes)?),
        Route::Burn => Payload::Burns(object(pages, &mut notes, |data: &mut wire::BurnData| {
            is_about(request, data.token_id.as_str())?;
            let total = data.total_burn_amount.copied();
            keep_usable(&mut data.burns, "burns", total)
        })?),
        Route::Buyback => Payload::Buybacks(object(pages, &mut notes, |data: &mut wire::BuybackData| {
            is_about(request, data.token_id.as_str())?;
            let total = data.total_buyback_amount.copied();
            keep_usable(&mut data.buybacks, "buybacks", total)
        })?),
        Route::Allocations => Payload::Allocations(object(pages, &mut notes, |data: &mut wire::AllocationsData| {
            keep_usable(&mut data.allocations, "allocations", None)
        })?),
        Route::InvestorDetail => Payload::Investor(object(pages, &mut notes, |data: &mut wire::InvestorDetail| {
            is_about(request, data.investor_id.as_str())?;
            if let (Request::Investor { id }, None) = (request, data.investor_id.as_str()) {
                data.investor_id = id.clone().into();
            }
            keep_usable(&mut data.funding_rounds, "fundingRounds", None)
        })?),
    };
    Ok(Answer { payload, hash: pages.hash(), oddities: notes.oddities, oddities_total: notes.total, dropped: notes.dropped })
}

/// What was odd on all pages together.
#[derive(Default)]
struct Notes {
    many_pages: bool,
    oddities: Vec<Oddity>,
    total: usize,
    dropped: usize,
}

impl Notes {
    fn add(&mut self, page: usize, gathered: Gathered) {
        self.total += gathered.total;
        self.dropped += gathered.dropped;
        let room = MAX_ODDITIES.saturating_sub(self.oddities.len());
        self.oddities.extend(gathered.oddities.into_iter().take(room).map(|oddity| {
            let path = if self.many_pages { format!("page {}: {}", page + 1, oddity.path) } else { oddity.path };
            Oddity { path, ..oddity }
        }));
    }
}

/// Reads a list that may go over several pages.
fn list<T: Record>(pages: &Pages, notes: &mut Notes) -> Result<Vec<T>, String> {
    let mut records = Vec::new();
    for (index, page) in pages.pages.iter().enumerate() {
        let skip = pages.repeated.get(index).map_or(&[][..], Vec::as_slice);
        let (read, gathered) = read(page.data(), |text| {
            let mut json = serde_json::Deserializer::from_str(text);
            Rows { skip, records: &mut records }.deserialize(&mut json)
        });
        notes.add(index, gathered);
        read?;
    }
    Ok(records)
}

/// Reads an object, which has one page, and checks it.
fn object<T: Lenient>(pages: &Pages, notes: &mut Notes, check: impl FnOnce(&mut T) -> Result<(), String>) -> Result<T, String> {
    let text = pages.pages.first().map_or("", |page| page.data());
    let mut check = Some(check);
    let (read, gathered) = read(text, |text| {
        let value: Maybe<T> = serde_json::from_str(text)?;
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
fn read<T>(text: &str, mut read: impl FnMut(&str) -> Result<T, serde_json::Error>) -> (Result<T, String>, Gathered) {
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
        wire::note(|| format!("{replaced} numbers or characters cannot be represented; they are ignored"));
        read(&decodable)
    });
    (second.map_err(|error| unreadable(&error)), gathered)
}

fn unreadable(error: &serde_json::Error) -> String {
    format!("`data` cannot be read: {}", shown::excerpt(&error.to_string()))
}

/// Reads the rows of one page, leaving out those that stood on an earlier one and those without a usable key.
struct Rows<'a, T> {
    skip: &'a [usize],
    records: &'a mut Vec<T>,
}

impl<'de, T: Record> DeserializeSeed<'de> for Rows<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // A second try begins where this page began.
        deserializer.deserialize_seq(RowsVisitor { rows: self, marker: PhantomData })
    }
}

struct RowsVisitor<'a, T> {
    rows: Rows<'a, T>,
    marker: PhantomData<T>,
}

impl<'de, T: Record> Visitor<'de> for RowsVisitor<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Rows { skip, records } = self.rows;
        let began = records.len();
        let mut index = 0;
        loop {
            let more = wire::at(Step::Index(index), || {
                if skip.binary_search(&index).is_ok() {
                    let more = seq.next_element::<IgnoredAny>()?.is_some();
                    wire::note(|| "the same row stood before; it is read once".into());
                    return Ok(more);
                }
                let lost_dates = wire::lost_dates();
                match seq.next_element::<Maybe<T>>() {
                    Ok(Some(Maybe::Value(record))) => {
                        wire::count_item()?;
                        let has_lost_date = record.is_undated() && wire::lost_dates() > lost_dates;
                        match record.unusable().or(has_lost_date.then_some("an event whose date cannot be read")) {
                            Some(why) => wire::note_dropped(|| format!("{why}; the record is left out")),
                            None => {
                                note_amounts(&record);
                                records.push(record);
                            }
                        }
                        Ok(true)
                    }
                    Ok(Some(Maybe::Null)) => {
                        wire::note_dropped(|| "expected an object, got null; the record is left out".into());
                        Ok(true)
                    }
                    Ok(Some(Maybe::Absent)) => Ok(true), // noted and counted where it did not fit
                    Ok(None) => Ok(false),
                    Err(error) => Err(error),
                }
            });
            match more {
                Ok(true) => index += 1,
                Ok(false) => return Ok(()),
                Err(error) => {
                    records.truncate(began);
                    return Err(error);
                }
            }
        }
    }
}

/// A record of a list: whether it can be told from others, and its numbers.
trait Record: Lenient {
    /// Why it cannot be used, if it cannot.
    fn unusable(&self) -> Option<&'static str>;
    /// Whether it has no date although its kind has one, so that it would count as one whose date is to be determined.
    fn is_undated(&self) -> bool {
        false
    }
    /// Numbers that should be neither negative nor absurd, with their names.
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>));
}

fn note_amounts<T: Record>(record: &T) {
    record.amounts(&mut |name, value| {
        let Some(value) = value else { return };
        let most = if name.ends_with("ToMarketCap") || name.ends_with("ercentage") { ABSURD_PERCENT } else { ABSURD };
        if value < 0.0 {
            wire::note(|| format!("{name} is negative ({value}); it is kept"));
        } else if value > most {
            wire::note(|| format!("{name} is beyond all measure ({value:e}); it is kept"));
        }
    });
}

/// Drops the unusable records of a list inside an object. The list itself must be there, unless the total says that there is
/// nothing.
fn keep_usable<T: Record>(items: &mut Maybe<Vec<T>>, name: &'static str, total: Option<f64>) -> Result<(), String> {
    let Some(list) = items.get_mut() else {
        return if total == Some(0.0) { Ok(()) } else { Err(format!("`data.{name}` is missing or no list")) };
    };
    let mut index = 0;
    list.retain(|record| {
        let is_usable = wire::at(Step::Field(name), || {
            wire::at(Step::Index(index), || {
                let why = record.unusable();
                match why {
                    Some(why) => wire::note_dropped(|| format!("{why}; the record is left out")),
                    None => note_amounts(record),
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
fn is_about(request: &Request, told: Option<&str>) -> Result<(), String> {
    let asked = match request {
        Request::Token { token, .. } => token.as_str(),
        Request::Investor { id } => id.as_str(),
        Request::TokenList | Request::Upcoming { .. } | Request::Investors => return Ok(()),
    };
    match told {
        Some(told) if !told.trim().eq_ignore_ascii_case(asked.trim()) => {
            Err(format!("the answer is about \"{}\" instead", shown::excerpt(told)))
        }
        _ => Ok(()),
    }
}

fn is_blank(text: &Maybe<String>) -> bool {
    text.as_str().is_none_or(|text| text.trim().is_empty())
}

impl Record for wire::TokenItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.id).then_some("a token without `id`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("circulatingSupply", self.circulating_supply.copied());
        tell("marketCap", self.market_cap.copied());
        tell("maxSupply", self.max_supply.copied());
        tell("totalLockedAmount", self.total_locked_amount.copied());
        tell("tbdLockedAmount", self.tbd_locked_amount.copied());
        tell("unlockedAmount", self.unlocked_amount.copied());
    }
}

impl Record for wire::UpcomingItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.token_id).then_some("an event without `tokenId`")
    }
    fn is_undated(&self) -> bool {
        self.upcoming_event.get().is_some_and(Record::is_undated)
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("marketCap", self.market_cap.copied());
        tell("releasedPercentage", self.released_percentage.copied());
        if let Some(event) = self.upcoming_event.get() {
            event.amounts(tell);
        }
    }
}

impl Record for wire::UnlockEvent {
    /// An event without a date is one whose date is to be determined, as long as it says what would unlock.
    fn unusable(&self) -> Option<&'static str> {
        let has_parts = self.cliff_unlocks.get().is_some_and(|cliffs| !cliffs.allocation_breakdown.items().is_empty())
            || self.linear_unlocks.get().is_some_and(|linears| !linears.allocation_breakdown.items().is_empty());
        (self.unlock_date.get().is_none() && !has_parts).then_some("an event without `unlockDate` and without any allocation")
    }
    fn is_undated(&self) -> bool {
        self.unlock_date.get().is_none()
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        if let Some(cliffs) = self.cliff_unlocks.get() {
            tell("cliffUnlocks.cliffAmount", cliffs.cliff_amount.copied());
            tell("cliffUnlocks.cliffValue", cliffs.cliff_value.copied());
            tell("cliffUnlocks.totalCliffAmount", cliffs.total_cliff_amount.copied());
            tell("cliffUnlocks.totalCliffValue", cliffs.total_cliff_value.copied());
            tell("cliffUnlocks.valueToMarketCap", cliffs.value_to_market_cap.copied());
            for (index, part) in cliffs.allocation_breakdown.items().iter().enumerate() {
                if part.cliff_amount.copied().is_some_and(is_odd) || part.cliff_value.copied().is_some_and(is_odd) {
                    tell(&format!("cliffUnlocks.allocationBreakdown[{index}].cliffAmount"), part.cliff_amount.copied());
                    tell(&format!("cliffUnlocks.allocationBreakdown[{index}].cliffValue"), part.cliff_value.copied());
                }
            }
        }
        if let Some(linears) = self.linear_unlocks.get() {
            tell("linearUnlocks.linearAmount", linears.linear_amount.copied());
            tell("linearUnlocks.linearValue", linears.linear_value.copied());
            for (index, part) in linears.allocation_breakdown.items().iter().enumerate() {
                if part.linear_amount.copied().is_some_and(is_odd) {
                    tell(&format!("linearUnlocks.allocationBreakdown[{index}].linearAmount"), part.linear_amount.copied());
                }
            }
        }
    }
}

fn is_odd(value: f64) -> bool {
    !(0.0..=ABSURD).contains(&value)
}

impl Record for wire::Emission {
    fn unusable(&self) -> Option<&'static str> {
        self.start_date.get().is_none().then_some("an emission without `startDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("unlockAmount", self.unlock_amount.copied());
        tell("unlockValue", self.unlock_value.copied());
    }
}

impl Record for wire::InvestorItem {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.investor_id).then_some("an investor without `investorId`")
    }
    fn amounts(&self, _: &mut dyn FnMut(&str, Option<f64>)) {}
}

impl Record for wire::Burn {
    fn unusable(&self) -> Option<&'static str> {
        self.burn_date.get().is_none().then_some("a burn without `burnDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("amount", self.amount.copied());
        tell("value", self.value.copied());
    }
}

impl Record for wire::Buyback {
    fn unusable(&self) -> Option<&'static str> {
        self.buyback_date.get().is_none().then_some("a buyback without `buybackDate`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("tokenAmount", self.token_amount.copied());
        tell("value", self.value.copied());
    }
}

impl Record for wire::Allocation {
    fn unusable(&self) -> Option<&'static str> {
        is_blank(&self.allocation_name).then_some("an allocation without `allocationName`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("allocationAmount", self.allocation_amount.copied());
        tell("allocationUnlockedAmount", self.allocation_unlocked_amount.copied());
        tell("allocationLockedAmount", self.allocation_locked_amount.copied());
    }
}

impl Record for wire::FundingRound {
    fn unusable(&self) -> Option<&'static str> {
        (is_blank(&self.token_id) && is_blank(&self.round_name)).then_some("a round without `tokenId` and `roundName`")
    }
    fn amounts(&self, tell: &mut dyn FnMut(&str, Option<f64>)) {
        tell("totalAmountRaisedinThatRound", self.total_amount_raised.copied());
        tell("valuation", self.valuation.copied());
    }
}

/// `json` with what no decoder takes replaced: numbers beyond a double become `null`, half characters (lone surrogates) become
/// U+FFFD. Says how many there were.
fn decodable(json: &str) -> (String, usize) {
    let mut text = String::with_capacity(json.len());
    let mut replaced = 0;
    let mut rest = json;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '"' => {
                let end = string_end(rest);
                let (string, after) = rest.split_at(end);
                replaced += push_string(string, &mut text);
                rest = after;
                continue;
            }
            '-' | '0'..='9' => rest.find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9')).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (token, after) = rest.split_at(taken);
        if token.parse::<f64>().is_ok_and(f64::is_infinite) {
            text.push_str("null");
            replaced += 1;
        } else {
            text.push_str(token);
        }
        rest = after;
    }
    (text, replaced)
}

/// Bytes of the string that `text` begins with, both quotes included.
fn string_end(text: &str) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Copies a string, its half characters replaced; says how many there were.
fn push_string(string: &str, text: &mut String) -> usize {
    let unit = |escape: &str| {
        escape.strip_prefix("\\u").and_then(|digits| digits.get(..4)).and_then(|digits| u32::from_str_radix(digits, 16).ok())
    };
    let mut replaced = 0;
    let mut rest = string;
    while let Some(at) = rest.find('\\') {
        let (plain, escape) = rest.split_at(at);
        text.push_str(plain);
        let taken = match unit(escape) {
            Some(0xd800..0xdc00) if escape.get(6..).and_then(unit).is_some_and(|low| (0xdc00..0xe000).contains(&low)) => 12,
            Some(0xd800..0xe000) => {
                text.push('\u{fffd}');
                replaced += 1;
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            Some(_) => 6,
            None => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        let (kept, after) = escape.split_at(taken.min(escape.len()));
        text.push_str(kept);
        rest = after;
    }
    text.push_str(rest);
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{envelope, walk},
        *,
    };
    use crate::supply::Endpoint;

    fn token(endpoint: Endpoint) -> Request {
        let day = chrono::NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day");
        Request::Token { endpoint, token: "aptos".into(), start: day, end: day }
    }

    fn pages(data: &[&str]) -> Pages {
        let is_list = data.iter().all(|data| data.trim_start().starts_with('['));
        let mut walk = walk::Walk::new(is_list, None, 1 << 30, None);
        for (index, page) in data.iter().enumerate() {
            let body =
                format!(r#"{{"metadata":{{"page":{},"totalPages":{}}},"status":true,"data":{page}}}"#, index + 1, data.len());
            walk.take(envelope::read(body.into_bytes(), None, is_list).expect("an envelope"));
        }
        walk.into_pages()
    }

    fn read(request: &Request, data: &[&str]) -> Result<Answer, String> {
        answer(request, Route::of(request).expect("a route"), &pages(data))
    }

    fn told(answer: &Answer) -> Vec<String> {
        answer.oddities.iter().map(|oddity| format!("{}: {}", oddity.path, oddity.problem)).collect()
    }

    #[test]
    fn a_bad_field_costs_the_field_and_a_record_without_key_the_record() {
        let data = r#"[{"id":"a","marketCap":"n/a"},{"name":"no key"},null,7,{"id":"b","maxSupply":-1}]"#;
        let answer = read(&Request::TokenList, &[data]).expect("an answer");
        let Payload::Tokens(tokens) = &answer.payload else { panic!("expected tokens") };
        assert_eq!(tokens.iter().filter_map(|token| token.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(
            told(&answer),
            [
                "[0].marketCap: expected a number, got the text \"n/a\"; the field is ignored",
                "[1]: a token without `id`; the record is left out",
                "[2]: expected an object, got null; the record is left out",
                "[3]: expected an object, got the number 7; the field is ignored",
                "[4]: maxSupply is negative (-1); it is kept",
            ]
        );
        assert_eq!((answer.oddities_total, answer.dropped), (5, 3));
    }

    #[test]
    fn an_undated_event_is_kept_where_it_says_what_would_unlock() {
        let data = r#"[{"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},{"tokenName":"Aptos"},{"unlockDate":"soon"}]"#;
        let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
        assert!(matches!(&answer.payload, Payload::UnlockEvents(events) if events.len() == 1));
        assert_eq!(answer.dropped, 2);
    }

    #[test]
    fn an_event_whose_date_cannot_be_read_is_not_one_without_a_date() {
        let data = r#"[{"unlockDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team","unlockDate":"soon"}]}},
                       {"unlockDate":20260301,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                       {"unlockDate":null,"cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}},
                       {"unlockDate":"2026-03-01","latestUpdateDate":"soon","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"}]}}]"#;
        let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
        let Payload::UnlockEvents(events) = &answer.payload else { panic!("expected events") };
        let dates: Vec<bool> = events.iter().map(|event| event.unlock_date.get().is_some()).collect();
        assert_eq!((dates, answer.dropped), (vec![false, true], 2));
        assert!(told(&answer).contains(&"[1]: an event whose date cannot be read; the record is left out".to_owned()));
    }

    #[test]
    fn a_lost_part_counts_as_left_out_so_that_nobody_takes_it_for_removed() {
        let data = r#"[{"unlockDate":"2026-03-01","cliffUnlocks":{"allocationBreakdown":"gone"}},
                       {"unlockDate":"2026-03-02","cliffUnlocks":[]},
                       {"unlockDate":"2026-03-03","cliffUnlocks":{"allocationBreakdown":[{"allocationName":"Team"},null,3]}}]"#;
        let answer = read(&token(Endpoint::UnlockEvents), &[data]).expect("an answer");
        assert!(matches!(&answer.payload, Payload::UnlockEvents(events) if events.len() == 3));
        assert_eq!(answer.dropped, 4);
    }

    #[test]
    fn a_missing_list_is_no_empty_list() {
        for data in [r#"{"tokenId":"aptos"}"#, r#"{"burns":null}"#, r#"{"burns":"none","totalBurnAmount":3}"#] {
            let problem = read(&token(Endpoint::Burn), &[data]).expect_err("no answer");
            assert_eq!(problem, "`data.burns` is missing or no list");
        }
        assert!(read(&token(Endpoint::Burn), &[r#"{"burns":null,"totalBurnAmount":0}"#]).is_ok(), "nothing, and it says so");
        assert!(read(&token(Endpoint::Burn), &[r#"{"burns":[]}"#]).is_ok());
    }

    #[test]
    fn an_answer_about_something_else_is_none() {
        let problem = read(&token(Endpoint::Burn), &[r#"{"tokenId":"arb\u001b[2J","burns":[]}"#]).expect_err("no answer");
        assert_eq!(problem, r#"the answer is about "arb\u{1b}[2J" instead"#);
        assert!(read(&token(Endpoint::Burn), &[r#"{"tokenId":"Aptos","burns":[]}"#]).is_ok());
    }

    #[test]
    fn pages_are_joined_and_oddities_name_their_page() {
        let answer = read(&Request::TokenList, &[r#"[{"id":"a"}]"#, r#"[{"id":"b","name":1}]"#]).expect("an answer");
        assert!(matches!(&answer.payload, Payload::Tokens(tokens) if tokens.len() == 2));
        assert_eq!(told(&answer), ["page 2: [0].name: expected a text, got the number 1; the field is ignored"]);
    }

    #[test]
    fn a_number_or_character_that_cannot_be_represented_costs_only_itself() {
        let data =
            r#"[{"id":"a","marketCap":1e999,"name":"x\ud800y","symbol":"\ud83d\ude80 \\ud800"},{"id":"b","maxSupply":-1E+9999}]"#;
        let answer = read(&Request::TokenList, &[data]).expect("an answer");
        let Payload::Tokens(tokens) = &answer.payload else { panic!("expected tokens") };
        let first = tokens.first().expect("a token");
        assert_eq!((first.name.as_str(), first.symbol.as_str()), (Some("x\u{fffd}y"), Some("🚀 \\ud800")));
        assert_eq!((first.market_cap.copied(), tokens.len()), (None, 2));
        assert_eq!(told(&answer), [": 3 numbers or characters cannot be represented; they are ignored"]);
    }

    #[test]
    fn a_flood_of_tiny_records_is_refused() {
        let flood = format!("[{}]", vec![r#"{"id":1}"#; 600_000].join(","));
        assert!(read(&Request::TokenList, &[&flood]).expect_err("no answer").contains("more than 500000 items"));
        let nested = format!(r#"[{{"id":"a","x":[{}]}}]"#, vec!["0"; 600_000].join(","));
        assert!(read(&Request::TokenList, &[&nested]).expect_err("no answer").contains("more than 500000 items"));
    }

    #[test]
    fn what_is_decodable_is_left_as_it_is() {
        for json in [
            r#"{"a\"}\\":[1.5e3,-0,"\u00e9\ud83d\ude80\n"],"b":null,"é":"€"}"#,
            "\"open",
            "[1",
            r#"{"a":"\"#,
            r#""\ud83d"#,
            r#""\u12"#,
        ] {
            let (text, replaced) = decodable(json);
            if replaced == 0 {
                assert_eq!(text, json);
            }
        }
        assert_eq!(decodable(r#""\ud83d""#), ("\"\u{fffd}\"".to_owned(), 1));
    }

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let names = [
            "id",
            "tokenId",
            "unlockDate",
            "cliffUnlocks",
            "allocationBreakdown",
            "burns",
            "burnDate",
            "amount",
            "startDate",
            "x",
        ];
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            "[ -~\u{0}\u{202e}é]{0,12}".prop_map(Into::into),
            Just("2026-03-09T00:00:00Z".into()),
        ];
        leaf.prop_recursive(6, 64, 6, move |inner| {
            let key = prop_oneof![prop::sample::select(names.to_vec()).prop_map(str::to_owned), "[a-z\u{202e}]{0,4}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::vec((key, inner), 0..6)
                    .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn whatever_a_list_holds_it_is_read(rows in prop::collection::vec(json(), 0..6)) {
            let data = serde_json::to_string(&rows).expect("JSON");
            let lists = [Endpoint::UnlockEvents, Endpoint::DailyEmission].map(token);
            for request in lists.into_iter().chain([Request::TokenList, Request::Investors]) {
                let answer = read(&request, &[&data]).expect("a list is an answer");
                prop_assert!(answer.oddities_total >= answer.oddities.len());
                prop_assert!(answer.oddities.iter().all(|oddity| !oddity.problem.chars().any(char::is_control)));
            }
        }

        #[test]
        fn whatever_an_object_holds_nothing_breaks(value in json()) {
            let data = serde_json::json!({ "tokenId": "aptos", "burns": value, "allocations": value }).to_string();
            let is_list = value.is_array();
            prop_assert_eq!(read(&token(Endpoint::Burn), &[&data]).is_ok(), is_list);
            prop_assert_eq!(read(&token(Endpoint::Allocations), &[&data]).is_ok(), is_list);
        }

        #[test]
        fn making_text_decodable_never_breaks_it(text in "[\\[\\]{}:,\"\\\\ud89a0-9eE+. -]{0,40}|\\PC{0,20}") {
            let (once, _) = decodable(&text);
            if serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok() {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&once).is_ok(), "{once}");
            }
        }
    }
}
