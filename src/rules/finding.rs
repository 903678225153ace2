//! A problem in a text of a rule, a condition or a template, at its place. The loader moves it to its place in the file.

use std::ops::Range;

/// A problem at a place of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub is_error: bool,
    /// Bytes of the text; none where it is about all of it.
    pub span: Option<Range<usize>>,
    pub message: String,
    pub label: Option<String>,
    pub help: Option<String>,
}

impl Finding {
    pub fn error(span: impl Into<Option<Range<usize>>>, message: impl Into<String>) -> Self {
        Self { is_error: true, span: span.into(), message: message.into(), label: None, help: None }
    }

    pub fn warning(span: impl Into<Option<Range<usize>>>, message: impl Into<String>) -> Self {
        Self { is_error: false, ..Self::error(span, message) }
    }

    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
}
