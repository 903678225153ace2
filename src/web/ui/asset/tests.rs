use super::*;

#[test]
fn asset_is_found_only_by_its_hash() {
    let name = STYLE.href.strip_prefix("/assets/").expect("below assets");
    assert_eq!(find(name).map(|asset| asset.content_type), Some("text/css; charset=utf-8"));
    assert!(find("style.css").is_none() && find("style.0000000000000000.css").is_none() && find("../style.css").is_none());
}

#[test]
fn assets_load_nothing_from_other_hosts() {
    for asset in [&STYLE, &SCRIPT, &ICON] {
        let text = asset.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "{}", asset.href);
    }
}
