//! The rows of one page, read one at a time: what cannot be used is noted and left out.

use super::record::{UsableRecord, note_shares};
use model::wire::{self, Maybe, ReadRows};

/// Reads the rows of one page, leaving out those that stood on an earlier one (`skip`) and those without a usable key.
pub(super) fn read<T: UsableRecord + ReadRows>(text: &str, skip: &[usize], records: &mut Vec<T>) -> serde_json::Result<()> {
    // A second try begins where this page began.
    let began = records.len();
    let mut lost_dates = wire::lost_dates();
    let read = T::read_rows(text, skip, &mut |row| {
        let lost_before = std::mem::replace(&mut lost_dates, wire::lost_dates());
        match row {
            Maybe::Value(record) => {
                wire::count_item()?;
                let has_lost_date = record.is_undated() && lost_dates > lost_before;
                match record.unusable().or(has_lost_date.then_some("an event whose date cannot be read")) {
                    Some(why) => wire::note_dropped(|| format!("{why}; the record is left out")),
                    None => {
                        note_shares(&record);
                        records.push(record);
                    }
                }
            }
            Maybe::Null => wire::note_dropped(|| "expected an object, got null; the record is left out".into()),
            Maybe::Absent => {} // noted and counted where it did not fit
        }
        Ok(())
    });
    if read.is_err() {
        records.truncate(began);
    }
    read
}
