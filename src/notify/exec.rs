//! Receivers of type `exec`: a program of the operator that runs once per message, reads the message from standard input, and
//! reports the outcome by its exit status.
//!
//! The content of a message comes from outside, so the contract is strict. There is no shell: path and arguments come unchanged
//! from the config and never contain message text. The environment contains [`PATH`], `LANG`, and five variables about the message;
//! everything else is in the body, which equals the webhook body of the `cliffwatch` format. The program and its children are one
//! process group, which is killed when the program exits or the attempt times out. The end of both outputs is recorded.
//!
//! Exit status 0 means delivered, 75 (`EX_TEMPFAIL` of sysexits) means retry, any other means rejected. After a timeout or a
//! signal, the message may have been delivered, so it is sent again under the same id.

mod process;
mod program;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::message::{status, strongest, webhook_body};
use super::scrub::{MAX_RESPONSE_BYTES, Scrubber};
use super::{KeyProblem, Outcome, SendResult};
use model::{DueDelivery, config, text::error_chain};
use process::{ProgramEnd, ProgramRun};
pub use program::ProgramProblem;

/// The variable `PATH` of the program.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The default number of concurrent runs. It is low because a program takes more memory than a request.
const DEFAULT_CONCURRENCY: u32 = 1;

/// `EX_TEMPFAIL` of sysexits.
const TEMPORARY_FAILURE: i32 = 75;

const MAX_SEVERITY_CHARS: usize = 32;

#[derive(Debug)]
pub struct ExecReceiver {
    command: PathBuf,
    args: Vec<String>,
    concurrency: u32,
    timeout: Duration,
    external_url: Option<String>,
}

impl ExecReceiver {
    /// Validates a receiver's config and the permissions of its program, without running it. Pushes all problems to `problems`,
    /// and returns `None` if there were any.
    pub(crate) fn build(
        receiver: &config::ReceiverSettings,
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
        problems: &mut Vec<KeyProblem>,
    ) -> Option<Self> {
        let Some(command) = receiver.command.clone() else {
            problems.push(KeyProblem::wrong("command", "an exec receiver needs a program: set `command` to its full path"));
            return None;
        };
        if let Err(problem) = program::check(&command) {
            problems.push(match problem {
                ProgramProblem::Hidden { .. } => KeyProblem::unreadable("command", error_chain(&problem)),
                _ => KeyProblem::wrong("command", error_chain(&problem)),
            });
            return None;
        }
        Some(Self {
            command,
            args: receiver.args.clone(),
            concurrency: receiver.concurrency.unwrap_or(DEFAULT_CONCURRENCY),
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
        })
    }

    pub(super) fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// Makes one attempt, which is one run of the program.
    pub(super) async fn send(&self, delivery: &DueDelivery) -> SendResult {
        let body = match webhook_body(delivery, self.external_url.as_deref()) {
            Ok(Some(body)) => body,
            Ok(None) => return SendResult::refused("the delivery has no notifications"),
            Err(error) => return SendResult::refused(error_chain(&error)),
        };
        // The program may have been replaced since the config was checked.
        let program = self.command.clone();
        let checked = tokio::task::spawn_blocking(move || program::check(&program)).await;
        if let Ok(Err(problem)) = checked {
            return SendResult::later(error_chain(&problem));
        }
        match process::run(self.command_for(delivery), body, Instant::now() + self.timeout).await {
            Ok(run) => self.result_of(&run),
            Err(error) => SendResult::later(format!("{}: {}", self.command.display(), program::explain(&error))),
        }
    }

    /// Builds the command. Path and arguments contain nothing from the message, and the environment only sanitized words.
    fn command_for(&self, delivery: &DueDelivery) -> Command {
        let notifications = &delivery.notifications;
        let severity = strongest(notifications).and_then(|notice| notice.body.labels.get("severity"));
        let mut command = Command::new(&self.command);
        command.args(&self.args).current_dir("/").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("PATH", PATH).env("LANG", "C.UTF-8");
        command.env("CLIFFWATCH_WEBHOOK_ID", &delivery.webhook_id);
        command.env("CLIFFWATCH_ATTEMPT", delivery.attempts.saturating_add(1).to_string());
        if delivery.replay.is_some() {
            command.env("CLIFFWATCH_REPLAY", "true");
        }
        command.env("CLIFFWATCH_STATUS", status(notifications).as_str());
        command.env("CLIFFWATCH_SEVERITY", severity.map(|severity| plain_word(severity)).unwrap_or_default());
        command
    }

    fn result_of(&self, run: &ProgramRun) -> SendResult {
        let (outcome, status, what) = match run.ended {
            ProgramEnd::Exited(0) => (Outcome::Accepted, Some(0), "exit status 0".to_owned()),
            ProgramEnd::Exited(code) => {
                let outcome = if code == TEMPORARY_FAILURE { Outcome::LATER } else { Outcome::Refused };
                (outcome, u16::try_from(code).ok(), format!("exit status {code}"))
            }
            ProgramEnd::Signalled(signal) => (Outcome::Uncertain, None, format!("ended by signal {signal}")),
            ProgramEnd::TimedOut => (Outcome::Uncertain, None, format!("killed because it ran longer than {:?}", self.timeout)),
        };
        // Programs explain a failure on standard error, so it goes first.
        let output = [run.stderr.text(), run.stdout.text()];
        let output: Vec<&str> = output.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        let text = if output.is_empty() { format!("{what}, no output") } else { format!("{what}: {}", output.join("\n")) };
        SendResult { outcome, status, text: Scrubber::of(Vec::new()).clean(&text) }
    }
}

/// Keeps only the characters of a label that have no special meaning in a shell or a terminal.
fn plain_word(label: &str) -> String {
    label.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(MAX_SEVERITY_CHARS).collect()
}

/// The maximum number of bytes recorded of each of the two outputs. Both fit into the text of one result.
const MAX_OUTPUT_BYTES: usize = MAX_RESPONSE_BYTES / 2 - 64;

#[cfg(test)]
mod tests;
