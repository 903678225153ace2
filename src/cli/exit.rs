//! How a command ends: exit codes, and errors printed once with their causes.

use std::process::ExitCode;

use model::text::{error_causes, harmless};

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// 0.
    Done,
    /// 1: it failed or found errors, which were printed.
    Failed,
    /// 2.
    WrongUsage,
    /// 3.
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

/// An error of the person at the keyboard: printed without a chain, exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub String);

/// An error with lines that say what to do, each printed as it is.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub(super) struct Hinted {
    pub error: String,
    pub hint: Vec<String>,
}

/// Prints an error with its causes, once each.
pub(super) fn print_error(error: &anyhow::Error) -> Exit {
    if error
        .chain()
        .any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe))
    {
        // Whoever read our output has seen enough.
        return Exit::Done;
    }
    if error.downcast_ref::<AlreadyPrinted>().is_some() {
        return Exit::Failed;
    }
    for (index, cause) in error_causes(&**error).iter().enumerate() {
        let head = if index == 0 { "error" } else { "  because" };
        anstream::eprintln!("{head}: {}", harmless(cause));
    }
    if let Some(Hinted { hint, .. }) = error.downcast_ref::<Hinted>() {
        for line in hint {
            anstream::eprintln!("  {}", harmless(line));
        }
    }
    if error.downcast_ref::<UsageError>().is_some() { Exit::WrongUsage } else { Exit::Failed }
}

/// Its problems were printed already.
#[derive(Debug, thiserror::Error)]
#[error("the config cannot be used")]
pub(super) struct AlreadyPrinted;
