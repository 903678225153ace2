//! Terminal width, progress bars, and paths in messages.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use model::text::harmless;

/// Returns the width of the terminal at standard output, in characters. `None` for a pipe.
pub(super) fn width() -> Option<u16> {
    if !std::io::stdout().is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0)
}

/// Formats a path for messages.
pub(super) fn shown(path: &Path) -> String {
    let path = path.strip_prefix(".").unwrap_or(path);
    harmless(&path.display().to_string())
}

/// A progress bar on a terminal. In a pipe, nothing is shown.
pub(super) struct ProgressBar {
    is_shown: bool,
    last: String,
}

impl ProgressBar {
    /// The width of the bar, in characters.
    const WIDTH: usize = 40;

    pub fn new() -> Self {
        Self { is_shown: std::io::stderr().is_terminal(), last: String::new() }
    }

    /// Shows the progress, with text before and after the bar. An unchanged line is not written again.
    pub fn show(&mut self, before: &str, done: usize, total: usize, after: &str) {
        if !self.is_shown {
            return;
        }
        let full = (done * Self::WIDTH).checked_div(total).unwrap_or(Self::WIDTH).min(Self::WIDTH);
        let after: String = harmless(after).chars().take(Self::WIDTH).collect();
        let line = format!("{before}[{}{}] {after}", "#".repeat(full), " ".repeat(Self::WIDTH - full));
        if line != self.last {
            anstream::eprint!("\r\x1b[2K{line}");
            std::io::stderr().flush().ok();
            self.last = line;
        }
    }

    pub fn clear(&self) {
        if !self.last.is_empty() {
            anstream::eprint!("\r\x1b[2K");
        }
    }
}
