use super::*;

fn shown(template: &str, value: &str) -> String {
    PAGES.render_named_str("test.html", template, minijinja::context! { value }).expect("renders")
}

#[test]
fn every_template_compiles() {
    for (name, _) in TEMPLATES {
        assert!(PAGES.get_template(name).is_ok(), "{name}");
    }
}

#[test]
fn values_are_sanitized_and_escaped_by_default() {
    let text = shown("{{ value }}", "<b>\u{202e}x\n\"");
    assert_eq!(text, "&lt;b&gt;\\u{202e}x &quot;");
    assert_eq!(shown("{{ value | lines }}", "a<\n\tb\u{202e}\r\nc"), "a&lt;\n\tb\\u{202e}\nc");
    assert_eq!(shown("<i class=\"{{ value | class }}\">", "\"><x"), "<i class=\"---x\">");
}

#[test]
fn slug_is_one_path_segment() {
    for (id, href) in [
        ("arbitrum", "/tokens/arbitrum"),
        ("a/b?c#d", "/tokens/a%2Fb%3Fc%23d"),
        ("é", "/tokens/%C3%A9"),
        ("..", "/tokens"),
        ("\"onload=", "/tokens/%22onload%3D"),
    ] {
        assert_eq!(token_href(id), href);
    }
}

#[test]
fn filters_format_counts_and_times() {
    assert_eq!(shown("{{ 1234 | counted(value) }}", "token"), "1,234 tokens");
    assert_eq!(minute("2026-03-09T12:00:30Z"), "2026-03-09 12:00 UTC");
    assert_eq!(ago(Some("2026-03-09T12:00:00Z"), Some("2026-03-09T12:05:00Z")), "5 min ago");
    assert_eq!(ago(Some("2026-03-12T12:00:00Z"), Some("2026-03-09T12:05:00Z")), "in 3 days");
}
