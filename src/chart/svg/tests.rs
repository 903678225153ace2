use super::*;

#[test]
fn numbers_are_rounded_and_finite() {
    assert_eq!([1.0, 1.25, -0.01, f64::NAN, f64::INFINITY, 1e300].map(number), ["1", "1.2", "0", "0", "0", "1000000"]);
}

#[test]
fn text_from_the_source_is_escaped() {
    let mut svg = Svg::new(10.0, 10.0, "wide", "a \"b\"");
    svg.marked_group(Some("/tokens/x\"y"), "<script>", |svg| svg.text("name", 1.0, 2.0, Anchor::End, "\u{202e}&'"));
    let text = svg.finish();
    assert!(!text.contains("<script") && !text.contains('\u{202e}') && !text.contains("x\"y"), "{text}");
    assert!(text.contains("&lt;script&gt;") && text.contains("&amp;&#x27;") && text.ends_with("</a></svg>"), "{text}");
}
