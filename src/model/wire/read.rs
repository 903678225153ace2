//! Parsing functions that are compiled once, in this crate. Generic parsing code would be compiled again in every crate that calls
//! it.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error as _, IgnoredAny, SeqAccess, Visitor},
};

use super::*;

/// A type that is parsed from a whole JSON text.
pub trait ReadJson: Sized {
    /// # Errors
    /// If the text is not JSON or has another type.
    fn read_json(text: &str) -> serde_json::Result<Self>;
}

/// A callback for one row of a list. An error stops the parsing.
pub type TakeRow<'a, T> = &'a mut dyn FnMut(Maybe<T>) -> serde_json::Result<()>;

/// A record that comes in lists.
pub trait ReadRows: Lenient {
    /// Calls `take` for each row of a list, except for those at the sorted indices in `skip`.
    ///
    /// # Errors
    /// If the text is not a JSON list, or if `take` fails.
    fn read_rows(text: &str, skip: &[usize], take: TakeRow<'_, Self>) -> serde_json::Result<()>;
}

macro_rules! read_here {
    (whole: $($whole:ty),*; rows: $($row:ty),*;) => {
        $(impl ReadJson for $whole {
            fn read_json(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }
        })*
        $(impl ReadRows for $row {
            fn read_rows(text: &str, skip: &[usize], take: TakeRow<'_, Self>) -> serde_json::Result<()> {
                Rows { skip, take, marker: PhantomData }.deserialize(&mut serde_json::Deserializer::from_str(text))
            }
        })*
    };
}

read_here! {
    whole: TokenItem, Maybe<Vec<TokenItem>>, Maybe<Vec<UnlockEvent>>, Maybe<Vec<Emission>>, Vec<FundingRound>,
        Maybe<BurnData>, Maybe<BuybackData>, Maybe<AllocationsData>, Maybe<InvestorDetail>, BurnData, BuybackData, AllocationsData,
        Vec<UnlockEvent>, Vec<TokenItem>, Vec<Emission>, InvestorsFile, Vec<PriceRow>;
    rows: TokenItem, UpcomingItem, UnlockEvent, Emission, InvestorItem;
}

struct Rows<'a, T> {
    skip: &'a [usize],
    take: TakeRow<'a, T>,
    marker: PhantomData<T>,
}

impl<'de, T: Lenient> DeserializeSeed<'de> for Rows<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Lenient> Visitor<'de> for Rows<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let mut index = 0;
        while at(PathStep::Index(index), || {
            if self.skip.binary_search(&index).is_ok() {
                let more = seq.next_element::<IgnoredAny>()?.is_some();
                note(|| "the same row stood before; it is read once".into());
                return Ok(more);
            }
            match seq.next_element::<Maybe<T>>()? {
                Some(row) => (self.take)(row).map(|()| true).map_err(A::Error::custom),
                None => Ok(false),
            }
        })? {
            index += 1;
        }
        Ok(())
    }
}
