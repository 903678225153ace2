//! The packed format of a notification's chart: the dates and amounts around an unlock. As JSON, they would be the
//! larger part of the notification.

use super::error::StoreFault;
use super::sql::Row;
use model::{Precision, SeriesPoint, wire};
use wire::{Pack, Packer, Unpacker};

/// The version of the format.
const FORMAT: u64 = 1;

/// The codes of the precisions. Append only.
const PRECISIONS: [Precision; 6] =
    [Precision::Second, Precision::Hour, Precision::Day, Precision::Week, Precision::Month, Precision::ToBeDetermined];

/// Packs a chart, or returns `None` if it is empty.
pub(super) fn pack(points: &[SeriesPoint]) -> Option<Vec<u8>> {
    if points.is_empty() {
        return None;
    }
    let mut to = Packer::default();
    to.count(FORMAT);
    to.count(points.len() as u64);
    for point in points {
        to.time(point.at);
        to.count(PRECISIONS.iter().position(|known| *known == point.precision).unwrap_or(0) as u64);
    }
    points.iter().for_each(|point| point.amount.pack(&mut to));
    Some(to.into_bytes())
}

/// Unpacks a chart, or returns `None` if it is damaged.
fn unpack(body: &[u8]) -> Option<Vec<SeriesPoint>> {
    let mut from = Unpacker::new(body);
    from.count().filter(|format| *format == FORMAT)?;
    let mut points = Vec::new();
    for _ in 0..from.length()? {
        let at = from.time()?;
        let precision = *PRECISIONS.get(usize::try_from(from.count()?).ok()?)?;
        points.push(SeriesPoint { at, amount: 0.0, precision });
    }
    for point in &mut points {
        point.amount = f64::unpack(&mut from)?;
    }
    from.is_done().then_some(points)
}

/// Reads a chart from a column. Returns `None` if the column is null: then the chart is in the body, or there is none.
/// `of` names the notification in errors.
pub(super) fn read(row: &Row<'_>, at: usize, of: &str) -> Result<Option<Vec<SeriesPoint>>, StoreFault> {
    let body: Option<Vec<u8>> = row.get(at)?;
    let points = body.map(|body| {
        let what = || format!("the chart of the notification {of} cannot be unpacked");
        unpack(&body).ok_or_else(|| StoreFault::BadRow { what: what(), source: None })
    });
    points.transpose()
}

#[cfg(test)]
mod tests;
