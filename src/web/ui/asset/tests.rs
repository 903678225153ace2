use super::*;

#[test]
fn asset_is_found_only_by_its_hash() {
    let name = STYLE.href.strip_prefix("/assets/").expect("below assets");
    assert_eq!(find(name).map(|asset| asset.content_type), Some("text/css; charset=utf-8"));
    assert!(find("style.css").is_none() && find("style.0000000000000000.css").is_none() && find("../style.css").is_none());
}

#[test]
fn assets_load_nothing_from_other_hosts() {
    for asset in [&STYLE, &DISPLAY, &SCRIPT, &CHART, &ICON] {
        let text = asset.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "{}", asset.href);
    }
}

#[test]
fn dark_scheme_defines_only_known_colors() {
    let names = |text: &str| -> std::collections::BTreeSet<String> {
        let declared = text.split([';', '{']).filter_map(|part| part.trim().strip_prefix("--")?.split_once(':'));
        declared.map(|(name, _)| name.to_owned()).collect()
    };
    let light = include_str!("../assets/style.css").split_once('}').expect("the colors stand first").0;
    // `--on-accent` and the others of the light scheme have a dark counterpart, so that no color of one scheme stands on the other.
    assert_eq!(names(light), names(include_str!("../assets/dark.css")));
}
