use super::*;
use model::{Interval, Token, TokenId, UnlockDay, UnlockSum, Watch, config};
use testkit::time;

const NOW: &str = "2026-03-09T12:00:00Z";
const HOSTILE: &str = "<script>alert(1)</script>";

fn shown(text: &str) -> ShownMonth {
    ShownMonth::parse(text, time(NOW))
}

fn token(name: &str) -> Token {
    let mut token = Token::unknown(TokenId::from(name));
    token.item.symbol = name.to_owned().into();
    token
}

fn unlock(name: &str, date: &str, precision: Precision, value: f64) -> MonthUnlock {
    let interval = Interval::of(time(date), precision).expect("a date");
    MonthUnlock { token: token(name), interval, amount: Some(1.0), value: Some(value), share: Some(2.5) }
}

fn filter(shown: ShownMonth) -> MonthFilter {
    let settings = config::WatchSettings { tokens: vec!["*".into()], ..config::WatchSettings::default() };
    MonthFilter {
        days: shown.days(),
        linear_from: time(NOW),
        watch: Watch::build(&settings).expect("valid"),
        tokens: None,
        min_value: None,
        per_day: PER_DAY,
        bands: BANDS,
        order: UnlockOrder::Date,
        offset: 0,
        rows: 0,
        rates: 0,
    }
}

fn rendered(month: &UnlockMonth, form: MonthForm) -> String {
    let shown = shown("");
    let filter = filter(shown);
    let parts = MonthParts {
        now: time(NOW),
        shown,
        filter: &filter,
        month,
        is_list: false,
        form,
        subscription: FeedSubscription { url: "/calendar.ics?group=portfolio".to_owned(), ..FeedSubscription::default() },
        parameters: vec![("group", "portfolio".to_owned())],
    };
    page(parts, PageFrame::of(crate::ui::page::Section::Calendar, time(NOW)))
}

fn month(name: &str) -> UnlockMonth {
    let mut month = UnlockMonth { days: vec![UnlockDay::default(); 31], ..UnlockMonth::default() };
    let sum = |count, value| UnlockSum { count, value, ..UnlockSum::default() };
    month.days[15] = UnlockDay {
        sum: sum(6, 123e6),
        largest: vec![
            unlock(name, "2026-03-16T13:00:00Z", Precision::Second, 100e6),
            unlock("JUP", "2026-03-16T00:00:00Z", Precision::Month, 4e6),
        ],
    };
    month.inexact = vec![unlock("SUI", "2026-04-02T00:00:00Z", Precision::Week, 5e6)];
    month.sum.cliff = sum(6, 123e6);
    month.sum.inexact = sum(1, 5e6);
    month
}

#[test]
fn months_are_the_current_one_and_later_ones() {
    assert_eq!(
        ["", "2026-03", "2026-02", "1990-01", "9999-12", "2026-13", "x"].map(|text| shown(text).first),
        [shown("").first; 7]
    );
    assert_eq!(shown("2026-04").neighbors(), [Some(String::new()), Some("2026-05".to_owned())]);
    assert_eq!(shown("").neighbors(), [None, Some("2026-04".to_owned())]);
    assert_eq!(shown("2031-03").neighbors(), [Some("2031-02".to_owned()), None]);
}

/// An unlock at midnight belongs to the day that begins.
#[test]
fn days_cover_the_month_without_gaps() {
    for (text, count) in [("2026-03", 31), ("2026-04", 30), ("2027-02", 28), ("2028-02", 29)] {
        let days = shown(text).days();
        assert_eq!(days.len(), count, "{text}");
        assert!(days.windows(2).all(|pair| pair[0].until == pair[1].at), "{text}");
        let midnight = time(&format!("{text}-01T00:00:00Z"));
        assert!(days[0].at < midnight && midnight <= days[0].until && midnight + TimeDelta::days(1) > days[0].until, "{text}");
    }
}

#[test]
fn grid_begins_on_monday_and_marks_today() {
    let html = rendered(&month("ARB"), MonthForm::default());
    // 1 March 2026 is a Sunday.
    assert_eq!(html.matches("<td class=\"outside\"></td>").count(), 6 + 5, "{html}");
    let today = html.split("<td class=\"today\">").nth(1).expect("a day");
    assert!(today.starts_with("<div class=\"day\"><span class=\"number\" aria-hidden=\"true\">9<"), "{today}");
    assert_eq!((html.matches("<td class=\"past\">").count(), html.matches("class=\"number\"").count()), (8, 31));
}

#[test]
fn dots_show_values_and_inexact_dates() {
    let html = rendered(&month("ARB"), MonthForm::default());
    let cell = html.split(">16</span>").nth(1).and_then(|rest| rest.split("</td>").next()).expect("the day");
    for text in [
        "<span class=\"total\">$123M</span>",
        "title=\"ARB: $100.00M (2.50% of market cap) on 16 Mar 2026, 13:00 UTC\"",
        "<a class=\"unlock inexact\" href=\"/tokens/JUP\"",
        "r=\"9\"",
        "and 4 more",
    ] {
        assert!(cell.contains(text), "{text}: {cell}");
    }
    // A twenty-fifth of the value has a fifth of the radius, above the smallest one.
    assert!(cell.contains("r=\"3.8\""), "{cell}");
    assert!(
        html.contains("May also happen in this month") && html.contains("plus up to 1 unlock ($5.00M) with an inexact date"),
        "{html}"
    );
}

#[test]
fn filters_can_be_cleared_and_hide_what_they_exclude() {
    let form = MonthForm { kind: "cliff".to_owned(), min_value: "2500000".to_owned(), ..MonthForm::default() };
    let html = rendered(&month("ARB"), form);
    assert!(html.contains(">Clear</a>") && html.contains("<option selected>2500000</option>"), "{html}");
    assert!(!html.contains("id=\"bands\"") && html.contains("id=\"month\""), "{html}");
    // Links keep the other parameters.
    assert!(html.contains("href=\"/calendar?group=portfolio&amp;view=list\""), "{html}");
    let html = rendered(&month("ARB"), MonthForm { kind: "linear".to_owned(), ..MonthForm::default() });
    assert!(html.contains("id=\"bands\"") && !html.contains("id=\"month\""), "{html}");
    assert!(!rendered(&month("ARB"), MonthForm::default()).contains(">Clear</a>"));
}

#[test]
fn text_from_the_source_is_escaped() {
    let html = rendered(&month(HOSTILE), MonthForm { token: HOSTILE.to_owned(), ..MonthForm::default() });
    assert!(!html.contains("<script>") && html.contains("&lt;script&gt;"), "{html}");
    assert!(!html.contains(" style="), "{html}");
}

#[test]
fn total_of_a_day_says_what_is_unknown() {
    let sum = |value, unvalued_count| UnlockSum { count: 2, value, unvalued_count, ..UnlockSum::default() };
    assert_eq!([sum(105.23e6, 0), sum(105.23e6, 1), sum(0.0, 2)].map(|sum| day_total(&sum)), ["$105M", "≥ $105M", "?"]);
}
