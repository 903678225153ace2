//! Rule files: every problem at its place, keys and values, filters, bounds.

use super::*;

#[test]
fn every_problem_of_every_file_is_reported_together() {
    let loaded = load_files(&[
        (
            "a.toml",
            "[[rule]]\nalert = \"A\"\non = \"unlok\"\nseverity = \"x\"\n[[rule]]\non = \"burn\"\nwithin = \"7d\"\n[[rule]]\nalert=\"D\"\non=\"unlock\"\nwhen=\"x > 1 && y < 2\"\n",
        ),
        ("b.toml", "this is = = no toml"),
        ("c.toml", "[[rule]]\nalert = \"C\"\non = \"burn\"\nreceivers = [\"opps\"]\ntokens = [\"@portfolo\"]\nlimit = 0\n"),
    ]);
    let messages: Vec<&str> = loaded.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    for expected in [
        "unknown key `severity` in this rule",
        "nothing is called `unlok`",
        "this rule has no `alert`",
        "nothing is called `x`",
        "nothing is called `y`",
        "there is no receiver \"opps\"",
        "there is no group `portfolo`",
        "`limit` is a whole number from 1 to 100000",
    ] {
        assert!(messages.contains(&expected), "{expected}: {messages:#?}");
    }
    assert!(loaded.diagnostics.iter().any(|problem| problem.file.as_path() == std::path::Path::new("b.toml")));
}

#[test]
fn keys_that_mean_nothing_for_a_rule_are_refused() {
    for (text, name) in [
        ("on = \"unlock.rescheduled\"\nwithin = \"7d\"", "within"),
        ("on = \"burn\"\nwithin = \"7d\"", "within"),
        ("on = \"unlock\"\nsince = \"7d\"", "since"),
        ("on = \"burn\"\nfor = \"1h\"", "for"),
        ("on = \"unlock.*\"\nkeep_firing_for = \"1h\"", "keep_firing_for"),
        ("on = \"burn\"\nallocations = [\"Team\"]", "allocations"),
        ("on = \"source\"\nlisted_methods = [\"AI\"]", "listed_methods"),
    ] {
        let (covered, message, _) = only_problem(&format!("[[rule]]\nalert = \"A\"\n{text}\n"));
        assert_eq!(covered, name);
        assert!(message.contains("has no meaning here"), "{message}");
    }
}

#[test]
fn what_a_rule_listens_to_is_checked() {
    for (on, message, help) in [
        ("unlock.rescheduld", "no change is called `rescheduld`", "did you mean `unlock.rescheduled`?"),
        ("burn.rescheduled", "`rescheduled` cannot happen to `burn` records", "added, removed, revised"),
        ("burns", "nothing is called `burns`", "did you mean `burn`?"),
        ("portfoli", "nothing is called `portfoli`", "did you mean `portfolio`?"),
    ] {
        let (_, text, advice) = only_problem(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\n"));
        assert_eq!(text, message);
        assert!(advice.contains(help), "{advice}");
    }
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"unlock.*\"").on, On::Change(Resource::Unlock, None));
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"source\"").on, On::Source);
}

#[test]
fn two_rules_of_one_name_need_ids() {
    let twice = "[[rule]]\nalert = \"A\"\non = \"burn\"\n[[rule]]\nalert = \"A\"\non = \"buyback\"\n";
    let (_, message, _) = only_problem(twice);
    assert_eq!(message, "there is a rule `A` already, at rules/test.toml:2");
    let told_apart = load_text(&twice.replacen("on =", "id = \"a1\"\non =", 1));
    assert!(told_apart.is_usable());
    assert_eq!(told_apart.set.rules[0].id, RuleId::from("a1"));
    assert_eq!(told_apart.set.rules[0].name, "A");
}

#[test]
fn the_caret_finds_its_place_between_escapes() {
    let rule = |when: &str| format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = {when}\n");
    for (when, covered) in [
        (r#""tokenName == \"x\" && nope""#, "nope"),
        (r#""nope && tokenName == \"x\"""#, "nope"),
        (r#""tokenName == \"\u00e9\\n\U0001F600\" && nope > 1""#, "nope"),
        ("\"\"\"\n  daysUntil < 7\n  && nope > 1\"\"\"", "nope"),
        ("\"\"\"\r\n  daysUntil < 7 \\\n     && \\\\nope\"\"\"", "\\\\"),
    ] {
        assert_eq!(only_problem(&rule(when)).0, covered, "{when}");
    }
    // Two slips between escapes are two problems.
    let loaded = load_text(&rule(r#""cliffValue == \"5\" || valueToMarketCap == \"5\"""#));
    assert_eq!(loaded.diagnostics.len(), 2, "{:#?}", loaded.diagnostics);
    assert_ne!(loaded.diagnostics[0].span, loaded.diagnostics[1].span);
}

#[test]
fn lengths_dates_and_flags_are_read() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"1d\", \"90m\", \"2w\"]\nfor = \"1h\"\nkeep_firing_for = \"2h\"\nowner = \"desk\"\n\
         expires = 2026-12-31\nreceivers = [\"ops\"]\nlimit = 5\nwhen = \"daysUntil < 3\"\n",
    );
    assert_eq!(rule.within.iter().map(|lead| lead.text.as_str()).collect::<Vec<_>>(), ["2w", "1d", "90m"]);
    assert_eq!((rule.hold, rule.keep_firing_for), (TimeDelta::hours(1), TimeDelta::hours(2)));
    assert_eq!((rule.expires, rule.limit, rule.owner.as_deref()), (Some(at("2026-12-31")), Some(5), Some("desk")));
    assert_eq!(rule.receivers, [ReceiverName::from("ops")]);
    assert_eq!((rule.is_clock_dependent, rule.edges.as_slice()), (false, &[3.0][..]));
    assert!(rule_when("unlock", "unlockDate - now < duration('3d')").is_clock_dependent);
    assert!(!rule_when("unlock", "cliffValue > 1").is_clock_dependent);
    assert_eq!(rule_when("burn", "value > 1").since, TimeDelta::days(7));
    assert!(load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nenabled = false\n").set.rules.is_empty());
    let expired = load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nexpires = \"2026-01-01\"\n");
    assert_eq!(expired.diagnostics[0].severity, Severity::Warning);
}

#[test]
fn filters_let_in_what_they_name() {
    let (token, record) = (arb(), record(Resource::Unlock, CLIFF));
    let scope = scope(&token, &record);
    let covers = |filter: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\n{filter}\n")).covers(&scope);
    assert!(covers(""));
    assert!(covers("tokens = [\"arb*\"]") && covers("tokens = [\"@portfolio\", \"x\"]") && !covers("tokens = [\"aptos\"]"));
    assert!(covers("listed_methods = [\"AI\"]") && !covers("listed_methods = [\"INTERNAL\"]"));
    assert!(
        covers("allocations = [\"Investors\"]")
            && covers("allocations = [\"founder*\"]")
            && !covers("allocations = [\"Treasury\"]")
    );
    let mut change = Change::of(ChangeKind::Rescheduled, Resource::Unlock, &token.id);
    change.allocations = vec![AllocationChange { name: "Investors".into(), ..Default::default() }];
    let changed = Scope { change: Some(&change), ..scope };
    let hears =
        |glob: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock.*\"\nallocations = [\"{glob}\"]\n")).covers(&changed);
    assert!(hears("Investors") && hears("Private*") && !hears("Founder*"));
}

#[test]
fn names_and_labels_are_bounded() {
    for (text, message) in [
        ("[[rule]]\nalert = \"\"\non = \"burn\"\n", "a name has 1 to"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { token = \"x\" }\n", "is set for every alert"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { \"a-b\" = \"x\" }\n", "cannot be a name"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { a = 1 }\n", "`labels.a` is a number"),
        ("[rule]\nalert = \"A\"\n", "`rule` is a list of tables"),
        ("alert = \"A\"\n", "unknown key `alert`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\", \"1w\"]\n", "is there twice"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = \"soon\"\n", "is no length of time"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[[rule.level]]\nlabels = { a = \"b\" }\n", "this level has no `when`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nmissing = \"maybe\"\n", "is not known"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = []\n", "`tokens` lets nothing in"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = [\"[\"]\n", "this pattern cannot be used"),
    ] {
        let (_, told, _) = only_problem(text);
        assert!(told.contains(message), "{text}: {told}");
    }
}

#[test]
fn files_are_found_by_pattern_sorted_and_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(path("rules/tests")).expect("folders");
    for name in ["rules/b.toml", "rules/a.toml", "rules/tests/t.toml", "rules/c.txt"] {
        std::fs::write(path(name), "# nothing\n").expect("a file");
    }
    std::fs::write(path("rules/z.toml"), vec![b'#'; 2 << 20]).expect("a file");
    std::fs::write(path("rules/y.toml"), b"[[rule]]\nalert = \"Gr\xfc\xdfe\"\n").expect("a file");
    let read = read_files(&["rules/*.toml".into(), "rules/a.toml".into(), "none/*.toml".into()], folder.path());
    assert_eq!(read.files.iter().map(|file| file.file.clone()).collect::<Vec<_>>(), [path("rules/a.toml"), path("rules/b.toml")]);
    let told: Vec<(Severity, String)> =
        read.diagnostics.iter().map(|problem| (problem.severity, problem.message.clone())).collect();
    assert_eq!(told.len(), 3, "{told:#?}");
    assert_eq!(told[0], (Severity::Warning, "no rule file matches \"none/*.toml\"".into()));
    assert!(told[1].1.contains("not UTF-8 text: line 2, byte 12 of it is 0xfc"), "{told:#?}");
    assert!(told[2].1.contains("larger than"), "{told:#?}");
    let deep = read_files(&["rules/**/*.toml".into()], folder.path());
    assert!(deep.files.iter().any(|file| file.file == path("rules/tests/t.toml")));
    // An absolute pattern, seen from a folder that lies deeper than what it matches.
    let absolute = path("rules/t*/*.toml").to_string_lossy().into_owned();
    let far = read_files(&[absolute], &path("some/where/else/altogether/and/deeper"));
    assert_eq!(far.files.iter().map(|file| file.file.clone()).collect::<Vec<_>>(), [path("rules/tests/t.toml")]);
}

#[test]
fn giant_files_are_refused_politely() {
    let rules = "[[rule]]\nalert = \"A\"\non = \"burn\"\n".repeat(5_100);
    let loaded = load_text(&rules);
    assert!(!loaded.is_usable());
    assert_eq!(loaded.set.rules.len(), 1, "all of one name");
    let many: String = (0..5_100).map(|n| format!("[[rule]]\nalert = \"A{n}\"\non = \"burn\"\n")).collect();
    let loaded = load_text(&many);
    assert_eq!(loaded.set.rules.len(), 5_000);
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "there are more than 5000 rules"));
    let labels: String = (0..500).map(|n| format!("l{n} = \"x\"\n")).collect();
    let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"burn\"\n[rule.labels]\n{labels}"));
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "`labels` has more than 64 entries"));
    let levels = "[[rule.level]]\nwhen = \"value > 1\"\n".repeat(100);
    let loaded = load_text(&format!("[[rule]]\nalert = \"A\"\non = \"burn\"\n{levels}"));
    assert!(loaded.diagnostics.iter().any(|problem| problem.message == "there are more than 64 levels"));
}

#[test]
fn a_slip_of_toml_hides_no_mistake_in_the_other_rules() {
    let text = "[[rule]]\nalert = \"A\"\non = \"unlok\"\n\n[[rule]]\nalert = \"B\non = \"burn\"\n\n[[rule]]\nalert = \"C\"\non = \"burn\"\nwhen = \"valu > 5\"\n";
    let loaded = load_text(text);
    let told: Vec<(usize, &str)> = loaded
        .diagnostics
        .iter()
        .map(|problem| {
            let span = problem.span.clone().expect("a place");
            (text[..span.start].matches('\n').count() + 1, problem.message.as_str())
        })
        .collect();
    assert!(!loaded.is_usable() && loaded.set.rules.is_empty());
    assert!(told.contains(&(3, "nothing is called `unlok`")), "{told:?}");
    assert!(told.contains(&(12, "nothing is called `valu`")), "{told:?}");
    assert!(told.iter().any(|(line, _)| *line == 6), "the slip itself: {told:?}");
}
