//! A problem in a condition or template. The loader converts its span to a span in the file.

use std::ops::Range;

/// A problem in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub is_error: bool,
    /// The byte range in the text. `None` if the problem concerns the whole text.
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
