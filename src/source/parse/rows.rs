//! The rows of one page, read one at a time: what cannot be used is noted and left out.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserializer,
    de::{DeserializeSeed, IgnoredAny, SeqAccess, Visitor},
};

use super::record::{UsableRecord, note_shares};
use model::wire::{self, Maybe, PathStep};

/// Reads the rows of one page, leaving out those that stood on an earlier one and those without a usable key.
pub(super) struct PageRows<'a, T> {
    pub skip: &'a [usize],
    pub records: &'a mut Vec<T>,
}

impl<'de, T: UsableRecord> DeserializeSeed<'de> for PageRows<'_, T> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        // A second try begins where this page began.
        deserializer.deserialize_seq(PageRowsVisitor { rows: self, marker: PhantomData })
    }
}

struct PageRowsVisitor<'a, T> {
    rows: PageRows<'a, T>,
    marker: PhantomData<T>,
}

impl<'de, T: UsableRecord> Visitor<'de> for PageRowsVisitor<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let PageRows { skip, records } = self.rows;
        let began = records.len();
        let mut index = 0;
        loop {
            let more = wire::at(PathStep::Index(index), || {
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
                                note_shares(&record);
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
