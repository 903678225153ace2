//! Rules on tokens and portfolios, from a response to a message, under a manual clock.

use cliffwatch::model::supply::Endpoint;

use crate::it::support::{Setup, TestApp, burn, time};

/// `alpha` has a monthly cliff of $2M from 20 March on. Both tokens have their last burn on 10 January and buyback on 11 January.
fn setup(rules: &str) -> Setup {
    Setup { rules: rules.to_owned(), ..Setup::default() }
}

const PRESSURE: &str = r#"
[[rule]]
alert = "SupplyPressure"
on    = "token"
when  = 'ahead("30d").value > burned("30d").value + boughtBack("30d").value'

[rule.annotations]
summary = '{{ token.symbol }}: {{ ahead("30d").value | usd }} ahead, {{ burned("30d").value | usd }} burned'
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_rule_is_evaluated_only_when_its_windows_change() {
    let app = TestApp::with(setup(PRESSURE)).await;
    assert_eq!(app.tick_and_deliver().await, ["alert.firing SupplyPressure alpha: ALP: $2.00M ahead, $0 burned"]);
    app.at("2026-03-10T00:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 0, "nothing entered or left a window");
    // At noon on the 20th the cliff passes, and the next one is 31 days away.
    app.at("2026-03-20T12:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 1);
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(bodies[0]["type"], "alert.resolved");
    assert_eq!(bodies[0]["data"]["alerts"][0]["reason"], "cleared");
    app.at("2026-03-21T12:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 1);
    app.deliver().await;
    assert_eq!(crate::it::support::lines(&app.hook.take()), ["alert.firing SupplyPressure alpha: ALP: $2.00M ahead, $0 burned"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_or_failed_burn_feed_does_not_count_as_no_burns() {
    let rules = "[[rule]]\nalert = \"NoBurns\"\non = \"token\"\ntokens = [\"alpha\"]\nwhen = 'burned(\"90d\").count == 0 || lastBurn.daysSince >= 60'\n";
    let app = TestApp::with(setup(rules)).await;
    for endpoint in [Endpoint::TokenList, Endpoint::UnlockEvents] {
        app.poll(endpoint).await;
    }
    app.evaluate().await;
    app.deliver().await;
    assert_eq!(app.hook.take().len(), 0, "burns were never polled");
    app.poll(Endpoint::Burn).await;
    app.at("2026-03-11T00:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 1, "the burn of 10 January is 60 days old");
    app.deliver().await;
    let lines = crate::it::support::lines(&app.hook.take());
    assert_eq!(lines.len(), 1, "{lines:?}");
    // A new burn resolves the alert.
    app.edit(|edit| edit.add_burn("alpha", burn("2026-03-11T01:00:00Z", 100.0)));
    app.at("2026-03-11T06:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.poll(Endpoint::Burn).await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!((bodies.len(), bodies[0]["type"].as_str()), (1, Some("alert.resolved")));
    // While the feed fails, it is unknown whether there are new burns.
    app.faults.set("", testkit::faults::Fault::status(500));
    app.at("2026-05-09T00:00:00Z");
    app.poll(Endpoint::Burn).await;
    app.at("2026-05-20T00:00:00Z");
    app.evaluate().await;
    app.deliver().await;
    let notified = crate::it::support::lines(&app.hook.take());
    assert!(notified.iter().all(|line| !line.contains("NoBurns")), "{notified:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn portfolio_alert_is_notified_once_and_ends_with_its_rule() {
    let rules = r#"
[[rule]]
alert = "DeskUnlocks"
on    = "portfolio"
when  = 'ahead("90d").value >= 9000000 && tokens.exists(t, t.share > 10)'

[[rule.level]]
when   = 'ahead("90d").value >= 50000000'
labels = { severity = "critical" }

[rule.annotations]
summary = '{{ group }}: {{ ahead("90d").value | usd }} in {% for t in tokens %}{{ t.symbol }}{% if not loop.last %}, {% endif %}{% endfor %}'
"#;
    let mut app = TestApp::with(setup(rules)).await;
    app.restart_with(|config| {
        config.watch.groups = [("desk".to_owned(), vec!["alpha".to_owned(), "beta".to_owned()])].into_iter().collect();
    })
    .await;
    app.tick().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(crate::it::support::lines(&bodies), ["alert.firing DeskUnlocks -: desk: $11.00M in ALP, BET"]);
    // The body lists the tokens with values and shares, regardless of the summary template.
    let members = bodies[0]["data"]["alerts"][0]["members"].as_array().expect("members");
    let named: Vec<_> =
        members.iter().map(|one| (one["token"]["symbol"].clone(), one["value"].as_f64(), one["share"].as_f64())).collect();
    assert_eq!(named, [("ALP".into(), Some(6e6), Some(50.0)), ("BET".into(), Some(5e6), Some(50.0))]);
    assert_eq!(app.app().store().source_alerts().await.expect("read"), [], "this is not an incident");
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
    app.restart().await;
    assert_eq!(app.tick_and_deliver().await, [""; 0], "a restart repeats nothing");
    std::fs::write(app.folder.path().join("rules/test.toml"), PRESSURE.replace("> burned", "> 1e12 + burned")).expect("written");
    app.app().reload().await.expect("reloaded");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!(bodies.len(), 1, "{bodies:#?}");
    assert_eq!(bodies[0]["data"]["alerts"][0]["reason"], "rule gone");
    assert_eq!(bodies[0]["data"]["alerts"][0]["labels"]["group"], "desk");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_market_cap_triggers_rules_that_use_it() {
    let rules = "[[rule]]\nalert = \"Small\"\non = \"unlock\"\nwithin = \"30d\"\nwhen = \"token.marketCap < 50000000\"\n";
    let app = TestApp::with(setup(rules)).await;
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
    app.edit(|edit| edit.put_item("alpha", |item| item.market_cap = 40_000_000.0.into()));
    app.at("2026-03-01T06:00:00Z");
    app.poll(Endpoint::TokenList).await;
    app.deliver().await;
    let notified = crate::it::support::lines(&app.hook.take());
    assert_eq!(notified.len(), 1, "{notified:?}");
    assert!(time("2026-03-01T06:00:00Z") == app.clock.now());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn condition_on_days_until_is_evaluated_only_when_it_changes() {
    let rules = "[[rule]]\nalert = \"Soon\"\non = \"unlock\"\ntokens = [\"alpha\"]\nwhen = \"daysUntil < 3 && daysUntil > 1\"\n";
    let app = TestApp::with(setup(rules)).await;
    assert_eq!(app.tick_and_deliver().await, [""; 0]);
    app.at("2026-03-15T00:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 0);
    app.at("2026-03-17T12:00:01Z");
    assert_eq!(app.evaluate().await.evaluated, 1);
    app.deliver().await;
    assert_eq!(crate::it::support::lines(&app.hook.take()).len(), 1);
    app.at("2026-03-18T00:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 0);
    app.at("2026-03-19T12:00:00Z");
    app.evaluate().await;
    app.deliver().await;
    let bodies = app.hook.take();
    assert_eq!((bodies.len(), bodies[0]["type"].as_str()), (1, Some("alert.resolved")));
}

/// Fifty rules that use token fields, windows, the market cap, and the clock.
fn many_rules() -> String {
    let rule = |number: u32| {
        let (on, when) = match number % 5 {
            0 => ("unlock", format!("cliffValue >= {number}e12 && daysUntil <= 7")),
            1 => ("unlock", format!("cliffAmount >= token.marketCap * {number}.0")),
            2 => ("burn", format!("amount >= {number}e12")),
            3 => ("token", format!("ahead(\"30d\").value > {number}e12 + burned(\"30d\").value")),
            _ => ("unlock.*", format!("change.count > {number}000.0")),
        };
        format!("[[rule]]\nalert = \"Rule{number}\"\non = \"{on}\"\nwhen = '''{when}'''\n")
    };
    (1..=50).map(rule).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cycle_evaluates_only_changed_tokens() {
    const TOKENS: u32 = 60;
    let name = |number: u32| format!("token-{number}");
    let fill = move |edit: &mut cliffwatch::service::Edit<'_>| {
        for number in 0..TOKENS {
            edit.put_token(&crate::it::support::item(&name(number), "T"))?;
            edit.put_events(&name(number), vec![crate::it::support::cliff("2026-06-20T12:00:00Z", "Team", 2e6, "second")])?;
        }
        Ok(())
    };
    let app = TestApp::with(Setup { fill: Box::new(fill), ..setup(&many_rules()) }).await;
    app.tick().await;
    assert_eq!(app.evaluate().await.evaluated, 0, "all tokens were evaluated when polled");
    app.at("2026-03-02T00:00:00Z");
    assert_eq!(app.evaluate().await.evaluated, 0, "nothing enters a window within a day");

    app.edit(|edit| edit.add_burn("token-7", burn("2026-03-01T18:00:00Z", 100.0)));
    let report = app.poll(Endpoint::Burn).await;
    assert_eq!((report.fresh, report.evaluated), (1, 1), "one burn, one token");

    // Change the market cap of three tokens, which rules use, and the name of all tokens, which no rule uses.
    app.edit(|edit| {
        for number in 0..TOKENS {
            let mut item = crate::it::support::item(&name(number), "T");
            item.name = format!("Renamed {number}").into();
            if number < 3 {
                item.market_cap = 2e8.into();
            }
            edit.put_token(&item)?;
        }
        Ok(())
    });
    app.at("2026-03-02T06:00:00Z");
    assert_eq!(app.poll(Endpoint::TokenList).await.evaluated, 3);

    // All tokens reach `daysUntil <= 7` at the same instant. A minute later, nothing is evaluated again.
    app.at("2026-06-13T12:00:01Z");
    assert_eq!(app.evaluate().await.evaluated, TOKENS);
    app.at("2026-06-13T12:01:00Z");
    assert_eq!(app.evaluate().await.evaluated, 0);
}
