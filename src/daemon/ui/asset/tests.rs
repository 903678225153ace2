use super::*;

#[test]
fn an_asset_is_found_under_the_hash_of_its_bytes_alone() {
    let name = STYLE.href.strip_prefix("/assets/").expect("below assets");
    assert_eq!(find(name).map(|asset| asset.kind), Some("text/css; charset=utf-8"));
    assert!(find("style.css").is_none() && find("style.0000000000000000.css").is_none() && find("../style.css").is_none());
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    for asset in [&STYLE, &SCRIPT, &ICON] {
        let text = asset.text.replace("http://www.w3.org/2000/svg", "");
        assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("@import"), "{}", asset.href);
    }
}
