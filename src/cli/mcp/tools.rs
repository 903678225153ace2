//! The tools, and the command of this program that each one runs.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::output::ListLimit;
use super::parameters::{ParameterTarget, ParameterValue, ToolParameter, ToolParameterKind};
use model::{AlertState, ChangeKind, Resource, UnlockKind, closest};

/// The maximum number of rows of a list.
const MAX_ROWS: usize = 200;
/// The maximum number of messages of a backtest.
const MAX_MESSAGES: usize = 50;
const DEFAULT_MESSAGES: usize = 10;

/// A tool that clients can call.
pub(super) struct ToolSpec {
    pub name: &'static str,
    description: &'static str,
    /// The command with its fixed arguments.
    command: &'static [&'static str],
    parameters: &'static [ToolParameter],
    /// The list of the result with a limit of rows, if no parameter sets one.
    list_limit: Option<ListLimit>,
}

/// The command to run for a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ToolCall {
    pub arguments: Vec<String>,
    /// The text for standard input.
    pub input: Option<String>,
    pub list_limit: Option<ListLimit>,
}

const LIMIT: ToolParameter = ToolParameter::new(
    "limit",
    ToolParameterKind::Count(MAX_ROWS),
    ParameterTarget::Option("--limit"),
    "Maximum number of rows; default: 50.",
);
const TOKEN: ToolParameter =
    ToolParameter::new("token", ToolParameterKind::Text, ParameterTarget::Option("--token"), "Slug or ticker of a token.");
const GROUPS: ToolParameter = ToolParameter::new(
    "group",
    ToolParameterKind::Texts,
    ParameterTarget::Option("--group"),
    "Names of groups in the config; default: all tokens.",
);
const RULE_TEXT: ToolParameter = ToolParameter::new(
    "rule",
    ToolParameterKind::Rule,
    ParameterTarget::Stdin,
    "Text of a rule file in TOML: one or more `[[rule]]` tables with `alert`, `on`, and usually `when`. The tool `fields` lists what \
     conditions can use.",
)
.required();

/// The tools, in the order of the list.
pub(super) const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "upcoming",
        description: "List upcoming cliff and linear unlocks, nearest first.",
        command: &["upcoming"],
        parameters: &[
            ToolParameter::new(
                "tokens",
                ToolParameterKind::Texts,
                ParameterTarget::Positional,
                "Slugs, tickers, globs such as `a*`, or groups such as `@portfolio`; default: all tokens.",
            ),
            GROUPS,
            ToolParameter::new(
                "within",
                ToolParameterKind::Text,
                ParameterTarget::Option("--within"),
                "Maximum time until the unlock, such as `30d`.",
            ),
            ToolParameter::new(
                "type",
                ToolParameterKind::Word(&UnlockKind::WORDS),
                ParameterTarget::Option("--type"),
                "Type of the unlocks; default: both.",
            ),
            ToolParameter::new(
                "minValue",
                ToolParameterKind::Text,
                ParameterTarget::Option("--min-value"),
                "Minimum value in USD, such as `5M` or `250000`.",
            ),
            LIMIT,
        ],
        list_limit: None,
    },
    ToolSpec {
        name: "token",
        description: "Get what is known about one token: market data, coming supply, polls, and its records.",
        command: &["token"],
        parameters: &[
            ToolParameter::new("token", ToolParameterKind::Text, ParameterTarget::Positional, "Slug or ticker of the token.")
                .required(),
            ToolParameter::new(
                "resource",
                ToolParameterKind::Word(&Resource::WORDS),
                ParameterTarget::Option("--resource"),
                "Type of the records to include; default: all.",
            ),
        ],
        list_limit: None,
    },
    ToolSpec {
        name: "changes",
        description: "List changes that the source made to its records, newest first.",
        command: &["changes"],
        parameters: &[
            TOKEN,
            GROUPS,
            ToolParameter::new(
                "kind",
                ToolParameterKind::Word(&ChangeKind::WORDS),
                ParameterTarget::Option("--kind"),
                "Kind of the changes; default: all.",
            ),
            ToolParameter::new(
                "resource",
                ToolParameterKind::Word(&Resource::WORDS),
                ParameterTarget::Option("--resource"),
                "Type of the changed records; default: all.",
            ),
            ToolParameter::new(
                "since",
                ToolParameterKind::Text,
                ParameterTarget::Option("--since"),
                "Maximum age of the changes, such as `7d`.",
            ),
            LIMIT,
        ],
        list_limit: None,
    },
    ToolSpec {
        name: "alerts",
        description: "List alerts, most recently updated first.",
        command: &["alerts"],
        parameters: &[
            ToolParameter::new(
                "state",
                ToolParameterKind::Word(&AlertState::WORDS),
                ParameterTarget::Option("--state"),
                "State of the alerts; default: all.",
            ),
            ToolParameter::new("rule", ToolParameterKind::Text, ParameterTarget::Option("--rule"), "Name or id of a rule."),
            TOKEN,
            GROUPS,
            LIMIT,
        ],
        list_limit: None,
    },
    ToolSpec {
        name: "explain",
        description: "Explain clause by clause why a rule of the config notified about a token, or did not.",
        command: &["explain"],
        parameters: &[
            ToolParameter::new(
                "rule",
                ToolParameterKind::Text,
                ParameterTarget::Positional,
                "Name of a rule, or id of an alert.",
            )
            .required(),
            ToolParameter::new(
                "about",
                ToolParameterKind::Text,
                ParameterTarget::Positional,
                "Token (slug or ticker), or an unlock such as `arbitrum@2026-03-16`; default: all tokens, on one line each.",
            ),
        ],
        list_limit: None,
    },
    ToolSpec {
        name: "fields",
        description: "List the names that conditions and texts of a rule can use, with units and examples.",
        command: &["fields"],
        parameters: &[ToolParameter::new(
            "on",
            ToolParameterKind::Text,
            ParameterTarget::Positional,
            "Target of the rule, such as `unlock`, `unlock.rescheduled`, `burn`, or `token`.",
        )
        .required()],
        list_limit: None,
    },
    ToolSpec {
        name: "check",
        description: "Check the text of a rule file, without saving it. Returns its problems with suggestions: an empty list if it is valid.",
        command: &["check", "--no-positions", "--rules=-"],
        parameters: &[RULE_TEXT],
        list_limit: None,
    },
    ToolSpec {
        name: "backtest",
        description: "Show the messages that a rule would have sent over the recorded history, without saving or sending anything. Call \
            `check` first.",
        command: &["backtest", "--rules=-"],
        parameters: &[
            RULE_TEXT,
            ToolParameter::new(
                "tokens",
                ToolParameterKind::Texts,
                ParameterTarget::Option("--tokens"),
                "Slugs, tickers, globs such as `a*`, or groups such as `@portfolio`; default: all watched tokens.",
            ),
            ToolParameter::new(
                "from",
                ToolParameterKind::Text,
                ParameterTarget::Option("--from"),
                "Start, such as `2026-01-31`; default: 90 days ago.",
            ),
            ToolParameter::new(
                "to",
                ToolParameterKind::Text,
                ParameterTarget::Option("--to"),
                "End, such as `2026-03-09`; default: now.",
            ),
            ToolParameter::new(
                "messages",
                ToolParameterKind::Count(MAX_MESSAGES),
                ParameterTarget::Rows("messages"),
                "Maximum number of messages to return; default: 10. The summary counts all.",
            ),
        ],
        list_limit: Some(ListLimit { list: "messages", rows: DEFAULT_MESSAGES }),
    },
    ToolSpec {
        name: "plan",
        description: "Show the polls and credits per month that the config uses, compared with the limit of the API.",
        command: &["plan"],
        parameters: &[],
        list_limit: None,
    },
];

/// Returns the tool with this name.
///
/// # Errors
///
/// Fails with a text for the client that suggests a similar name, or lists all names.
pub(super) fn find_tool(name: &str) -> Result<&'static ToolSpec, String> {
    let names = || TOOLS.iter().map(|spec| spec.name);
    let help = || match closest(name, names()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
    };
    TOOLS.iter().find(|spec| spec.name == name).ok_or_else(|| format!("no tool has the name {name:?}: {}", help()))
}

impl ToolSpec {
    /// Returns the description for clients.
    pub fn tool(&self) -> Tool {
        let properties: Map<String, Value> =
            self.parameters.iter().map(|parameter| (parameter.name.to_owned(), parameter.schema())).collect();
        let required: Vec<&str> =
            self.parameters.iter().filter(|parameter| parameter.is_required).map(|parameter| parameter.name).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
        let schema: JsonObject = schema.as_object().cloned().unwrap_or_default();
        let annotations = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
        Tool::new(self.name, self.description, Arc::new(schema)).with_annotations(annotations)
    }

    /// Returns the command for these arguments.
    ///
    /// # Errors
    ///
    /// Fails with a text for the client if an argument is missing, unknown, or not valid.
    pub fn call(&self, arguments: &JsonObject) -> Result<ToolCall, String> {
        let names = || self.parameters.iter().map(|parameter| parameter.name);
        if let Some(unknown) = arguments.keys().find(|name| names().all(|known| known != name.as_str())) {
            let help = match closest(unknown, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None if self.parameters.is_empty() => "it has none".to_owned(),
                None => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("the tool `{}` has no parameter {unknown:?}: {help}", self.name));
        }
        let mut positional = Vec::new();
        let mut call = ToolCall { list_limit: self.list_limit, ..ToolCall::default() };
        call.arguments.extend(self.command.iter().map(|argument| (*argument).to_owned()));
        for parameter in self.parameters {
            let value = match arguments.get(parameter.name).filter(|value| !value.is_null()) {
                Some(value) => parameter.value(value)?,
                None if parameter.is_required => return Err(format!("the parameter `{}` is missing", parameter.name)),
                None => continue,
            };
            match (parameter.target, value) {
                // One argument, so that a value that begins with a hyphen is not read as an option.
                (ParameterTarget::Option(option), ParameterValue::Texts(texts)) => {
                    call.arguments.extend(texts.into_iter().map(|text| format!("{option}={text}")));
                }
                (ParameterTarget::Option(option), ParameterValue::Count(count)) => {
                    call.arguments.push(format!("{option}={count}"))
                }
                (ParameterTarget::Positional, ParameterValue::Texts(texts)) => positional.extend(texts),
                (ParameterTarget::Stdin, ParameterValue::Texts(texts)) => call.input = texts.into_iter().next(),
                (ParameterTarget::Rows(list), ParameterValue::Count(rows)) => call.list_limit = Some(ListLimit { list, rows }),
                (ParameterTarget::Positional | ParameterTarget::Stdin, ParameterValue::Count(_))
                | (ParameterTarget::Rows(_), ParameterValue::Texts(_)) => {}
            }
        }
        if !positional.is_empty() {
            call.arguments.push("--".to_owned());
            call.arguments.extend(positional);
        }
        Ok(call)
    }
}
