use super::*;

#[test]
fn a_summary_is_shown_where_it_says_more_than_the_headline() {
    let headline = "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC";
    for same in ["", headline, "ARB: $33.15M to unlock on 16 Mar 2026", "ARB: $33.15M (2.77% of market cap) unlocks"] {
        assert!(!says_more(same, headline), "{same}");
    }
    for more in ["Hedge ARB: $33.15M unlocks", "ARB: $33.15M unlocks on 17 Mar 2026", "ARB: $33.16M unlocks"] {
        assert!(says_more(more, headline), "{more}");
    }
}
