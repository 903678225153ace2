//! The time of a list on its page: links to the last day, week and month, and the days that are chosen. Pure.

use serde::Serialize;

use super::page::Choice;

/// The lengths that are one click away, as an address names them.
const LENGTHS: [(&str, &str); 4] = [("Any time", ""), ("24 h", "24h"), ("7 days", "7d"), ("30 days", "30d")];

/// The time of a list, as an address names it: what is empty bounds nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RangeWords {
    /// How far back.
    pub since: String,
    /// The first day, or an instant.
    pub from: String,
    /// The last day, or an instant.
    pub to: String,
}

/// The time of a list, with the links to others.
#[derive(Clone, Debug, Serialize)]
pub struct RangeView {
    #[serde(flatten)]
    pub words: RangeWords,
    pub choices: Vec<Choice>,
    pub is_bounded: bool,
}

impl RangeWords {
    /// As a form sends it: days that are chosen stand for whatever length was chosen before.
    pub fn of(since: &str, from: &str, to: &str) -> Self {
        let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
        let since = if from.is_empty() { since.trim().to_owned() } else { String::new() };
        Self { since, from, to }
    }

    pub fn is_bounded(&self) -> bool {
        [&self.since, &self.from, &self.to].iter().any(|text| !text.is_empty())
    }

    /// Its parameters of an address.
    pub fn parameters(&self) -> [(&'static str, &str); 3] {
        [("since", &self.since), ("from", &self.from), ("to", &self.to)]
    }

    /// With links to other lengths, made by `link` of the parameters of each.
    pub fn view(&self, link: impl Fn(&Self) -> String) -> RangeView {
        let choice = |(name, length): (&str, &str)| {
            let of = Self { since: length.to_owned(), ..Self::default() };
            let is_current = *self == of;
            Choice::new(name, link(&of), is_current)
        };
        RangeView { choices: LENGTHS.into_iter().map(choice).collect(), is_bounded: self.is_bounded(), words: self.clone() }
    }
}
