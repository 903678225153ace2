//! The limits of a list: rows are read in chunks until there are enough, or until their size exceeds a limit.

use std::io::{self, Write};

use serde::Serialize;

use super::Store;
use super::error::StoreFault;
use super::readers::ReaderKind;

/// The number of rows per statement. PostgreSQL returns all rows of a statement at once, so this also limits memory.
pub(super) const CHUNK_ROWS: u32 = 100;

/// The size limit of a list for the web pages, in bytes of stored text. A row in memory needs several times as much.
const MAX_LIST_BYTES: usize = 4 * 1024 * 1024;

impl Store {
    /// Returns the size limit of a list in bytes. Commands have none.
    pub(super) fn max_list_bytes(&self) -> usize {
        if self.readers == ReaderKind::Daemon { usize::MAX } else { MAX_LIST_BYTES }
    }
}

/// The size that a list may still have.
pub(super) struct SizeLimit {
    left_bytes: usize,
}

impl SizeLimit {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { left_bytes: max_bytes }
    }

    /// Returns `true` if a row fits into the list. A row fits if the rows before it are below the limit, so that each list has
    /// at least one row.
    pub(super) fn take(&mut self, row_bytes: usize) -> bool {
        let fits = self.left_bytes > 0;
        self.left_bytes = self.left_bytes.saturating_sub(row_bytes);
        fits
    }
}

/// Reads at most `limit` rows, and stops at the size limit. `read` returns the rows after a given row, at most the given number, each
/// with its size in bytes. Returns the rows, and whether the size limit left out any.
pub(super) fn in_chunks<T>(
    limit: u32,
    max_bytes: usize,
    mut read: impl FnMut(Option<&T>, u32) -> Result<Vec<(T, usize)>, StoreFault>,
) -> Result<(Vec<T>, bool), StoreFault> {
    let mut rows: Vec<T> = Vec::new();
    let mut size = SizeLimit::new(max_bytes);
    let mut left = limit;
    while left > 0 {
        let wanted = left.min(CHUNK_ROWS);
        let chunk = read(rows.last(), wanted)?;
        let is_last = chunk.len() < wanted as usize;
        for (row, bytes) in chunk {
            if !size.take(bytes) {
                return Ok((rows, true));
            }
            rows.push(row);
        }
        if is_last {
            break;
        }
        left -= wanted;
    }
    Ok((rows, false))
}

/// Returns the size of a value as JSON.
pub(super) fn json_bytes(value: &impl Serialize) -> usize {
    struct Count(usize);
    impl Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be serialized is refused later, where it is written.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_read_in_chunks_and_ends_at_its_limits() {
        // Numbers from 1 to 1,000 of 10 bytes each.
        let list = |limit: u32, max_bytes: usize| {
            let read = |after: Option<&u32>, count: u32| {
                assert!(count <= CHUNK_ROWS);
                let first = after.copied().unwrap_or(0) + 1;
                Ok((first..=1000).take(count as usize).map(|number| (number, 10)).collect())
            };
            in_chunks(limit, max_bytes, read).expect("read")
        };
        for (limit, max_bytes, rows, is_cut) in [
            (0, 1, 0, false),
            (1, 1, 1, false),
            (2, 1, 1, true),
            (250, usize::MAX, 250, false),
            (2000, usize::MAX, 1000, false),
            (2000, 10_000, 1000, false),
            (2000, 9_990, 999, true),
            (150, 1_500, 150, false),
            (150, 1_200, 120, true),
        ] {
            let expected: Vec<u32> = (1..=rows).collect();
            assert_eq!(list(limit, max_bytes), (expected, is_cut), "{limit} rows, {max_bytes} bytes");
        }
    }

    #[test]
    fn json_size_is_that_of_the_text() {
        let value = serde_json::json!({"a": [1, "é\n", null]});
        assert_eq!(json_bytes(&value), value.to_string().len());
    }
}
