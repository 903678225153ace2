//! Runs a command of this program in a process of its own, with limits on time, memory, and output.

use std::path::PathBuf;
use std::process::Stdio;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};

use super::tools::ToolCall;
use crate::invocation::Invocation;
use model::{Timestamp, phrase, text::harmless};

/// The maximum processor time of a command in seconds. It also ends a command whose server was killed.
const MAX_CPU_SECS: u64 = 60;
/// The maximum address space of a command.
const MAX_MEMORY_BYTES: u64 = 4 << 30;
/// The maximum size of the complete output of a command.
const MAX_STDOUT_BYTES: u64 = 32 << 20;
/// The maximum size of messages of a command.
const MAX_STDERR_BYTES: u64 = 1 << 20;
/// The maximum number of notes of a result, and of lines of an error.
const MAX_NOTES: usize = 40;
/// The maximum length of a note in bytes.
const MAX_NOTE_BYTES: usize = 500;

/// The program, and the arguments that all commands share.
pub(super) struct GlobalArguments {
    config: Option<PathBuf>,
    /// The time to assume. `None` for the current time.
    now: Option<Timestamp>,
}

/// The output of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    pub json: Value,
    /// The warnings and hints that the command printed.
    pub notes: Vec<String>,
}

impl GlobalArguments {
    pub fn of(invocation: &Invocation) -> Self {
        // With `--now`, the clock stands still.
        let now = (!invocation.is_real_time).then(|| invocation.clock.now());
        Self { config: invocation.config.clone(), now }
    }

    fn command(&self) -> Command {
        // The file that runs now, even after an upgrade has replaced it.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("cliffwatch").args(["--color", "never", "--format", "json"]);
        if let Some(config) = &self.config {
            command.arg("--config").arg(config);
        }
        if let Some(now) = self.now {
            command.args(["--now", &phrase::rfc3339(now)]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }
}

/// Runs a command. Dropping the future ends its process.
///
/// # Errors
///
/// Fails with a text for the client if the command fails without a result.
pub(super) async fn run_command(globals: &GlobalArguments, call: &ToolCall) -> Result<CommandOutput, String> {
    let problem = |error: std::io::Error| format!("cannot run the command: {error}");
    let mut child = globals.command().args(&call.arguments).spawn().map_err(problem)?;
    limit(&child).map_err(problem)?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (data, messages, ()) = tokio::try_join!(
        read(stdout, MAX_STDOUT_BYTES),
        read(stderr, MAX_STDERR_BYTES),
        write(stdin, call.input.as_deref().unwrap_or_default())
    )?;
    let status = child.wait().await.map_err(problem)?;
    if status.code().is_none() {
        let memory = MAX_MEMORY_BYTES >> 30;
        return Err(format!(
            "the command was stopped ({status}): it may use {MAX_CPU_SECS} s of processor time and {memory} GiB of memory; ask for less"
        ));
    }
    let notes = message_lines(&messages);
    match serde_json::from_str(&data) {
        // `check` reports problems with its exit code, too.
        Ok(json) => Ok(CommandOutput { json, notes }),
        Err(_) if notes.is_empty() => Err(format!("the command failed ({status}) without a message")),
        Err(_) => Err(notes.join("\n")),
    }
}

/// Limits the processor time and memory of a process.
fn limit(child: &Child) -> std::io::Result<()> {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    // Without an id, the process has already ended.
    let Some(pid) = pid else { return Ok(()) };
    for (resource, maximum) in [(Resource::Cpu, MAX_CPU_SECS), (Resource::As, MAX_MEMORY_BYTES)] {
        prlimit(Some(pid), resource, Rlimit { current: Some(maximum), maximum: Some(maximum) })?;
    }
    Ok(())
}

/// Reads an output to its end.
///
/// # Errors
///
/// Fails if the output is larger than `max_bytes`.
async fn read(output: Option<impl AsyncRead + Unpin>, max_bytes: u64) -> Result<String, String> {
    let Some(output) = output else { return Ok(String::new()) };
    let mut bytes = Vec::new();
    output.take(max_bytes + 1).read_to_end(&mut bytes).await.map_err(|error| format!("cannot read the result: {error}"))?;
    if bytes.len() as u64 > max_bytes {
        return Err(format!("the result is larger than {} MiB: ask for less", max_bytes >> 20));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

async fn write(input: Option<ChildStdin>, text: &str) -> Result<(), String> {
    if let Some(mut input) = input {
        // A command that fails early does not read its input. Its message is more useful than this error.
        let _ = input.write_all(text.as_bytes()).await;
    }
    Ok(())
}

/// Returns the lines of messages, without lines of files, which could show a part of the config, and without hints about the usage of
/// commands.
fn message_lines(messages: &str) -> Vec<String> {
    let is_source = |line: &str| line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with(['|', '…', '.']);
    let is_usage = |line: &str| line.starts_with("Usage:") || line.starts_with("For more information");
    let lines = messages.lines().filter(|line| !line.trim().is_empty() && !is_source(line) && !is_usage(line));
    lines.take(MAX_NOTES).map(|line| harmless(line.get(..line.floor_char_boundary(MAX_NOTE_BYTES)).unwrap_or(line))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_keep_reasons_and_omit_lines_of_files() {
        let messages = "error: unknown key `tokns` in [watch]\n --> cliffwatch.toml:2:1\n  |\n2 | tokns = [\"secret\"]\n  | ^^^^^ \n  |\n\
            \x20 = help: did you mean `tokens`?\n\nUsage: cliffwatch check\n\nFor more information, try '--help'.\n";
        assert_eq!(
            message_lines(messages),
            ["error: unknown key `tokns` in [watch]", " --> cliffwatch.toml:2:1", "  = help: did you mean `tokens`?"]
        );
    }

    #[tokio::test]
    async fn output_above_its_limit_is_an_error() {
        assert_eq!(read(Some(&b"12345"[..]), 5).await.as_deref(), Ok("12345"));
        assert!(read(Some(&b"123456"[..]), 5).await.is_err());
    }
}
