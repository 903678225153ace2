//! The limits of `cliffwatch mcp`. The client here writes the protocol itself, because a library would not do what these tests do: flood
//! the server, leave responses unread, or send what is not valid.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout};
use std::sync::mpsc::{Receiver, channel};

use super::*;

struct Client {
    server: Child,
    /// `None` after the client closed it.
    input: Option<ChildStdin>,
    /// `None` while the client reads nothing.
    messages: Option<Receiver<Value>>,
    /// Responses that no test waited for yet, by id.
    responses: BTreeMap<u64, Value>,
    last_id: u64,
}

impl Client {
    /// Starts the server with these arguments, and begins a session.
    fn start(workdir: &Workdir, line: &str) -> Self {
        let mut client = Self::start_without_reading(workdir, line);
        client.read();
        client.initialize();
        client
    }

    fn start_without_reading(workdir: &Workdir, line: &str) -> Self {
        let (mut command, _) = workdir.command(&line.split_whitespace().collect::<Vec<_>>());
        let mut server = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let input = server.stdin.take();
        Self { server, input, messages: None, responses: BTreeMap::new(), last_id: 0 }
    }

    /// Begins to read messages of the server, in a thread.
    fn read(&mut self) {
        let output: ChildStdout = self.server.stdout.take().expect("not read yet");
        let (sender, receiver) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                let message = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        self.messages = Some(receiver);
    }

    fn initialize(&mut self) {
        let client = json!({"name": "a test", "version": "1"});
        let id = self.request("initialize", &json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
        assert_eq!(self.response(id)["result"]["serverInfo"]["name"], "cliffwatch");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    }

    fn send(&mut self, line: &str) {
        let input = self.input.as_mut().expect("open");
        input.write_all(format!("{line}\n").as_bytes()).expect("written");
    }

    fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
        id
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    fn cancel(&mut self, id: u64) {
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}).to_string());
    }

    #[track_caller]
    fn response(&mut self, id: u64) -> Value {
        while !self.responses.contains_key(&id) {
            let message = self.messages.as_ref().expect("read").recv_timeout(WAIT_TIMEOUT).expect("a response");
            self.responses.insert(message["id"].as_u64().unwrap_or(0), message);
        }
        self.responses.remove(&id).expect("there")
    }

    /// Returns the text of a failed call.
    #[track_caller]
    fn failure(&mut self, id: u64) -> String {
        let response = self.response(id);
        assert_eq!(response["result"]["isError"], true, "{response:#}");
        response["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Checks that the session continues.
    #[track_caller]
    fn ping(&mut self) {
        let id = self.request("ping", &json!({}));
        assert_eq!(self.response(id)["result"], json!({}));
    }

    /// Returns the processes of running commands.
    fn commands(&self) -> Vec<u32> {
        children(self.server.id())
    }

    #[track_caller]
    fn until_commands(&self, count: usize) -> Vec<u32> {
        until("running commands", || self.commands().len() == count, || format!("{:?}", self.commands()));
        self.commands()
    }

    /// Returns the memory that the server occupies, in MiB.
    fn memory_mib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
    }

    /// Closes the input, and waits for the end of the server.
    fn close(&mut self) -> ExitStatus {
        self.input = None;
        wait(&mut self.server)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.server.kill().ok();
        self.server.wait().ok();
    }
}

/// Returns the child processes that have not ended.
fn children(parent: u32) -> Vec<u32> {
    let stats = fs::read_dir("/proc").expect("read").filter_map(|entry| {
        let pid: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let (state, of) = (fields.next()?.to_owned(), fields.next()?.parse::<u32>().ok()?);
        (of == parent && state != "Z").then_some(pid)
    });
    stats.collect()
}

/// Returns a folder in which each command hangs: it waits for a writer of its config.
pub(super) fn hanging() -> Workdir {
    let workdir = Workdir::new();
    let made = Command::new("mkfifo").arg(workdir.path("hanging.toml")).status().expect("mkfifo runs");
    assert!(made.success());
    workdir
}

#[test]
fn call_that_hangs_is_stopped_at_the_time_limit() {
    let workdir = hanging();
    let mut client = Client::start(&workdir, "--config hanging.toml mcp --timeout 1");
    let calls = [client.call("plan", &json!({})), client.call("plan", &json!({})), client.call("plan", &json!({}))];
    // The third one waits for the others, within the same limit.
    for call in calls {
        assert_eq!(client.failure(call), "stopped after 1 s: ask for less, such as fewer tokens or days");
    }
    client.until_commands(0);
    client.ping();
}

#[test]
fn command_has_limits_of_processor_time_and_memory() {
    let workdir = hanging();
    let mut client = Client::start(&workdir, "--config hanging.toml mcp");
    let call = client.call("plan", &json!({}));
    let command = client.until_commands(1)[0];
    let limit = |name: &str| {
        let limits = fs::read_to_string(format!("/proc/{command}/limits")).expect("it runs");
        let line = limits.lines().find_map(|line| line.strip_prefix(name)).expect("listed");
        line.split_whitespace().take(2).map(str::to_owned).collect::<Vec<_>>()
    };
    // Set right after the start of the process.
    until("limits", || limit("Max cpu time") == ["60", "60"], || format!("{:?}", limit("Max cpu time")));
    until(
        "limits",
        || limit("Max address space") == ["4294967296", "4294967296"],
        || format!("{:?}", limit("Max address space")),
    );
    Command::new("kill").args(["-KILL", &command.to_string()]).status().expect("kill runs");
    let failure = client.failure(call);
    assert!(failure.contains("60 s of processor time and 4 GiB of memory; ask for less"), "{failure}");
}

#[test]
fn canceled_call_ends_its_command() {
    let workdir = hanging();
    let mut client = Client::start(&workdir, "--config hanging.toml mcp");
    let calls = [client.call("plan", &json!({})), client.call("plan", &json!({})), client.call("plan", &json!({}))];
    let running = client.until_commands(2);
    // One that waits, one that runs.
    client.cancel(calls[2]);
    client.cancel(calls[0]);
    until("the end of one command", || client.commands().len() == 1, || format!("{:?}", client.commands()));
    assert!(running.contains(&client.commands()[0]), "no canceled call starts later");
    client.cancel(calls[1]);
    client.until_commands(0);
    client.cancel(4711);
    client.ping();
    assert!(client.responses.is_empty(), "a canceled call has no response: {:?}", client.responses);
}

#[test]
fn end_of_input_ends_server_and_commands() {
    let workdir = hanging();
    let mut client = Client::start(&workdir, "--config hanging.toml mcp");
    client.call("plan", &json!({}));
    let command = client.until_commands(1)[0];
    let begun = Instant::now();
    assert_eq!(client.close().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    until("the end of the command", || !Path::new(&format!("/proc/{command}")).exists(), || command.to_string());

    // A client that also closes its output, as one that is killed does.
    let mut client = Client::start(&workdir, "--config hanging.toml mcp");
    client.messages = None;
    assert_eq!(client.close().code(), Some(0));
}

#[test]
fn flood_of_calls_runs_two_commands_and_rejects_what_exceeds_the_limit() {
    let workdir = hanging();
    let mut client = Client::start(&workdir, "--config hanging.toml mcp --timeout 3");
    let calls: Vec<u64> = (0..200).map(|_| client.call("plan", &json!({}))).collect();
    client.ping();
    assert!(client.commands().len() <= 2, "{:?}", client.commands());
    let failures: Vec<String> = calls.iter().map(|call| client.failure(*call)).collect();
    let count = |text: &str| failures.iter().filter(|failure| failure.contains(text)).count();
    assert_eq!((count("stopped after 3 s"), count("32 calls already run or wait: wait for their results")), (32, 168));
    // Later calls are accepted again.
    let call = client.call("plan", &json!({}));
    assert!(client.failure(call).contains("stopped after 3 s"));
}

/// The responses are far larger than the pipe, and than the memory that the server may use for them.
#[test]
fn client_that_reads_nothing_does_not_fill_the_memory() {
    const REQUESTS: u64 = 12_000;
    let workdir = Workdir::new();
    let mut client = Client::start(&workdir, "mcp");
    let id = client.request("tools/list", &json!({}));
    let bytes = client.response(id).to_string().len() as u64;
    let idle = client.memory_mib();
    drop(client);
    assert!(bytes * REQUESTS > 64 << 20, "{bytes} bytes of each response");

    let mut client = Client::start_without_reading(&workdir, "mcp");
    client.send(
        &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}})
        .to_string(),
    );
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
    let mut input = client.input.take().expect("open");
    let writing = std::thread::spawn(move || {
        for id in 1..=REQUESTS {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            input.write_all(format!("{request}\n").as_bytes()).expect("written");
        }
        input
    });
    // The server has read what it accepts as soon as it uses no more processor time.
    let used = || {
        let stat = fs::read_to_string(format!("/proc/{}/stat", client.server.id())).expect("it runs");
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().skip(11).take(2).collect::<Vec<_>>().join(" "))
    };
    let (mut before, mut highest, mut quiet) = (None, 0, 0);
    until(
        "a server that waits",
        || {
            highest = highest.max(client.memory_mib());
            let now = used();
            quiet = if now.is_some() && now == before { quiet + 1 } else { 0 };
            before = now;
            quiet > 25
        },
        || "it still reads".to_owned(),
    );
    assert!(!writing.is_finished(), "the server read {REQUESTS} requests without sending a response");
    assert!(highest < idle + 32, "{idle} MiB, then {highest} MiB");
    client.read();
    for id in 0..=REQUESTS {
        assert!(client.response(id)["error"].is_null());
    }
    client.input = Some(writing.join().expect("written"));
    assert_eq!(client.close().code(), Some(0));
}

/// Without a config, a backtest plays the bundled data.
#[test]
fn result_has_a_maximum_size() {
    let workdir = Workdir::new();
    let mut client = Client::start(&workdir, "--now 2026-03-01 mcp --timeout 600");
    let rule = "[[rule]]\nalert = \"All\"\non = \"unlock\"\nwithin = [\"60d\", \"30d\"]\nwhen = \"cliffValue > 1\"\n";
    let call = client.call("backtest", &json!({"rule": rule, "messages": 50, "from": "2026-01-01"}));
    let response = client.response(call);
    let text = |at: usize| response["result"]["content"][at]["text"].as_str().unwrap_or_else(|| panic!("{response:#}"));
    assert!(text(0).len() > 24 * 1024 && text(0).len() <= 48 * 1024, "{} bytes", text(0).len());
    assert!(text(1).contains("only the first") && text(1).contains("of `messages` are shown: use a filter"), "{}", text(1));
}

#[test]
fn rule_text_that_takes_long_is_stopped() {
    let workdir = Workdir::new();
    let mut client = Client::start(&workdir, "--now 2026-03-01 mcp --timeout 2");
    let rule = |number: usize| {
        format!("[[rule]]\nalert = \"A{number}\"\non = \"unlock\"\nwithin = \"900d\"\nwhen = \"cliffValue >= 0\"\n")
    };
    let mut rules = String::new();
    while rules.len() + 100 < 32 * 1024 {
        rules.push_str(&rule(rules.len()));
    }
    for tool in ["backtest", "check"] {
        let begun = Instant::now();
        let arguments = if tool == "backtest" { json!({"rule": rules, "from": "2023-01-01"}) } else { json!({"rule": rules}) };
        let call = client.call(tool, &arguments);
        let response = client.response(call);
        assert!(begun.elapsed() < Duration::from_secs(30), "{tool}: {:?}", begun.elapsed());
        let text = response["result"]["content"][0]["text"].as_str().unwrap_or_default();
        assert!(tool == "check" || text.contains("stopped after 2 s"), "{tool}: {text}");
    }
    client.until_commands(0);
    // Text that is deep instead of long, in a condition, in TOML, and in a template.
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(5_000), close.repeat(5_000));
    let rule = "[[rule]]\nalert = \"Deep\"\non = \"unlock\"\n";
    for text in [
        format!("{rule}when = \"{} > 1\"\n", deep("(", ")")),
        format!("{rule}when = \"{}\"\n", "not ".repeat(7_000)),
        format!("{rule}x = {}\n", deep("[", "]")),
        format!("{rule}annotations = {{ summary = \"{{{{ {} }}}}\" }}\n", deep("(", ")")),
        format!("{rule}annotations = {{ summary = \"{}\" }}\n", "{% for a in range(9999) %}".repeat(900)),
    ] {
        let call = client.call("check", &json!({"rule": text}));
        let response = client.response(call);
        let problems = response["result"]["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        assert_eq!(response["result"]["isError"], false, "{response:#}");
        assert!(problems.contains("\"severity\":\"error\""), "{problems}");
    }
    client.ping();
}

#[test]
fn message_of_any_size_does_not_fill_the_memory() {
    let workdir = Workdir::new();
    let mut client = Client::start(&workdir, "mcp");
    let before = client.memory_mib();
    let part = "x".repeat(1 << 20);
    for _ in 0..100 {
        client.input.as_mut().expect("open").write_all(part.as_bytes()).expect("written");
    }
    client.send("");
    client.ping();
    assert!(client.memory_mib() < before + 32, "{before} MiB, then {} MiB", client.memory_mib());
}

#[test]
fn request_that_is_not_valid_is_a_clean_error() {
    let workdir = Workdir::new();
    let mut client = Client::start(&workdir, "mcp");
    for (method, params, code, text) in [
        ("tools/rename", json!({}), -32601, "tools/rename"),
        ("tools/call", json!({"name": "plann"}), -32602, "did you mean `plan`?"),
        ("tools/call", json!({"name": ""}), -32602, "expected one of upcoming, token"),
        ("resources/list", json!({}), 0, ""),
    ] {
        let id = client.request(method, &params);
        let response = client.response(id);
        if code == 0 {
            // What is not offered is an error or empty, depending on the version of the protocol.
            assert!(response["error"].is_object() || response["result"]["resources"] == json!([]), "{response:#}");
            continue;
        }
        assert_eq!(response["error"]["code"], code, "{method} {params}: {response:#}");
        assert!(response["error"]["message"].as_str().is_some_and(|message| message.contains(text)), "{response:#}");
    }
    for (arguments, text) in [
        (json!({"unknown": 1}), "the tool `token` has no parameter \"unknown\""),
        (json!({}), "the parameter `token` is missing"),
        (json!({"token": {"a": 1}}), "expected a text of 1 to 200 bytes"),
        // Not read as an option.
        (json!({"token": "--config=/etc/shadow"}), "there is no database"),
    ] {
        let id = client.call("token", &arguments);
        let failure = client.failure(id);
        assert!(failure.contains(text), "{arguments}: {failure}");
    }
    // A line that is not a request is ignored, or gets an error without an id.
    for line in ["", "{", "[]", "null", "{\"jsonrpc\":\"2.0\",\"id\":1}", "\u{0}", &"[".repeat(100_000)] {
        client.send(line);
        client.ping();
    }
    let wrong = json!({"jsonrpc": "2.0", "id": 900, "method": "tools/call", "params": {"name": "plan", "arguments": [1]}});
    client.send(&wrong.to_string());
    client.ping();
    assert_eq!(client.close().code(), Some(0));
}
