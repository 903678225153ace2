use super::*;

fn watch(tokens: &[&str], groups: &[(&str, &[&str])]) -> Result<Watch, Vec<WatchError>> {
    Watch::build(&config::WatchSettings {
        tokens: tokens.iter().map(ToString::to_string).collect(),
        groups: groups.iter().map(|(name, of)| (name.to_string(), of.iter().map(ToString::to_string).collect())).collect(),
        ..config::WatchSettings::default()
    })
}

#[test]
fn slugs_and_globs_select_tokens_and_groups() {
    let watch = watch(&["arbitrum", "optimism", "apt*"], &[("portfolio", &["arbitrum", "optimism"]), ("l2", &["arb*", "op*"])])
        .expect("valid");
    for token in ["arbitrum", "optimism", "aptos"] {
        assert!(watch.covers(&token.into()), "{token}");
    }
    assert!(!watch.covers(&"sui".into()));
    assert_eq!(*watch.groups_of(&"arbitrum".into()), ["l2".to_owned(), "portfolio".to_owned()]);
    assert_eq!(watch.named(), ["arbitrum".into(), "optimism".into()]);
    assert!(watch.needs_list());
}

#[test]
fn narrowed_watch_covers_selected_tokens_only() {
    let all = watch(&["arbitrum", "optimism", "apt*"], &[("portfolio", &["optimism", "sui"])]).expect("valid");
    let covered = |patterns: &[&str]| {
        let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
        let narrowed = all.narrowed(&patterns)?;
        let tokens = ["arbitrum", "optimism", "aptos", "sui"].into_iter().filter(|token| narrowed.covers(&(*token).into()));
        Ok::<_, (usize, String, Option<String>)>(tokens.collect::<Vec<_>>())
    };
    assert_eq!(covered(&[]), Ok(vec!["arbitrum", "optimism", "aptos"]));
    assert_eq!(covered(&["@portfolio"]), Ok(vec!["optimism"]));
    assert_eq!(covered(&["a*", "@portfolio"]), Ok(vec!["arbitrum", "optimism", "aptos"]));
    assert_eq!(covered(&["arbitrum"]), Ok(vec!["arbitrum"]));
    assert_eq!(covered(&["none"]), Ok(vec![]));
    let (index, message, help) = covered(&["arbitrum", "@portfoio"]).expect_err("unknown");
    assert_eq!((index, message.as_str()), (1, "the group \"@portfoio\" is not in [watch.groups]"));
    assert_eq!(help.as_deref(), Some("did you mean \"@portfolio\"?"));
    assert!(covered(&["["]).is_err());
}

#[test]
fn error_lists_all_invalid_patterns_with_paths() {
    let errors = watch(&["["], &[("portfolio", &["{a"])]).expect_err("bad");
    let places: Vec<_> = errors.iter().map(|error| error.path.as_str()).collect();
    assert_eq!(places, ["watch.groups.portfolio[0]", "watch.tokens[0]"]);
}
