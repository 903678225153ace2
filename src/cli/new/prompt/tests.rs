use super::*;

#[test]
fn invalid_input_gets_a_suggestion() {
    let groups = ["@portfolio".to_owned(), "@own".to_owned()];
    let rules = [SourceText { file: "r.toml".into(), text: "[[rule]]\nalert = \"CliffAhead\"\n".to_owned() }];
    let names = |id: &str, symbol: &str| model::TokenNames { id: id.into(), symbol: symbol.to_owned(), name: String::new() };
    let known = KnownTokens { names: vec![names("arbitrum", "ARB"), names("a1", "AA"), names("a2", "AA")], is_complete: true };
    let shown = |result: Result<String, String>| result.unwrap_or_else(|problem| format!("? {problem}"));
    let tokens = |text: &str| shown(read_tokens(text, &groups, &known).map(|tokens| format!("{tokens:?}")));
    let cases = [
        (tokens("All"), "[]"),
        (tokens("arbitrum, apt*,,@own "), r#"["arbitrum", "apt*", "@own"]"#),
        (tokens("ARB,*"), r#"["arbitrum", "*"]"#),
        (tokens("aa"), "? several tokens have the name \"aa\": use one of the slugs a1, a2"),
        (tokens("arbitrm"), "? no token has the slug or ticker \"arbitrm\": did you mean arbitrum?"),
        (tokens("@portfolo"), "? unknown group @portfolo: did you mean @portfolio?"),
        (tokens("@zzz"), "? unknown group @zzz: expected one of @portfolio, @own"),
        (tokens("arbitrum aptos"), r#"? "arbitrum aptos": a slug cannot contain ' '; separate slugs by commas"#),
        (tokens(","), "? enter a slug, such as arbitrum, or all"),
        (shown(read_choice("7").map(|about| format!("{about:?}"))), "? enter a number from 1 to 6"),
        (shown(read_choice("3").map(|about| format!("{about:?}"))), "Burns"),
        (shown(read_days("40d").map(|days| days.to_string())), "40"),
        (shown(read_days("0").map(|days| days.to_string())), "? enter a number of days from 1 to 3650"),
        (shown(read_days("-1").map(|days| days.to_string())), "? enter a number of days from 1 to 3650"),
        (shown(read_severity("Critical")), "critical"),
        (shown(read_severity("warnign")), "? enter info, warning, or critical: did you mean warning?"),
        (shown(read_severity("loud")), "? enter info, warning, or critical"),
        (shown(read_name("My-Rule_2", &rules)), "My-Rule_2"),
        (shown(read_name("My Rule", &rules)), "? a name cannot contain ' ': use letters, digits, `-`, and `_`"),
        (shown(read_name("CliffAhead", &rules)), "? a rule with the name CliffAhead already exists"),
        (free_name(RuleTopic::Cliffs, &rules), "CliffAhead2"),
    ];
    for (result, expected) in cases {
        assert_eq!(result, expected);
    }
}
