use super::*;

#[test]
fn step_in_a_pipe_is_one_sanitized_line() {
    let step = ExplainStep {
        mark: engine::explain::Mark::No,
        text: "a\u{1b}[31m b\u{202e}".into(),
        parts: vec![ExplainStep { mark: engine::explain::Mark::Yes, text: "c".into(), parts: Vec::new() }],
    };
    let mut text = String::new();
    step_lines(&mut text, &step, 1);
    assert_eq!(text, "  ✗ a\\u{1b}[31m b\\u{202e}\n    ✓ c\n");
}
