use super::*;
use model::{Change, ChangeKind, Resource, TokenId, wire};

fn row(symbol: &str, summary: &str) -> ChangeRow {
    let token = TokenId::from("arbitrum");
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token);
    change.summary = summary.to_owned();
    ChangeRow {
        id: 7,
        at: wire::parse_timestamp("2026-03-09T06:00:00Z").expect("a time"),
        token,
        symbol: Some(symbol.to_owned()),
        resource: Resource::Unlock,
        key: Some("2026-03-16".into()),
        change,
    }
}

fn feed(rows: &[ChangeRow], filter: &str) -> String {
    let entries: Vec<FeedEntry> = rows.iter().map(FeedEntry::of).collect();
    render(&entries, filter, "/feed.atom?token=arbitrum&limit=9", Some("https://cliffwatch.example.com/"))
        .expect("the template works")
        .replace("&#x2f;", "/")
}

#[test]
fn entry_has_the_change_and_a_stable_id() {
    let text = feed(&[row("ARB", "moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)")], "");
    for part in [
        "<title>ARB: unlock moved from 16 Mar 2026 to 20 Mar 2026 (+4 days)</title>",
        "<updated>2026-03-09T06:00:00Z</updated>",
        "href=\"https://cliffwatch.example.com/tokens/arbitrum\"",
        "<link rel=\"self\" type=\"application/atom+xml\" \
         href=\"https://cliffwatch.example.com/feed.atom?token=arbitrum&amp;limit=9\"/>",
        "<category term=\"rescheduled\"/>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    // A copied database may number its rows differently.
    let copied = ChangeRow { id: 1, ..row("ARB", "moved by +4 days") };
    assert_eq!(FeedEntry::of(&row("ARB", "moved by +4 days")).id, FeedEntry::of(&copied).id);
    assert_ne!(FeedEntry::of(&row("ARB", "moved by +5 days")).id, FeedEntry::of(&copied).id);
    assert_eq!(feed(&[], ""), feed(&[], ""));
}

#[test]
fn names_from_the_source_are_escaped() {
    let text = feed(&[row("<b>&\"\u{0}\u{b}\u{202e}", "<script>]]>\r\nx")], "<x>");
    assert!(!text.contains("<b>") && !text.contains("<script>") && !text.contains("<x>"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'), "{text}");
}
