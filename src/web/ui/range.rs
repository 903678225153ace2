//! The time range of a list: a period up to now, or two dates.

use serde::Serialize;

use super::page::Choice;

/// The labels and query values of the periods that are links.
const LENGTHS: [(&str, &str); 4] = [("Any time", ""), ("24 h", "24h"), ("7 days", "7d"), ("30 days", "30d")];

/// The query parameters of a time range. An empty parameter sets no bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RangeQuery {
    /// A period up to now, such as `7d`.
    pub since: String,
    /// The first day or instant.
    pub from: String,
    /// The last day or instant.
    pub to: String,
}

/// A time range with links to other periods.
#[derive(Clone, Debug, Serialize)]
pub struct RangeView {
    #[serde(flatten)]
    pub query: RangeQuery,
    pub choices: Vec<Choice>,
    pub is_bounded: bool,
}

impl RangeQuery {
    /// Reads the fields of a form. A `from` date replaces the period in `since`.
    pub fn from_form(since: &str, from: &str, to: &str) -> Self {
        let (from, to) = (from.trim().to_owned(), to.trim().to_owned());
        let since = if from.is_empty() { since.trim().to_owned() } else { String::new() };
        Self { since, from, to }
    }

    pub fn is_bounded(&self) -> bool {
        [&self.since, &self.from, &self.to].iter().any(|text| !text.is_empty())
    }

    pub fn parameters(&self) -> [(&'static str, &str); 3] {
        [("since", &self.since), ("from", &self.from), ("to", &self.to)]
    }

    /// Returns the view of this range. `link` builds the URL of another range.
    pub fn view(&self, link: impl Fn(&Self) -> String) -> RangeView {
        let choice = |(name, length): (&str, &str)| {
            let range = Self { since: length.to_owned(), ..Self::default() };
            Choice::new(name, link(&range), *self == range)
        };
        RangeView { choices: LENGTHS.into_iter().map(choice).collect(), is_bounded: self.is_bounded(), query: self.clone() }
    }
}
