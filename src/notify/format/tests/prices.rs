//! Stale prices: each format names their day, once, and never in the first line.

use super::*;
use model::Notification;

const WORDS: &str = "prices of 3 Nov 2025";

/// Formats for programs, which contain each alert with its own field or annotation.
const PROGRAMS: [&str; 3] = ["cliffwatch", "alertmanager", "alertmanager-api"];

/// Formats that send each alert as an incident of its own.
const PAGERS: [&str; 2] = ["pagerduty", "opsgenie"];

fn stale(notification: Notification, at: &str) -> Notification {
    let mut notification = notification;
    notification.body.stale_price_as_of = Some(time(at));
    notification
}

/// The strings in the requests for a delivery. Some formats contain the message twice, as plain text and with markup.
async fn strings_of(format: &str, delivery: &DueDelivery) -> Vec<String> {
    sent(format, delivery).await.iter().flat_map(|request| texts(&body_of(request))).collect()
}

/// The strings that contain some words, which each of them contains once.
fn with_once<'s>(words: &str, strings: &'s [String]) -> Vec<&'s String> {
    let named: Vec<&String> = strings.iter().filter(|text| text.contains(words)).collect();
    assert!(named.iter().all(|text| text.matches(words).count() == 1), "{words}: {strings:#?}");
    named
}

/// All formats whose message is written by this program.
fn formats() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|spec| spec.name).filter(|name| *name != "template")
}

#[tokio::test]
async fn each_format_names_the_day_of_stale_prices_once() {
    let fresh = due(1, "ops", vec![unlock()]);
    let old = due(1, "ops", vec![stale(unlock(), "2025-11-03T02:01:35Z")]);
    for format in formats() {
        assert!(with_once("prices of", &strings_of(format, &fresh).await).is_empty(), "{format}: the price is not stale");
        let strings = strings_of(format, &old).await;
        if format == "cliffwatch" {
            assert_eq!(with_once("2025-11-03T02:01:35Z", &strings).len(), 1, "{strings:#?}");
            continue;
        }
        let named = with_once(WORDS, &strings);
        assert!(!named.is_empty(), "{format}: {strings:#?}");
        let lines = named.iter().flat_map(|text| text.lines()).flat_map(|line| line.split("<br>"));
        assert!(
            lines.filter(|line| line.contains(WORDS)).all(|line| !line.contains("$33")),
            "{format}: in the line of the value: {named:#?}"
        );
    }
}

#[tokio::test]
async fn alerts_with_prices_of_one_day_share_the_words() {
    let old: Vec<Notification> = group(3).into_iter().map(|notification| stale(notification, "2025-11-03T02:01:35Z")).collect();
    let delivery = due(4, "ops", old);
    for format in formats().filter(|format| *format != "cliffwatch") {
        let strings = strings_of(format, &delivery).await;
        let named = with_once(WORDS, &strings).len();
        let is_for_each = PROGRAMS.contains(&format) || PAGERS.contains(&format);
        assert!(if is_for_each { named >= 3 } else { (1..3).contains(&named) }, "{format}: {strings:#?}");
    }
}

#[tokio::test]
async fn alerts_with_prices_of_different_days_each_name_theirs() {
    let mut old = group(3);
    old[0] = stale(old[0].clone(), "2025-11-03T02:01:35Z");
    old[1] = stale(old[1].clone(), "2025-12-24T00:00:00Z");
    let delivery = due(4, "ops", old);
    // A text message shows only the first alert.
    for format in formats().filter(|format| !matches!(*format, "cliffwatch" | "twilio")) {
        let strings = strings_of(format, &delivery).await;
        for words in [WORDS, "prices of 24 Dec 2025"] {
            assert!(!with_once(words, &strings).is_empty(), "{format}, {words}: {strings:#?}");
        }
    }
}
