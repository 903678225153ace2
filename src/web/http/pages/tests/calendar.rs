//! The calendar page, from a real database.

use super::{Browser, TOKEN, assert_valid_page};
use crate::http::tests::{LOCAL, run, with_unlocks};

#[tokio::test]
async fn calendar_shows_the_unlocks_of_a_month_as_grid_and_list() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, grid) = browser.get("/calendar?month=2026-10").await;
    assert_eq!(status, 200, "{grid}");
    assert_valid_page("/calendar", &grid);
    assert!(grid.contains("<h1>October 2026</h1>") && grid.contains("href=\"/tokens/arbitrum\""), "{grid}");
    // The only unlock of a month has the largest dot.
    assert!(grid.contains("r=\"9\"") && grid.contains("id=\"bands\"") && !grid.contains("id=\"list\""), "{grid}");
    let (_, list) = browser.get("/calendar?month=2026-10&view=list&sort=share").await;
    assert_valid_page("the list", &list);
    assert!(list.contains("id=\"list\"") && list.contains("16 Oct 2026") && !list.contains("id=\"month\""), "{list}");
    // A page behind the last one is empty, and leads back.
    let (status, beyond) = browser.get("/calendar?month=2026-10&view=list&offset=4294967295").await;
    assert!(status == 200 && beyond.contains("No cliff unlocks in this month."), "{beyond}");
    for path in ["/calendar?month=1990-01", "/calendar?month=x&view=y&sort=z&type=q&min_value=nan", "/calendar?unknown=1"] {
        let (status, page) = browser.get(path).await;
        assert!(status == 200 && page.contains("<h1>September 2026</h1>"), "{path}: {page}");
    }
}

#[tokio::test]
async fn calendar_is_filtered_by_token_group_and_value() {
    let app = run(None, None).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let has_unlock = |page: &str| page.contains("href=\"/tokens/arbitrum");
    for (filter, is_shown) in [
        ("token=arbitrum", true),
        ("token=Arbitrum", true),
        ("group=portfolio", true),
        ("min_value=1000", true),
        ("min_value=999999999999", false),
        ("type=cliff", true),
        ("type=linear", false),
    ] {
        let (status, page) = browser.get(&format!("/calendar?month=2026-10&view=list&{filter}")).await;
        assert_eq!((status, has_unlock(&page)), (200, is_shown), "{filter}: {page}");
        assert_eq!(page.contains(">Clear</a>"), !filter.starts_with("group"), "{filter}: {page}");
    }
    for filter in ["token=nothing", "group=nothing"] {
        assert_eq!(browser.get(&format!("/calendar?{filter}")).await.0, 404, "{filter}");
    }
}

/// The secret link of the feed is for people who may change data. Others learn how to get it.
#[tokio::test]
async fn secret_link_is_shown_after_login_with_the_filters() {
    let app = run(Some(TOKEN), None).await;
    with_unlocks(&app).await;
    let secret = notify::feed_link::tag(TOKEN).expect("a tag");
    let (_, page) = Browser::new(&app, LOCAL).get("/calendar?group=portfolio").await;
    assert!(!page.contains(&secret) && page.contains("cliffwatch feeds"), "{page}");
    let (_, page) = Browser::logged_in(&app).await.get("/calendar?token=ARBITRUM&type=cliff&min_value=1000000").await;
    let link = format!(
        "https://cliffwatch.example.com/feeds/{secret}/calendar.ics?token=arbitrum&amp;min_value=1000000&amp;linear=false"
    );
    assert!(page.contains(&link), "{link}: {page}");
}
