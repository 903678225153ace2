use super::*;

fn source(text: &str) -> SourceText {
    SourceText { file: "cliffwatch.toml".into(), text: text.into() }
}

#[test]
fn problem_shows_location_and_suggestion() {
    let text = "[watch]\ntokns = [\"*\"]\n";
    let unknown = Diagnostic::error("cliffwatch.toml", Some(8..13), "unknown key `tokns` in [watch]")
        .label("not a key of [watch]")
        .help("did you mean `tokens`?");
    let whole = Diagnostic::warning("rules/a.toml", None, "the file holds no rule");
    insta::assert_snapshot!(render(&[whole, unknown], &[source(text)], false), @r###"
        error: unknown key `tokns` in [watch]
         --> cliffwatch.toml:2:1
          |
        2 | tokns = ["*"]
          | ^^^^^ not a key of [watch]
          |
          = help: did you mean `tokens`?

        warning: the file holds no rule
        --> rules/a.toml

        1 error, 1 warning
        "###);
}

#[test]
fn json_counts_lines_and_columns_from_one() {
    let text = "a = 1\nä = \"x\"\n";
    let json = to_json(&[Diagnostic::error("cliffwatch.toml", Some(11..14), "bad")], &[source(text)]);
    assert_eq!(
        json,
        serde_json::json!([{"file": "cliffwatch.toml", "line": 2, "column": 5, "endLine": 2, "endColumn": 8,
            "severity": "error", "message": "bad", "label": null, "help": null}])
    );
}

#[test]
fn rendered_text_has_no_control_codes() {
    let text = "name = \"\u{1b}[31mred\u{202e}\u{9b}\u{7}\"\n";
    let problem = Diagnostic::error("cliffwatch.toml", Some(7..20), "bad \u{1b}[2J name\nwith a line").help("\u{1b}]0;x\u{7}");
    let page = render(&[problem], &[source(text)], false);
    assert!(page.chars().all(|c| c == '\n' || !is_hostile(c)), "{page:?}");
}

#[test]
fn equal_problems_are_reported_once() {
    let problem = Diagnostic::error("cliffwatch.toml", Some(0..1), "bad");
    assert!(render(&[problem.clone(), problem], &[source("x\n")], false).ends_with("\n1 error\n"));
    assert_eq!(render(&[], &[], true), "");
}

proptest::proptest! {
    #[test]
    fn render_never_panics(text in "(\\PC|[\u{0}-\u{1f}äß€😀\n\r\t]){0,60}", start in 0usize..200, len in 0usize..200) {
        let problem = Diagnostic::error("cliffwatch.toml", Some(start..start + len), "bad").label("here");
        let page = render(std::slice::from_ref(&problem), &[source(&text)], true);
        assert!(page.contains("bad"));
        let _ = to_json(&[problem], &[source(&text)]);
    }
}

#[test]
fn suggestions_for_a_long_text_take_no_time() {
    let long = "x".repeat(1 << 20);
    let begun = std::time::Instant::now();
    assert_eq!((0..1_000).filter_map(|_| closest(&long, ["tokens", "arbitrum", "watch"])).next(), None);
    assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{:?}", begun.elapsed());
    assert_eq!(closest("tokns", ["watch", "tokens"]), Some("tokens"));
}

proptest::proptest! {
    #[test]
    fn distance_of_similar_words_is_the_number_of_edits(one in "[a-c]{0,9}", other in "[a-cA-C]{0,9}") {
        let edits = strsim::damerau_levenshtein(&one, &other.to_lowercase());
        let most = (one.len().max(other.len()) / 3).max(1);
        proptest::prop_assert_eq!(near_distance(&one, &other), (edits <= most).then_some(edits));
    }
}
