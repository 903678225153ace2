//! Parses the rows of a page one at a time.

use super::record::{UsableRecord, note_shares};
use model::wire::{self, Maybe, ReadRows};

/// Parses the rows of a page, except the rows in `skip` and unusable rows.
pub(super) fn read<T: UsableRecord + ReadRows>(text: &str, skip: &[usize], records: &mut Vec<T>) -> serde_json::Result<()> {
    // After an error, the records of this page are removed again.
    let began = records.len();
    let mut lost_dates = wire::lost_dates();
    let read = T::read_rows(text, skip, &mut |row| {
        let lost_before = std::mem::replace(&mut lost_dates, wire::lost_dates());
        match row {
            Maybe::Value(record) => {
                wire::count_item()?;
                let has_lost_date = record.is_undated() && lost_dates > lost_before;
                match record.unusable().or(has_lost_date.then_some("an event whose date cannot be read".into())) {
                    Some(why) => wire::note_dropped(|| format!("{why}; the record is left out")),
                    None => {
                        note_shares(&record);
                        records.push(record);
                    }
                }
            }
            Maybe::Null => wire::note_dropped(|| "expected an object, got null; the record is left out".into()),
            Maybe::Absent => {} // already recorded as a warning
        }
        Ok(())
    });
    if read.is_err() {
        records.truncate(began);
    }
    read
}
