//! Tests of rule files: locations of problems, keys and values, filters, and limits.

use super::*;

#[test]
fn reports_the_problems_of_all_files() {
    let loaded = load_files(&[
        (
            "a.toml",
            "[[rule]]\nalert = \"A\"\non = \"unlok\"\nseverity = \"x\"\n[[rule]]\non = \"burn\"\nwithin = \"7d\"\n[[rule]]\nalert=\"D\"\non=\"unlock\"\nwhen=\"x > 1 && y < 2\"\n",
        ),
        ("b.toml", "this is = = not toml"),
        ("c.toml", "[[rule]]\nalert = \"C\"\non = \"burn\"\nreceivers = [\"opps\"]\ntokens = [\"@portfolo\"]\nlimit = 0\n"),
    ]);
    let messages: Vec<&str> = loaded.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    for expected in [
        "unknown key `severity` in this rule",
        "unknown record type `unlok`",
        "this rule has no `alert`",
        "unknown name `x`",
        "unknown name `y`",
        "unknown receiver \"opps\"",
        "unknown group `portfolo`",
        "`limit` must be a whole number from 1 to 100000",
    ] {
        assert!(messages.contains(&expected), "{expected}: {messages:#?}");
    }
    assert!(loaded.diagnostics.iter().any(|problem| problem.file.as_path() == std::path::Path::new("b.toml")));
}

#[test]
fn rejects_keys_without_effect() {
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
        assert!(message.contains("cannot be used here"), "{message}");
    }
}

#[test]
fn rejects_unknown_targets() {
    for (on, message, help) in [
        ("unlock.rescheduld", "unknown change kind `rescheduld`", "did you mean `unlock.rescheduled`?"),
        ("burn.rescheduled", "`rescheduled` cannot happen to `burn` records", "added, removed, revised"),
        ("burns", "unknown record type `burns`", "did you mean `burn`?"),
        ("portfoli", "unknown record type `portfoli`", "did you mean `portfolio`?"),
    ] {
        let (_, text, advice) = only_problem(&format!("[[rule]]\nalert = \"A\"\non = \"{on}\"\n"));
        assert_eq!(text, message);
        assert!(advice.contains(help), "{advice}");
    }
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"unlock.*\"").on, On::Change(Resource::Unlock, None));
    assert_eq!(rule("[[rule]]\nalert = \"A\"\non = \"source\"").on, On::Source);
}

#[test]
fn rejects_duplicate_names_without_ids() {
    let twice = "[[rule]]\nalert = \"A\"\non = \"burn\"\n[[rule]]\nalert = \"A\"\non = \"buyback\"\n";
    let (_, message, _) = only_problem(twice);
    assert_eq!(message, "duplicate rule `A`, first defined at rules/test.toml:2");
    let distinct = load_text(&twice.replacen("on =", "id = \"a1\"\non =", 1));
    assert!(distinct.is_usable());
    assert_eq!(distinct.set.rules[0].id, RuleId::from("a1"));
    assert_eq!(distinct.set.rules[0].name, "A");
}

#[test]
fn spans_are_correct_in_strings_with_escapes() {
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
    // Two mistakes between escapes are two problems.
    let loaded = load_text(&rule(r#""cliffValue == \"5\" || valueToMarketCap == \"5\"""#));
    assert_eq!(loaded.diagnostics.len(), 2, "{:#?}", loaded.diagnostics);
    assert_ne!(loaded.diagnostics[0].span, loaded.diagnostics[1].span);
}

#[test]
fn reads_durations_dates_and_flags() {
    let rule = rule(
        "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"1d\", \"90m\", \"2w\"]\nfor = \"1h\"\nkeep_firing_for = \"2h\"\nowner = \"desk\"\n\
         expires = 2026-12-31\nreceivers = [\"ops\"]\nlimit = 5\nwhen = \"daysUntil < 3\"\n",
    );
    assert_eq!(rule.within.iter().map(|lead| lead.text.as_str()).collect::<Vec<_>>(), ["2w", "1d", "90m"]);
    assert_eq!((rule.pending_for, rule.keep_firing_for), (TimeDelta::hours(1), TimeDelta::hours(2)));
    assert_eq!((rule.expires, rule.limit, rule.owner.as_deref()), (Some(at("2026-12-31")), Some(5), Some("desk")));
    assert_eq!(rule.receivers, [ReceiverName::from("ops")]);
    assert_eq!((rule.is_clock_dependent, rule.edges.as_slice()), (false, &[3.0][..]));
    assert!(rule_when("unlock", "unlockDate - now < duration('3d')").is_clock_dependent);
    assert!(!rule_when("unlock", "cliffValue > 1").is_clock_dependent);
    assert_eq!(rule_when("burn", "value > 1").since, TimeDelta::days(7));
    assert!(load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nenabled = false\n").set.rules.is_empty());
    let expired = load_text("[[rule]]\nalert = \"A\"\non = \"unlock\"\nexpires = \"2026-01-01\"\n");
    assert_eq!(expired.diagnostics[0].severity, DiagnosticLevel::Warning);
}

#[test]
fn filters_select_matching_scopes() {
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
    let subscribes_to =
        |glob: &str| rule(&format!("[[rule]]\nalert = \"A\"\non = \"unlock.*\"\nallocations = [\"{glob}\"]\n")).covers(&changed);
    assert!(subscribes_to("Investors") && subscribes_to("Private*") && !subscribes_to("Founder*"));
}

#[test]
fn rejects_invalid_names_and_labels() {
    for (text, message) in [
        ("[[rule]]\nalert = \"\"\non = \"burn\"\n", "a name must have 1 to"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { token = \"x\" }\n", "is set automatically"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { \"a-b\" = \"x\" }\n", "is not a valid name"),
        ("[[rule]]\nalert = \"A\"\non = \"burn\"\nlabels = { a = 1 }\n", "`labels.a` is a number"),
        ("[rule]\nalert = \"A\"\n", "`rule` must be a list of tables"),
        ("alert = \"A\"\n", "unknown key `alert`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = [\"7d\", \"1w\"]\n", "duplicate lead time"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwithin = \"soon\"\n", "is not a valid duration"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\n[[rule.level]]\nlabels = { a = \"b\" }\n", "this level has no `when`"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\nmissing = \"maybe\"\n", "cannot be \"maybe\""),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = []\n", "`tokens` is empty"),
        ("[[rule]]\nalert = \"A\"\non = \"unlock\"\ntokens = [\"[\"]\n", "invalid pattern"),
    ] {
        let (_, found, _) = only_problem(text);
        assert!(found.contains(message), "{text}: {found}");
    }
}

#[test]
fn finds_files_by_pattern_sorted_and_limited() {
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
    let found: Vec<(DiagnosticLevel, String)> =
        read.diagnostics.iter().map(|problem| (problem.severity, problem.message.clone())).collect();
    assert_eq!(found.len(), 3, "{found:#?}");
    assert_eq!(found[0], (DiagnosticLevel::Warning, "no rule file matches \"none/*.toml\"".into()));
    assert!(found[1].1.contains("not UTF-8 text: line 2, byte 12 of it is 0xfc"), "{found:#?}");
    assert!(found[2].1.contains("larger than"), "{found:#?}");
    let deep = read_files(&["rules/**/*.toml".into()], folder.path());
    assert!(deep.files.iter().any(|file| file.file == path("rules/tests/t.toml")));
    // An absolute pattern with a configuration folder that is deeper than the matching files.
    let absolute = path("rules/t*/*.toml").to_string_lossy().into_owned();
    let far = read_files(&[absolute], &path("some/where/else/altogether/and/deeper"));
    assert_eq!(far.files.iter().map(|file| file.file.clone()).collect::<Vec<_>>(), [path("rules/tests/t.toml")]);
}

#[test]
fn rejects_large_files() {
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
fn toml_error_does_not_hide_problems_in_other_rules() {
    let text = "[[rule]]\nalert = \"A\"\non = \"unlok\"\n\n[[rule]]\nalert = \"B\non = \"burn\"\n\n[[rule]]\nalert = \"C\"\non = \"burn\"\nwhen = \"valu > 5\"\n";
    let loaded = load_text(text);
    let found: Vec<(usize, &str)> = loaded
        .diagnostics
        .iter()
        .map(|problem| {
            let span = problem.span.clone().expect("a span");
            (text[..span.start].matches('\n').count() + 1, problem.message.as_str())
        })
        .collect();
    assert!(!loaded.is_usable() && loaded.set.rules.is_empty());
    assert!(found.contains(&(3, "unknown record type `unlok`")), "{found:?}");
    assert!(found.contains(&(12, "unknown name `valu`")), "{found:?}");
    assert!(found.iter().any(|(line, _)| *line == 6), "the syntax error: {found:?}");
}

#[test]
fn rule_file_can_be_a_symbolic_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    for name in ["rules", "managed"] {
        std::fs::create_dir(path(name)).expect("a folder");
    }
    std::fs::write(path("managed/mine.toml"), "").expect("written");
    std::os::unix::fs::symlink(path("managed/mine.toml"), path("rules/mine.toml")).expect("a link");
    let is_read = |name: &str, pattern: &str| crate::is_rule_file(&path(name), &[pattern.to_owned()], folder.path());
    for pattern in ["rules/*.toml", "rules/mine.toml"] {
        assert!(is_read("rules/mine.toml", pattern), "{pattern}");
        assert!(!is_read("managed/mine.toml", pattern), "{pattern}");
    }
    assert!(is_read("rules/new.toml", "rules/*.toml"), "a file that does not exist yet");
}
