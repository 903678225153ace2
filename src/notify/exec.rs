//! A receiver that is a program of the operator's: it is run for each message, reads it from its standard input, and says by its exit
//! status what became of it.
//!
//! The contract is strict, since what is told comes from outside. There is no shell: path and arguments are those of the config, letter
//! for letter, and nothing of a message stands in them. The environment holds [`PATH`] and four words about the message; everything else
//! is in the body, which is that of a webhook in our own format. The program, and all that it starts, is one process group that ends with
//! it, or with the time that an attempt may take. What it writes is read to its end, and the last of it kept.
//!
//! Exit status 0 says delivered, 75 (`EX_TEMPFAIL` of sysexits) says later, any other says never. Where no status tells (a time-out, a
//! signal), it may have been told already: it is tried again, under the same id.

mod process;
mod program;

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use super::message::{status, strongest, webhook_body};
use super::scrub::{MAX_ANSWER_BYTES, Scrubber};
use super::{KeyProblem, Outcome, SendResult};
use model::{DueDelivery, config, text::error_chain};
use process::{Run, RunEnd};
pub use program::ProgramProblem;

/// Where a program finds others.
pub const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Runs at once, unless the config says otherwise: programs take more memory than requests do.
const MOST_AT_ONCE: u32 = 1;

/// `EX_TEMPFAIL` of sysexits: try again.
const TEMPORARY_FAILURE: i32 = 75;

/// Longest severity that is passed on, characters.
const MAX_SEVERITY_CHARS: usize = 32;

/// A receiver of type `exec`, checked.
#[derive(Debug)]
pub struct ExecReceiver {
    command: PathBuf,
    args: Vec<String>,
    concurrency: u32,
    timeout: Duration,
    external_url: Option<String>,
}

impl ExecReceiver {
    /// Checks a receiver's config, and that its program is there and nobody's to change. Runs nothing. All problems are pushed to
    /// `problems`; None where there was one.
    pub(crate) fn build(
        receiver: &config::ReceiverSettings,
        delivery: &config::DeliverySettings,
        external_url: Option<&str>,
        problems: &mut Vec<KeyProblem>,
    ) -> Option<Self> {
        let Some(command) = receiver.command.clone() else {
            problems.push(KeyProblem::wrong("command", "an exec receiver needs the path of its program: give `command`"));
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
            concurrency: receiver.concurrency.unwrap_or(MOST_AT_ONCE),
            timeout: delivery.timeout.0,
            external_url: external_url.map(str::to_owned),
        })
    }

    /// How many of it may run at once.
    pub(super) fn concurrency(&self) -> u32 {
        self.concurrency
    }

    /// One attempt: one run.
    pub(super) async fn send(&self, delivery: &DueDelivery) -> SendResult {
        let body = match webhook_body(delivery, self.external_url.as_deref()) {
            Ok(Some(body)) => body,
            Ok(None) => return SendResult::refused("there is nothing to tell"),
            Err(error) => return SendResult::refused(error_chain(&error)),
        };
        // What was checked when the config was read may have been replaced since.
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

    /// What is run: nothing of the message stands in path and arguments, and little in the environment.
    fn command_for(&self, delivery: &DueDelivery) -> Command {
        let notifications = &delivery.notifications;
        let severity = strongest(notifications).and_then(|notice| notice.body.labels.get("severity"));
        let mut command = Command::new(&self.command);
        command.args(&self.args).current_dir("/").env_clear().process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("PATH", PATH).env("LANG", "C.UTF-8");
        command.env("CLIFFWATCH_WEBHOOK_ID", &delivery.webhook_id);
        command.env("CLIFFWATCH_ATTEMPT", delivery.attempts.saturating_add(1).to_string());
        command.env("CLIFFWATCH_STATUS", status(notifications).as_str());
        command.env("CLIFFWATCH_SEVERITY", severity.map(|severity| plain_word(severity)).unwrap_or_default());
        command
    }

    fn result_of(&self, run: &Run) -> SendResult {
        let (outcome, status, what) = match run.ended {
            RunEnd::Exited(0) => (Outcome::Accepted, Some(0), "exit status 0".to_owned()),
            RunEnd::Exited(code) => {
                let outcome = if code == TEMPORARY_FAILURE { Outcome::LATER } else { Outcome::Refused };
                (outcome, u16::try_from(code).ok(), format!("exit status {code}"))
            }
            RunEnd::Signalled(signal) => (Outcome::Uncertain, None, format!("ended by signal {signal}")),
            RunEnd::TimedOut => (Outcome::Uncertain, None, format!("no end within {:?}, so it was ended", self.timeout)),
        };
        // A failure is explained on standard error, and its end says most.
        let said = [run.stderr.text(), run.stdout.text()];
        let said: Vec<&str> = said.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect();
        let text = if said.is_empty() { format!("{what}, without a text") } else { format!("{what}: {}", said.join("\n")) };
        SendResult { outcome, status, text: Scrubber::of(Vec::new()).clean(&text) }
    }
}

/// A label as a word that no shell and no terminal reads as anything else.
fn plain_word(label: &str) -> String {
    label.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_')).take(MAX_SEVERITY_CHARS).collect()
}

/// Most bytes of each of its two outputs that are kept: together, with a few words, they fit into an answer.
const MAX_OUTPUT_BYTES: usize = MAX_ANSWER_BYTES / 2 - 64;

#[cfg(test)]
mod tests;
