//! Tests of windows over tokens and groups, and of warnings about rules.

use super::*;

/// Returns a token's totals on 2026-03-09: unlocks in 5 and 20 days, burns 3 and 40 days ago, and no buyback feed.
fn totals(windows: &[(Flow, i64)]) -> Totals {
    let records = [
        record(Resource::Unlock, r#"{"unlockDate":"2026-03-14T00:00:00Z","cliffUnlocks":{"cliffAmount":100,"cliffValue":1000}}"#),
        record(Resource::Unlock, r#"{"unlockDate":"2026-03-29T00:00:00Z","cliffUnlocks":{"cliffAmount":50,"cliffValue":500}}"#),
        record(Resource::Burn, r#"{"burnDate":"2026-03-06T00:00:00Z","amount":7,"value":70}"#),
        record(Resource::Burn, r#"{"burnDate":"2026-01-28T00:00:00Z","amount":9,"value":90}"#),
    ];
    let entries = crate::aggregate::FlowEntries::of(&records, |resource| resource != Resource::Buyback);
    let mut windows: Vec<Window> =
        windows.iter().map(|(flow, days)| Window { flow: *flow, span: TimeDelta::days(*days) }).collect();
    windows.sort_unstable();
    let reads = AggregateReads { windows: windows.into(), has_supply: true, ..AggregateReads::default() };
    Totals::of(&arb(), &entries, &reads, at("2026-03-09"))
}

fn scope_of<'a>(token: Option<&'a Token>, totals: &'a Totals) -> Scope<'a> {
    Scope { token, totals: Some(totals), ..Scope::at(at("2026-03-09")) }
}

fn truth_of_totals(when: &str) -> Truth {
    let rule = rule_when("token", when);
    let windows: Vec<(Flow, i64)> = rule.windows().iter().map(|window| (window.flow, window.span.num_days())).collect();
    let (token, totals) = (arb(), totals(&windows));
    rule.evaluate(&scope_of(Some(&token), &totals))
}

#[test]
fn token_rule_reads_windows() {
    for when in [
        "ahead(\"7d\").value == 1000 && ahead('30d').value == 1500 && ahead('30d').amount == 150 && ahead('30d').count == 2",
        "burned('30d').value == 70 && burned('60d').amount == 16 && burned('1d').count == 0",
        "ahead('30d').value > burned('30d').value",
        "emitted('30d').amount == 0",
        "ahead('30d').possible == 0",
        "lastBurn.daysSince == 3 && lastBurn.value == 70 && lastBurn.date < now && has(lastBurn)",
        "!has(lastBuyback) && !has(boughtBack('30d').value) && has(burned('30d').value)",
        "marketCap == 1200000000 && circulatingSupply == token.circulatingSupply && token.symbol == 'ARB'",
        "ahead('30d').value / marketCap * 100 < 1 && max(ahead('7d').count, 5) == 5",
    ] {
        assert_eq!(truth_of_totals(when), Truth::True, "{when}");
    }
}

#[test]
fn unread_feed_is_missing_not_zero() {
    assert_eq!(truth_of_totals("boughtBack('30d').value == 0"), Truth::Missing(vec!["boughtBack(…).value"]));
    assert_eq!(
        truth_of_totals("ahead('30d').value > burned('30d').value + boughtBack('30d').value"),
        Truth::Missing(vec!["boughtBack(…).value"])
    );
    assert_eq!(truth_of_totals("lastBuyback.daysSince >= 35"), Truth::Missing(vec!["lastBuyback"]));
    assert_eq!(truth_of_totals("maxSupply > 1"), Truth::Missing(vec!["maxSupply"]));
}

#[test]
fn invalid_window_gets_a_location() {
    for (on, when, covered, message, help) in [
        ("token", "ahead(7).value > 1", "7", "`ahead` requires a duration", "ahead(\"30d\")"),
        ("token", "ahead('soon').value > 1", "'soon'", "\"soon\" is not a valid duration", ""),
        (
            "token",
            "burned('7d').possible > 1",
            "burned('7d').possible",
            "`burned(…)` has no field `possible`",
            "only `ahead` has it",
        ),
        ("token", "ahead('7d') > 1", "ahead('7d')", "`ahead` is a window, not a number", ".value"),
        ("token", "burned('7d').vale > 1", "burned('7d').vale", "a window has no field `vale`", "did you mean `value`?"),
        ("token", "ahaed('7d').value > 1", "ahaed('7d')", "`ahaed` is not supported", "did you mean `ahead`?"),
        ("unlock", "burned('7d').value > 1", "burned('7d').value", "`burned` is not available here", "on = \"token\""),
        ("token", "lastBurn > 3", "lastBurn", "`lastBurn` is an object, not a value", "lastBurn.daysSince"),
        (
            "unlock",
            "lastBurn.daysSince > 3",
            "lastBurn.daysSince",
            "`lastBurn.daysSince` is not available here",
            "on = \"token\"",
        ),
        ("token", "share(\"portfolo\") > 3", "\"portfolo\"", "unknown group `portfolo`", "did you mean \"portfolio\"?"),
        ("portfolio", "token.symbol == 'ARB'", "token.symbol", "`token.symbol` is not available here", "tokens.exists"),
        ("portfolio", "share('portfolio') > 3", "share('portfolio')", "`share` works only in rules on `token`", "t.share"),
        ("portfolio", "tokens.exists(t, t.shar > 3)", "t.shar", "`t` has no field `shar`", "did you mean `t.share`?"),
        ("token", "cliffValue > 5", "cliffValue", "`cliffValue` is not available here", "field of `unlock` records"),
    ] {
        let (at, text, advice) = condition_problem(on, when);
        assert_eq!((at.as_str(), text.as_str()), (covered, message), "{when}");
        assert!(advice.contains(help), "{when}: {advice}");
    }
}

#[test]
fn portfolio_rule_evaluates_each_group() {
    let rule = rule_when(
        "portfolio",
        "ahead('30d').value == 3000 && tokenCount == 2 && group == 'portfolio' && tokens.exists(t, t.share == 50) \
         && tokens.all(t, t.ahead('7d').value == 1000 && t.lastBurn.daysSince == 3) && tokens.map(t, t.marketCap).sum() == marketCap",
    );
    assert_eq!(rule.pools, [Pool::Group("portfolio".into())]);
    let of_token = std::sync::Arc::new(totals(&[(Flow::Ahead, 7), (Flow::Ahead, 30)]));
    let member = |id: &str| crate::aggregate::Member {
        id: TokenId::from(id),
        symbol: id.to_uppercase().into(),
        name: id.into(),
        totals: of_token.clone(),
        share: None,
    };
    let mut windows = rule.windows().to_vec();
    windows.sort_unstable();
    let reads = AggregateReads { windows: windows.into(), ..AggregateReads::default() };
    let totals = Totals::of_group(Some("portfolio"), vec![member("arb"), member("op")], &reads);
    let scope = scope_of(None, &totals);
    assert!(rule.covers(&scope));
    assert_eq!(rule.evaluate(&scope), Truth::True);
    let rendered = rule.render(&scope, None);
    assert_eq!(rendered.labels.get("group").map(String::as_str), Some("portfolio"));
    assert_eq!(rendered.labels.get("token"), None);
    assert_eq!(
        rendered.annotations["summary"],
        "portfolio (2 tokens): $3.00K (0.000125% of market cap) to unlock in the next 30 days in 4 cliffs, $2.00K (0.0000833% of market \
         cap) to unlock in the next 7 days in 2 cliffs"
    );
}

#[test]
fn portfolio_rule_selects_named_groups() {
    let pools = |tokens: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"portfolio\"\n{tokens}\n")).pools;
    assert_eq!(pools(""), [Pool::Group("portfolio".into())]);
    assert_eq!(pools("tokens = [\"@portfolio\"]"), [Pool::Group("portfolio".into())]);
    assert_eq!(pools("tokens = [\"*\"]"), [Pool::Watched]);
    let (_, message, _) = only_problem("[[rule]]\nalert = \"A\"\non = \"portfolio\"\ntokens = [\"@portfolio\", \"a*\"]\n");
    assert_eq!(message, "a rule on `portfolio` cannot combine groups and patterns");
    let (covered, message, _) = only_problem("[[rule]]\nalert = \"A\"\non = \"portfolio\"\nlabels = { group = \"x\" }\n");
    assert_eq!((covered.as_str(), message.as_str()), ("group", "the label `group` is set automatically"));
    for key in ["within = \"7d\"", "since = \"7d\"", "allocations = [\"Team\"]"] {
        let (_, message, _) = only_problem(&format!("[[rule]]\nalert = \"A\"\non = \"token\"\n{key}\n"));
        assert!(message.contains("cannot be used here"), "{message}");
    }
}

fn with_summary(on: &str, summary: &str) -> String {
    format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\n[rule.annotations]\nsummary = '''{summary}'''\n")
}

#[test]
fn templates_read_windows_and_members() {
    let rule = rule(&with_summary(
        "token",
        "{{ token.symbol }}: {{ ahead(\"7d\").value | usd }}, last burn {{ lastBurn.daysSince | days }} ago, \
         {{ boughtBack('30d').value | usd }}, {{ share('portfolio') | percent }}",
    ));
    assert_eq!(rule.windows().len(), 2);
    let (token, totals) = (arb(), totals(&[(Flow::Ahead, 7), (Flow::BoughtBack, 30)]));
    let rendered = rule.render(&scope_of(Some(&token), &totals), None);
    assert_eq!(rendered.error, None);
    assert_eq!(rendered.annotations["summary"], "ARB: $1.00K, last burn 3 days ago, unknown, unknown");
    for summary in [
        "{% for t in tokens %}{{ t.symbol }} {{ t.share | percent }} {{ t.ahead('7d').value | usd }}{% endfor %} {{ group }}",
        "{{ tokens | length }} {{ tokenCount }} {{ lastBuyback.date | date }} {{ marketCap | usd }} {{ labels.group }}",
    ] {
        assert_eq!(load_text(&with_summary("portfolio", summary)).diagnostics, [], "{summary}");
    }
    for (on, summary, message) in [
        ("token", "{{ ahead(x).value }}", "`ahead` requires one window length in quotes"),
        ("token", "{{ ahead('soon').value }}", "is not a valid duration"),
        ("token", "{{ ahaed('7d').value }}", "unknown name `ahaed`"),
        ("token", "{{ ahead('7d').vale }}", "undefined"),
        ("unlock", "{{ ahead('7d').value }}", "`ahead` is not available here"),
        ("portfolio", "{{ token.symbol }}", "`token.symbol` is not available here"),
    ] {
        let loaded = load_text(&with_summary(on, summary));
        let is_reported = loaded.diagnostics.iter().any(|problem| problem.message.contains(message));
        assert!(is_reported && !loaded.is_usable(), "{summary}: {:#?}", loaded.diagnostics);
    }
}

fn warnings(text: &str) -> Vec<String> {
    let loaded = load_text(text);
    assert!(loaded.is_usable(), "{:#?}", loaded.diagnostics);
    loaded.diagnostics.into_iter().map(|problem| problem.message).collect()
}

#[test]
fn warns_about_unreachable_levels() {
    let level = |when: &str, levels: &[&str]| {
        let levels: String = levels.iter().map(|when| format!("[[rule.level]]\nwhen = '''{when}'''\n")).collect();
        warnings(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '''{when}'''\n{levels}"))
    };
    let unreached = "this level is never used: a later level matches whenever this one does";
    let contradicts = "this level is never used: it contradicts the rule's own `when`";
    let none: [&str; 0] = [];
    assert_eq!(level("cliffValue >= 5000000", &["valueToMarketCap >= 10", "valueToMarketCap >= 5"]), [unreached]);
    assert_eq!(level("cliffValue >= 5000000", &["valueToMarketCap >= 5", "valueToMarketCap >= 10"]), none);
    let negated = "!(valueToMarketCap <= 5) || daysUntil < 1";
    assert_eq!(level("cliffValue >= 5000000", &["valueToMarketCap > 5", negated]), [unreached]);
    assert_eq!(level("cliffValue >= 5000000", &["cliffValue < 4000000"]), [contradicts]);
    assert_eq!(level("tokenSymbol in ['ARB', 'APT']", &["tokenSymbol == 'OP'"]), [contradicts]);
    assert_eq!(level("tokenSymbol in ['ARB', 'APT']", &["tokenSymbol != 'APT'"]), none);
    assert_eq!(level("cliffValue > 5000000 && cliffValue < 3000000", &[]), ["this condition is never true"]);
    assert_eq!(level("cliffValue > 5000000 || cliffValue < 3000000", &[]), none);
}

#[test]
fn warns_about_duplicate_rules() {
    let pair =
        |first: &str, second: &str| warnings(&format!("[[rule]]\nalert = \"A\"\n{first}\n[[rule]]\nalert = \"B\"\n{second}\n"));
    for (first, second) in [
        ("on = 'burn'\nwhen = 'value >= 5000 && amount > 7'", "on = 'burn'\nwhen = '7 < amount && value >= 5000.0'"),
        (
            "on = 'burn'\ntokens = ['a', 'b']\nwhen = 'value >= 5000'",
            "on = 'burn'\ntokens = ['b', 'a']\nwhen = '!(value < 5000)'",
        ),
        ("on = 'burn'\nlabels = { severity = 'x' }", "on = 'burn'\nlabels = { severity = 'y' }"),
    ] {
        assert_eq!(pair(first, second), ["`A` and `B` always fire together"], "{first}");
    }
    for (first, second) in [
        ("on = 'burn'\nwhen = 'value >= 5000'", "on = 'burn'\nwhen = 'value >= 6000'"),
        ("on = 'burn'\nwhen = 'value >= 5000'", "on = 'buyback'\nwhen = 'value >= 5000'"),
        ("on = 'burn'\nreceivers = ['ops']", "on = 'burn'\nreceivers = ['desk']"),
        ("on = 'burn'\nlabels = { team = 'x' }", "on = 'burn'\nlabels = { team = 'y' }"),
        ("on = 'unlock'\nwithin = '7d'", "on = 'unlock'\nwithin = '1d'"),
        ("on = 'burn'\nwhen = 'value >= 5000'", "on = 'burn'\nmissing = 'fire'\nwhen = 'value >= 5000'"),
    ] {
        assert_eq!(pair(first, second), [""; 0], "{first} / {second}");
    }
}

#[test]
fn warns_about_thresholds_in_the_wrong_unit() {
    let of = |on: &str, when: &str| warnings(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = '''{when}'''\n"));
    for (on, when, message) in [
        ("unlock", "cliffValue >= 5", "`cliffValue` is in USD: 5 means $5"),
        ("unlock", "valueToMarketCap > 5000000", "`valueToMarketCap` is in percent: 5000000 means 5000000 %"),
        ("unlock", "daysUntil < 604800", "`daysUntil` is in days: 604800 means 1656 years"),
        ("unlock.rescheduled", "change.shiftDays > 86400", "`shiftDays` is in days: 86400 means 237 years"),
        ("token", "ahead('7d').value > 5", "`value` is in USD: 5 means $5"),
        ("token", "share('portfolio') > 0.25", "`share` is in percent: 0.25 means 0.25 %"),
        ("token", "lastBurn.daysSince > 1e6", "`daysSince` is in days: 1000000 means 2738 years"),
    ] {
        assert_eq!(of(on, when), [message]);
    }
    for (on, when) in [
        ("unlock", "cliffValue > 0"),
        ("unlock", "daysUntil <= 365"),
        ("burn", "amount > 5"),
        ("token", "ahead('7d').count >= 2"),
        ("unlock", "valueToMarketCap >= 120"),
    ] {
        assert_eq!(of(on, when), [""; 0], "{when}");
    }
}

#[test]
fn clock_edges_are_known_in_advance() {
    let edges = |on: &str, when: &str| {
        let rule = rule_when(on, when);
        (rule.is_clock_dependent, rule.edges.clone())
    };
    assert_eq!(edges("unlock", "daysUntil <= 7 && cliffValue > 1"), (false, vec![7.0]));
    assert_eq!(edges("unlock", "3 > daysSince || daysUntil > -2.5"), (false, vec![-3.0, -2.5]));
    assert_eq!(edges("unlock", "daysUntil * 2 < 7"), (true, vec![]));
    assert_eq!(edges("unlock", "daysUntil < 7 && unlockDate > now"), (true, vec![7.0]));
    let loaded = load_text("[[rule]]\nalert = \"A\"\non = \"token\"\nwhen = \"lastBuyback.daysSince >= 35\"\n");
    assert_eq!(loaded.set.reads.since, [(Flow::BoughtBack, TimeDelta::days(35))]);
    assert!(!loaded.set.rules[0].is_clock_dependent);
}

#[test]
fn index_returns_affected_rules() {
    let text = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"cliffAmount > token.circulatingSupply * 0.02\"\n\
                [[rule]]\nalert = \"B\"\non = \"unlock.*\"\n[[rule]]\nalert = \"C\"\non = \"unlock.rescheduled\"\n\
                [[rule]]\nalert = \"D\"\non = \"burn\"\nwhen = \"amount > token.maxSupply * 0.01\"\n";
    let set = load_text(text).set;
    let index = &set.index;
    assert_eq!(index.on(On::Record(Resource::Unlock)), [0]);
    assert_eq!(index.subscribes_to(Resource::Unlock, ChangeKind::Rescheduled), [1, 2]);
    assert_eq!(index.subscribes_to(Resource::Unlock, ChangeKind::Resized), [1]);
    assert_eq!(index.subscribes_to(Resource::Burn, ChangeKind::Added), [0_usize; 0]);
    let item = |json: &str| serde_json::from_str::<wire::TokenItem>(json).expect("an item");
    let before = item(r#"{"id":"a","circulatingSupply":100,"maxSupply":10,"marketCap":5}"#);
    assert!(index.changes_read_field(&before, &item(r#"{"id":"a","circulatingSupply":101,"maxSupply":10,"marketCap":5}"#)));
    assert!(!index.changes_read_field(&before, &item(r#"{"id":"a","circulatingSupply":100,"maxSupply":99,"marketCap":6}"#)));
}

#[test]
fn warns_about_rules_that_cannot_match() {
    let text = "[[rule]]\nalert = \"NoMatch\"\non = \"unlock\"\ntokens = [\"apt*\"]\n[[rule]]\nalert = \"Long\"\non = \"token\"\n\
                when = \"burned('90d').value > 1e6 && emitted('7d').amount > 1\"\n[[rule]]\nalert = \"Fine\"\non = \"portfolio\"\nwhen = \"ahead('7d').value > 1e6\"\n";
    let loaded = load_text(text);
    let tokens = [arb()];
    let known = WatchFacts {
        listed: None,
        tokens: Some(&tokens),
        requested: &[Resource::Unlock, Resource::Burn],
        history: "30d".parse().expect("a span"),
        horizon: "1y".parse().or_else(|_| "365d".parse()).expect("a span"),
    };
    let found: Vec<(String, String)> = advise(&loaded.set, &known)
        .into_iter()
        .map(|problem| (text[problem.span.expect("a span")].to_owned(), problem.message))
        .collect();
    assert_eq!(
        found,
        [
            ("\"NoMatch\"".to_owned(), "no watched token matches `NoMatch`".to_owned()),
            ("\"Long\"".to_owned(), "`Long` needs emission records, which are never polled".to_owned()),
            ("\"Long\"".to_owned(), "`Long` reads 90 days of `burned`, but only 30 days are polled".to_owned()),
        ]
    );
}

#[test]
fn synonyms_get_a_suggestion() {
    let help = |text: &str| {
        let loaded = load_text(text);
        let problem = loaded.diagnostics.first().unwrap_or_else(|| panic!("{text} is fine"));
        problem.help.clone().unwrap_or_default()
    };
    let on = |on: &str| help(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\n"));
    for (word, meant) in [
        ("unlock.moved", "did you mean `unlock.rescheduled`?"),
        ("unlock.delayed", "did you mean `unlock.rescheduled`?"),
        ("unlock.changed", "did you mean `unlock.*`?"),
        ("cliff", "did you mean `unlock`?"),
        ("cliffs.moved", "did you mean `unlock.rescheduled`?"),
        ("burn.new", "did you mean `burn`? It matches each burn when it becomes known"),
        ("unlock.new", "did you mean `unlock.added`?"),
        ("unlock.reschedulde", "did you mean `unlock.rescheduled`?"),
        ("group", "did you mean `portfolio`?"),
    ] {
        assert_eq!(on(word), meant, "{word}");
    }
    let when = |on: &str, when: &str| help(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\nwhen = '{when}'\n"));
    for (on, text, meant) in [
        ("token", "lastBuyback.days > 35", "did you mean `lastBuyback.daysSince`?"),
        ("unlock", "percent >= 2", "did you mean `valueToMarketCap`?"),
        ("unlock", "marketcap > 5", "did you mean `token.marketCap`?"),
        ("token", "market_cap > 5", "did you mean `marketCap`?"),
        ("unlock", "amount > 5", "did you mean `cliffAmount`?"),
        ("burn", "usd > 5", "did you mean `value`?"),
        ("unlock", "value >= 5000000", "did you mean `cliffValue`?"),
        ("unlock", "cliffValue = 5000000", "use `==` for exactly this value, or `>=` for at least"),
        ("unlock", "token.symbol = \"ARB\"", "use `==` to compare"),
        ("unlock", "cliffValue >= $5,000,000", "use `5000000`"),
        ("unlock", "cliffValue >= $2.5M", "use `2500000`"),
        ("unlock", "cliffValue >= 5,000,000 && daysUntil < 3", "use `5000000`"),
        ("unlock", "cliffValue >= 5M", "use `5000000`"),
        ("unlock", "cliffValue >= 5000000 and daysUntil < 3", "use `&&`"),
        ("unlock", "valueToMarketCap > 2%", "remove it: fields such as `valueToMarketCap` are already in percent"),
    ] {
        assert_eq!(when(on, text), meant, "{text}");
    }
    assert!(
        load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = 'max(5,100) > 3'\n").is_usable(),
        "a comma separates arguments"
    );
}

#[test]
fn mismatch_names_the_flow_whose_latest_entry_ended_the_match() {
    let (token, totals) = (arb(), totals(&[]));
    let rule = rule_when("token", "lastBurn.daysSince > 35");
    let mismatch = rule.mismatch(&scope_of(Some(&token), &totals)).expect("the condition is false");
    assert_eq!((mismatch.text.as_str(), mismatch.latest), ("lastBurn.daysSince is 3 days", Some(Flow::Burned)));
    // A burn does not end the match of a rule about recent burns. Only time does.
    for recent in ["lastBurn.daysSince <= 2", "2 >= lastBurn.daysSince"] {
        let mismatch = rule_when("token", recent).mismatch(&scope_of(Some(&token), &totals)).expect("the condition is false");
        assert_eq!(mismatch.latest, None, "{recent}");
    }
}
