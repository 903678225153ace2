//! Exit codes, and the output of errors with their causes.

use std::process::ExitCode;

use model::text::{error_causes, harmless};

/// The result of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Done,
    /// The command failed, or found errors and printed them.
    Failed,
    WrongUsage,
    OnlyWarnings,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::WrongUsage => 2,
            Exit::OnlyWarnings => 3,
        })
    }
}

/// Wrong usage: printed without causes, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub String);

/// An error with lines of instructions.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(super) struct ErrorWithHint {
    pub error: String,
    pub hint: Vec<String>,
}

/// Prints an error with its causes, once each.
pub(super) fn print_error(error: &anyhow::Error) -> Exit {
    if error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe))
    {
        // The reader of our output closed the pipe, which is not an error.
        return Exit::Done;
    }
    if error.downcast_ref::<AlreadyPrinted>().is_some() {
        return Exit::Failed;
    }
    for (index, cause) in error_causes(&**error).iter().enumerate() {
        let head = if index == 0 { "error" } else { "  because" };
        anstream::eprintln!("{head}: {}", harmless(cause));
    }
    if let Some(ErrorWithHint { hint, .. }) = error.downcast_ref::<ErrorWithHint>() {
        for line in hint {
            anstream::eprintln!("  {}", harmless(line));
        }
    }
    if error.downcast_ref::<UsageError>().is_some() { Exit::WrongUsage } else { Exit::Failed }
}

/// A failure whose problems were already printed.
#[derive(Debug, thiserror::Error)]
#[error("the config is invalid")]
pub(super) struct AlreadyPrinted;
