//! The form for a new rule, and saving it.

use super::*;
use crate::http::tests::run_with_config;
use model::config;

const FORM: &str =
    "/rules/new?about=cliffs&tokens=%40portfolio&percent=4.5&recipient=k-team&within=7d&severity=critical&name=Mine";

#[tokio::test]
async fn form_shows_the_rule_and_its_problems() {
    let group =
        |config: &mut config::Config| drop(config.watch.groups.insert("portfolio".to_owned(), vec!["arbitrum".to_owned()]));
    let app = run_with_config(None, group).await;
    with_unlocks(&app).await;
    let mut browser = Browser::new(&app, LOCAL);
    let (status, page) = browser.get("/rules/new").await;
    assert!(status == 200 && page.contains("cliffValue &gt;= 5000000") && page.contains("its check and its test pass"), "{page}");
    assert_valid_page("/rules/new", &page);
    let (status, page) = browser.get(FORM).await;
    let expected =
        "valueToMarketCap &gt;= 4.5 &amp;&amp; allocations.exists(a, a.standardAllocationName in [&quot;Founder / Team&quot;])";
    assert!(status == 200 && page.contains(expected) && page.contains("alert  = &quot;Mine&quot;"), "{page}");
    assert!(!page.contains("Save and activate"), "rules cannot be saved");
    assert!(
        page.contains("name=\"text\" value=\"# Cliffs") && page.contains("[[rule]]\nalert  = &quot;Mine&quot;"),
        "the replay gets the lines"
    );
    for (fields, problem) in [
        ("about=cliffs&above=much", "Minimum value: examples: 5000000"),
        ("about=cliffs&percent=5k", "enter a percentage, such as 2.5"),
        ("about=cliffs&tokens=%40nothing", "unknown group @nothing"),
        ("about=no-buyback&days=0", "Days: enter a whole number"),
        ("about=pressure&window=soon", "Window:"),
        ("about=cliffs&name=a%20b", "The name can have letters"),
    ] {
        let (status, page) = browser.get(&format!("/rules/new?{fields}")).await;
        assert!(status == 400 && page.contains(problem), "{fields}: {page}");
    }
    let (_, page) = browser.get("/rules/new?about=burns&name=CliffAhead").await;
    assert!(page.contains("alert  = &quot;LargeBurn"), "another kind gets another default name: {page}");
    let (status, _) = browser.post("/rules/new", &[("about", "cliffs"), ("author", "ann")]).await;
    assert!(matches!(status, 401 | 403 | 404), "{status}");
}

#[tokio::test]
async fn rule_is_saved_only_after_a_login_and_withdrawn_if_the_reload_fails() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = folder.path().join("rules");
    let app = run_with_config(Some(TOKEN), |config| {
        config.http.edit_rules = true;
        config.rules.paths = vec![format!("{}/*.toml", rules.display())];
    })
    .await;
    let mut browser = Browser::new(&app, LOCAL);
    let form = "/rules/new?about=cliffs&percent=4.5&name=Mine";
    let (_, page) = browser.get(form).await;
    assert!(page.contains("page-mine.toml") && page.contains("+ when   = &#x27;valueToMarketCap &gt;= 4.5&#x27;"), "{page}");
    assert!(!page.contains("Save and activate"), "a reader cannot save");
    let fields = [("about", "cliffs"), ("percent", "4.5"), ("name", "Mine"), ("author", "ann")];
    let (status, _) = browser.post("/rules/new", &fields).await;
    assert!(matches!(status, 401 | 403), "a form without a session is rejected: {status}");
    assert!(!rules.exists());

    let (_, response) = browser.post("/login", &[("token", TOKEN)]).await;
    let headers = format!("{LOCAL}Cookie: {}\r\n", set_cookie(&response).expect("a cookie"));
    let mut browser = Browser::new(&app, &headers);
    let (_, page) = browser.get(form).await;
    assert!(page.contains("Save and activate"), "{page}");
    let (status, page) = browser.post("/rules/new", &[fields[0], fields[1], fields[2]]).await;
    assert!(status == 400 && page.contains("enter your name"), "{page}");
    // The reload of the test fails.
    let (status, page) = browser.post("/rules/new", &fields).await;
    assert!(status == 400 && page.contains("the reload failed: rules/a.toml: bad"), "{page}");
    assert!(!rules.join("page-mine.toml").exists() && !rules.join("tests/page-mine.toml").exists());
}
