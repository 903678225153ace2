//! The unlocks of a month, compared with sums over the same windows and with a reference that reads the records.

use chrono::{Datelike, TimeDelta};
use tempfile::TempDir;

use super::support::*;
use model::*;

fn days(count: i64) -> Vec<SumWindow> {
    let first = time("2026-03-01T00:00:00Z") - TimeDelta::milliseconds(1);
    (0..count).map(|day| SumWindow::of(first + TimeDelta::days(day), TimeDelta::days(1))).collect()
}

fn filter() -> MonthFilter {
    MonthFilter {
        days: days(31),
        linear_from: time("2026-02-01T00:00:00Z"),
        watch: all_tokens(),
        tokens: None,
        min_value: None,
        per_day: 3,
        bands: 4,
        order: UnlockOrder::Date,
        offset: 0,
        rows: 1000,
        rates: 10,
    }
}

fn sized(date: &str, value: f64, precision: &str) -> Record {
    let event = serde_json::json!({"unlockDate": date, "cliffUnlocks": {"cliffAmount": 1.0, "cliffValue": value, "valueToMarketCap": 1e9 / value,
        "allocationBreakdown": [{"unlockDate": date, "allocationName": "Team", "cliffAmount": 1.0, "unlockPrecision": precision}]}});
    Record::Unlock(serde_json::from_value(event).expect("an event"))
}

fn linear(start: &str, end: &str, amount: f64) -> Record {
    let part = serde_json::json!({"beginDate": start, "endDate": end, "linearAmount": amount, "allocationName": "Team", "referencePrice": 2.0,
        "referencePriceUpdatedTime": "2026-03-01T00:00:00Z", "unlockPrecision": "second"});
    let event = serde_json::json!({"unlockDate": start, "linearUnlocks": {"allocationBreakdown": [part]}});
    Record::Unlock(serde_json::from_value(event).expect("an event"))
}

/// Some tokens with random cliffs of every precision around a month, and one with a linear unlock.
async fn random_world(random: &mut fastrand::Rng) -> (TempDir, crate::Store, Vec<(TokenId, Record)>) {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let (mut feeds, mut records) = (Vec::new(), Vec::new());
    for token in 0..5 {
        let slug = format!("token-{token}");
        let cliffs = (0..12).map(|_| {
            let date = time("2026-02-10T00:00:00Z") + TimeDelta::minutes(random.i64(0..70 * 24 * 60));
            let date = if random.bool() { date.date_naive().and_time(chrono::NaiveTime::MIN).and_utc() } else { date };
            let precision = ["second", "hour", "day", "week", "month"][random.usize(..5)];
            sized(&date.to_rfc3339(), f64::from(random.u32(1..1000)) * 1e3, precision)
        });
        let cliffs: Vec<Record> = cliffs.collect();
        records.extend(cliffs.iter().map(|record| (TokenId::from(slug.as_str()), record.clone())));
        let puts = cliffs.into_iter().enumerate().map(|(number, record)| put(&format!("e{number}"), record));
        feeds.push(schedule(&slug, puts.collect()));
    }
    feeds.push(schedule("linear", vec![put("a", linear("2026-03-11T00:00:00Z", "2026-03-21T00:00:00Z", 1000.0))]));
    store.commit(at(Commit { feeds, ..Commit::default() })).await.expect("committed");
    (directory, store, records)
}

#[tokio::test]
async fn month_matches_records_and_totals() {
    let mut random = fastrand::Rng::with_seed(0xca1e);
    for world in 0..12 {
        let (_directory, store, records) = random_world(&mut random).await;
        let month = store.unlock_month(filter()).await.expect("read");
        let windows = [vec![filter().window()], days(31)].concat();
        let (totals, _) = store.supply_totals(filter().window().at, windows, all_tokens(), now()).await.expect("read");
        let sum = totals.windows[0];
        assert_eq!(month.sum.cliff.count, sum.cliff.count, "world {world}");
        // A date that is inexact to the month before cannot be in this month, although that month ends at midnight.
        let (first, after) = (time("2026-03-01T00:00:00Z"), time("2026-04-01T00:00:00Z"));
        let is_inexact = |(_, record): &&(TokenId, Record)| {
            let date = record.unlock().and_then(|event| event.unlock_date.copied()).expect("a date");
            let of = record.interval().expect("a date");
            !(first..after).contains(&date) && of.end > first && of.start < after && of.start < of.end
        };
        assert_eq!(month.sum.inexact.count, records.iter().filter(is_inexact).count() as u64, "world {world}");
        assert!(month.inexact.iter().all(|unlock| unlock.interval.end > first && unlock.interval.start < after), "world {world}");
        assert!((month.sum.cliff.value - sum.cliff.value).abs() < 0.01, "world {world}");
        assert!((month.sum.linear.value - sum.linear.value).abs() < 0.01 && sum.linear.value > 1999.0, "world {world}");
        for (index, day) in month.days.iter().enumerate() {
            let total = totals.windows[index + 1].cliff;
            assert!(day.sum.count == total.count && (day.sum.value - total.value).abs() < 0.01, "world {world}, day {index}");
            // The largest of the records whose date is on that day.
            let on_day = |record: &&(TokenId, Record)| {
                let date = record.1.unlock().and_then(|event| event.unlock_date.copied()).expect("a date");
                (date.month(), date.day()) == (3, u32::try_from(index).expect("a day") + 1)
            };
            let value = |record: &(TokenId, Record)| record.1.unlock().and_then(|event| event.cliff_value()).expect("a value");
            let mut expected: Vec<f64> = records.iter().filter(on_day).map(value).collect();
            expected.sort_by(|a, b| b.total_cmp(a));
            assert_eq!(day.sum.count, expected.len() as u64, "world {world}, day {index}");
            expected.truncate(3);
            let shown: Vec<f64> = day.largest.iter().filter_map(|unlock| unlock.value).collect();
            assert_eq!(shown.len(), expected.len(), "world {world}, day {index}");
            assert!(shown.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 0.01), "world {world}: {shown:?} {expected:?}");
            for unlock in &day.largest {
                let is_of_record = |(token, record): &(TokenId, Record)| {
                    *token == unlock.token.id
                        && record
                            .interval()
                            .is_some_and(|of| of.start == unlock.interval.start && of.precision == unlock.interval.precision)
                };
                assert!(records.iter().any(is_of_record), "world {world}: {unlock:?}");
            }
        }
        assert_eq!(month.rows.len() as u64, sum.cliff.count, "world {world}");
        let nominal = |row: &UpcomingRow| row.tracked.record.unlock().and_then(|event| event.unlock_date.copied());
        assert!(month.rows.is_sorted_by_key(nominal), "world {world}");
    }
}

#[tokio::test]
async fn list_is_sorted_and_filtered() {
    let mut random = fastrand::Rng::with_seed(7);
    let (_directory, store, _records) = random_world(&mut random).await;
    let values = async |filter: MonthFilter| -> Vec<f64> {
        let month = store.unlock_month(filter).await.expect("read");
        month.rows.iter().filter_map(|row| row.tracked.record.unlock()?.cliff_value()).collect()
    };
    let all = values(MonthFilter { order: UnlockOrder::Value, ..filter() }).await;
    assert!(all.len() > 10 && all.is_sorted_by(|a, b| a >= b), "{all:?}");
    let by_share = values(MonthFilter { order: UnlockOrder::Share, ..filter() }).await;
    assert!(by_share.is_sorted() && by_share.len() == all.len(), "the share is larger for a smaller value: {by_share:?}");
    assert_eq!(values(MonthFilter { order: UnlockOrder::Value, offset: 2, rows: 3, ..filter() }).await, all[2..5]);
    let large = values(MonthFilter { order: UnlockOrder::Value, min_value: Some(all[4]), ..filter() }).await;
    assert!((4..=6).contains(&large.len()), "{large:?}");
    let one = MonthFilter { tokens: Some(vec!["token-1".into(), "unknown".into()]), ..filter() };
    let month = store.unlock_month(one).await.expect("read");
    assert!(!month.rows.is_empty() && month.rows.iter().all(|row| row.token.id.as_str() == "token-1"));
    assert!(month.bands.is_empty() && month.sum.linear.count == 0);
}

#[tokio::test]
async fn bands_cover_the_days_in_which_tokens_unlock() {
    let mut random = fastrand::Rng::with_seed(7);
    let (_directory, store, _records) = random_world(&mut random).await;
    let month = store.unlock_month(filter()).await.expect("read");
    let [band] = month.bands.as_slice() else { panic!("{:?}", month.bands) };
    assert_eq!((band.window.at, band.window.until), (time("2026-03-11T00:00:00Z"), time("2026-03-21T00:00:00Z")));
    assert!((band.sum.value - 2000.0).abs() < 0.01 && month.band_total == 1, "{band:?}");
    assert_eq!(band.changes.iter().map(|(_, is_rise)| *is_rise).collect::<Vec<_>>(), [true, false]);
    assert_eq!((month.rates.len(), month.rates_total), (2, 2));
    // Of the ten days, five remain.
    let rest = MonthFilter { linear_from: time("2026-03-16T00:00:00Z"), ..filter() };
    let month = store.unlock_month(rest).await.expect("read");
    assert!((month.sum.linear.value - 1000.0).abs() < 0.01, "{month:?}");
    let [band] = month.bands.as_slice() else { panic!("{:?}", month.bands) };
    assert_eq!((band.window.at, month.rates_total), (time("2026-03-16T00:00:00Z"), 1));
    let small = store.unlock_month(MonthFilter { min_value: Some(2001.0), ..filter() }).await.expect("read");
    assert!(small.bands.is_empty());
}
