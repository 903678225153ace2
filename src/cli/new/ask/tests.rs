use super::*;

/// Which answers are taken, and what is said of the others.
#[test]
fn an_answer_that_cannot_be_used_is_told_at_once_with_what_can() {
    let groups = ["@portfolio".to_owned(), "@own".to_owned()];
    let rules = [SourceText { file: "r.toml".into(), text: "[[rule]]\nalert = \"CliffAhead\"\n".to_owned() }];
    let shown = |answer: Result<String, String>| answer.unwrap_or_else(|problem| format!("? {problem}"));
    let tokens = |text: &str| shown(read_tokens(text, &groups).map(|tokens| format!("{tokens:?}")));
    let cases = [
        (tokens("All"), "[]"),
        (tokens("arbitrum, apt*,,@own "), r#"["arbitrum", "apt*", "@own"]"#),
        (tokens("@portfolo"), "? there is no group @portfolo: did you mean @portfolio?"),
        (tokens("@zzz"), "? there is no group @zzz: there are @portfolio, @own"),
        (tokens("arbitrum aptos"), r#"? "arbitrum aptos": a slug has no ' '; put commas between several"#),
        (tokens(","), "? a slug, such as arbitrum, or all"),
        (shown(read_choice("7").map(|about| format!("{about:?}"))), "? a number from 1 to 6"),
        (shown(read_choice("3").map(|about| format!("{about:?}"))), "Burns"),
        (shown(read_days("40d").map(|days| days.to_string())), "40"),
        (shown(read_days("0").map(|days| days.to_string())), "? a number of days, from 1 to 3650"),
        (shown(read_days("-1").map(|days| days.to_string())), "? a number of days, from 1 to 3650"),
        (shown(read_severity("Critical")), "critical"),
        (shown(read_severity("warnign")), "? info, warning or critical: did you mean warning?"),
        (shown(read_severity("loud")), "? info, warning or critical"),
        (shown(read_name("My-Rule_2", &rules)), "My-Rule_2"),
        (shown(read_name("My Rule", &rules)), "? letters, digits, `-` and `_` make a name, and ' ' is none of them"),
        (shown(read_name("CliffAhead", &rules)), "? there is a rule CliffAhead already"),
        (free_name(About::Cliffs, &rules), "CliffAhead2"),
    ];
    for (answer, expected) in cases {
        assert_eq!(answer, expected);
    }
}
