use serde_json::json;

use super::tools::{TOOLS, ToolCall, find_tool};

fn call(tool: &str, arguments: serde_json::Value) -> Result<ToolCall, String> {
    find_tool(tool)?.call(arguments.as_object().expect("an object"))
}

#[test]
fn tool_list_has_a_description_for_each_tool_and_parameter() {
    let tools = serde_json::to_value(TOOLS.iter().map(super::ToolSpec::tool).collect::<Vec<_>>()).expect("JSON");
    for tool in tools.as_array().expect("a list") {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool:#}");
        let parameters = tool["inputSchema"]["properties"].as_object().expect("an object");
        for text in parameters.values().chain([tool]).map(|described| described["description"].as_str().unwrap_or_default()) {
            assert!(text.ends_with('.') || text.contains("default:"), "{text}: {tool:#}");
        }
    }
    insta::assert_json_snapshot!(tools);
}

#[test]
fn arguments_become_a_command_line() {
    let line = call("upcoming", json!({"tokens": ["ARB", "--all"], "within": "30d", "type": "cliff", "limit": 5, "group": null}));
    let line = line.expect("valid").arguments.join(" ");
    assert_eq!(line, "upcoming --within=30d --type=cliff --limit=5 -- ARB --all");
    let backtest = call("backtest", json!({"rule": "[[rule]]", "messages": 3})).expect("valid");
    assert_eq!((backtest.arguments.join(" "), backtest.input.as_deref()), ("backtest --rules=-".to_owned(), Some("[[rule]]")));
    assert_eq!(backtest.list_limit.map(|limit| limit.rows), Some(3));
}

#[test]
fn wrong_arguments_get_a_suggestion() {
    for (tool, arguments, expected) in [
        ("upcomming", json!({}), "did you mean `upcoming`?"),
        ("upcoming", json!({"token": "ARB"}), "did you mean `tokens`?"),
        ("upcoming", json!({"tokens": "ARB"}), "expected a list of at most 50 texts"),
        ("upcoming", json!({"type": "clif"}), "did you mean `cliff`?"),
        ("upcoming", json!({"limit": 1000}), "expected a whole number from 1 to 200"),
        ("upcoming", json!({"limit": -1}), "expected a whole number"),
        ("token", json!({}), "the parameter `token` is missing"),
        ("token", json!({"token": " "}), "expected a text of 1 to 200 bytes"),
        ("changes", json!({"token": "x".repeat(201)}), "expected a text of 1 to 200 bytes"),
        ("check", json!({"rule": "x".repeat(100_000)}), "expected a text of 1 to 32768 bytes"),
        ("plan", json!({"tokens": 5}), "it has none"),
    ] {
        let error = call(tool, arguments.clone()).expect_err(tool);
        assert!(error.contains(expected), "{tool} {arguments}: {error}");
    }
}
