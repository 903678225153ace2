//! The parameters of tools: their JSON Schema, and the check of their values.

use serde_json::{Value, json};

use daemon::playground::MAX_TEXT_BYTES as MAX_RULE_BYTES;

/// The maximum length of a text, in bytes.
const MAX_TEXT_BYTES: usize = 200;
/// The maximum number of texts in a list.
const MAX_TEXTS: usize = 50;

/// A parameter of a tool.
#[derive(Clone, Copy)]
pub(super) struct ToolParameter {
    pub name: &'static str,
    kind: ToolParameterKind,
    pub target: ParameterTarget,
    pub is_required: bool,
    description: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum ToolParameterKind {
    Text,
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from 1 to this maximum.
    Count(usize),
    /// The text of a rule file.
    Rule,
}

/// The role of a parameter in the command of its tool.
#[derive(Clone, Copy)]
pub(super) enum ParameterTarget {
    /// The value of an option. Repeated for each text.
    Option(&'static str),
    /// A positional argument, after all options.
    Positional,
    Stdin,
    /// The maximum number of rows of this list in the result.
    Rows(&'static str),
}

/// A value that its parameter allows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParameterValue {
    Texts(Vec<String>),
    Count(usize),
}

impl ToolParameter {
    pub const fn new(name: &'static str, kind: ToolParameterKind, target: ParameterTarget, description: &'static str) -> Self {
        Self { name, kind, target, is_required: false, description }
    }

    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    pub fn schema(&self) -> Value {
        let text = json!({"type": "string", "minLength": 1, "maxLength": MAX_TEXT_BYTES});
        let mut schema = match self.kind {
            ToolParameterKind::Text => text,
            ToolParameterKind::Texts => json!({"type": "array", "items": text, "maxItems": MAX_TEXTS}),
            ToolParameterKind::Word(words) => json!({"type": "string", "enum": words}),
            ToolParameterKind::Count(max) => json!({"type": "integer", "minimum": 1, "maximum": max}),
            ToolParameterKind::Rule => json!({"type": "string", "minLength": 1, "maxLength": MAX_RULE_BYTES}),
        };
        schema["description"] = self.description.into();
        schema
    }

    /// Returns the checked value.
    ///
    /// # Errors
    ///
    /// Fails with a text for the client if the value is not valid.
    pub fn value(&self, value: &Value) -> Result<ParameterValue, String> {
        let expected = |expected: &str| format!("the parameter `{}` is not valid: expected {expected}", self.name);
        let text = |value: &Value, max: usize| {
            let text = value.as_str().filter(|text| text.len() <= max && !text.trim().is_empty() && !text.contains('\0'));
            text.map(str::to_owned).ok_or_else(|| expected(&format!("a text of 1 to {max} bytes")))
        };
        let texts = match self.kind {
            ToolParameterKind::Text => vec![text(value, MAX_TEXT_BYTES)?],
            ToolParameterKind::Rule => vec![text(value, MAX_RULE_BYTES)?],
            ToolParameterKind::Texts => {
                let items = value.as_array().filter(|items| items.len() <= MAX_TEXTS);
                let items = items.ok_or_else(|| expected(&format!("a list of at most {MAX_TEXTS} texts")))?;
                items.iter().map(|item| text(item, MAX_TEXT_BYTES)).collect::<Result<_, _>>()?
            }
            ToolParameterKind::Word(words) => {
                let given = value.as_str().unwrap_or_default();
                if !words.contains(&given) {
                    let near = model::closest(given, words.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
                    return Err(expected(&format!("one of {}{}", words.join(", "), near.unwrap_or_default())));
                }
                vec![given.to_owned()]
            }
            ToolParameterKind::Count(max) => {
                let count = value.as_u64().and_then(|count| usize::try_from(count).ok());
                let count = count.filter(|count| (1..=max).contains(count));
                return count.map(ParameterValue::Count).ok_or_else(|| expected(&format!("a whole number from 1 to {max}")));
            }
        };
        Ok(ParameterValue::Texts(texts))
    }
}
