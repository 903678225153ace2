use super::*;

#[test]
fn error_page_has_the_frame_and_an_optional_search() {
    let page = ErrorPage { title: "No such token".into(), text: "x <y>".into(), search: Some("\"a".into()) };
    let html = page.render();
    assert!(html.contains("<title>No such token · Cliffwatch</title>") && html.contains("<h1>No such token</h1>"), "{html}");
    assert!(html.contains("x &lt;y&gt;") && html.contains("value=\"&quot;a\""), "{html}");
    assert!(!html.contains("data-events") && html.contains(">Tokens</a>"), "{html}");
    let html = ErrorPage { search: None, ..page }.render();
    let main = html.split("<main").nth(1).and_then(|rest| rest.split("</main>").next()).expect("a main part");
    assert!(!main.contains("type=\"search\""), "{html}");
}

#[test]
fn pages_have_no_inline_script_or_style() {
    let html = ErrorPage { title: "t".into(), text: "t".into(), search: Some(String::new()) }.render();
    assert!(!html.contains("<style") && !html.contains(" style=") && !html.contains("onclick"), "{html}");
    // Only the script that sets the colors runs before the page is drawn.
    assert_eq!((html.matches("<script").count(), html.matches(" defer></script>").count()), (2, 1));
    let (before, _) = html.split_once("<link rel=\"stylesheet\"").expect("a stylesheet");
    assert!(before.contains(&format!("<script src=\"{}\"></script>", crate::ui::asset::DISPLAY.href)), "{html}");
}

#[test]
fn href_escapes_parameters_and_omits_empty_ones() {
    assert_eq!(href("/tokens", &[("q", "a&b c"), ("sort", "")]), "/tokens?q=a%26b+c");
    assert_eq!(href("/tokens", &[]), "/tokens");
}

#[test]
fn pager_links_to_its_neighbors_with_the_filters() {
    let kept = [("kind", "resized")];
    let first = Pager::new("/changes", &kept, 0, 50, 50, 120);
    assert_eq!(
        (first.first, first.last, first.previous, first.next.as_deref()),
        (1, 50, None, Some("/changes?kind=resized&offset=50"))
    );
    let middle = Pager::new("/changes", &kept, 50, 50, 50, 120);
    assert_eq!(middle.previous.as_deref(), Some("/changes?kind=resized"));
    assert_eq!(middle.next.as_deref(), Some("/changes?kind=resized&offset=100"));
    let end = Pager::new("/changes", &kept, 100, 50, 20, 120);
    assert_eq!((end.first, end.last, end.next), (101, 120, None));
    let beyond = Pager::new("/changes", &kept, 500, 50, 0, 120);
    assert_eq!((beyond.first, beyond.next.is_none(), beyond.previous.is_some()), (0, true, true));
}

/// Filters for page snapshots: charts, which have separate tests, and values that change with each build.
pub fn page_filters() -> Vec<(&'static str, &'static str)> {
    vec![(r"(?s)<svg.*?</svg>", "<svg…>"), (env!("CARGO_PKG_VERSION"), "…"), (r"/assets/(\w+)\.[0-9a-f]{16}\.", "/assets/$1.….")]
}
