//! A machine on which a page is played: folders in place of the package's paths, and scripts in place of system commands.

use std::sync::LazyLock;

use regex::Regex;

use super::*;

/// The `[store]` of a machine.
pub(super) const DATABASE: &str = "path = \"/var/lib/cliffwatch/cliffwatch.db\"";

/// The paths and addresses on the pages, and the names of their replacements on the machine.
const PATHS: [&str; 4] = ["/etc/cliffwatch", "/var/lib/cliffwatch", "/var/backups", "/run/credentials"];

/// The address of the web pages on the pages, also as the load balancer sees it, and the address of the second machine.
const PAGES: &str = "127.0.0.1:9797";
const FIRST_MACHINE: &str = "192.0.2.1:9797";
const SECOND_MACHINE: &str = "192.0.2.2:9797";

/// The time within which the output of a command must match the page.
const MATCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Commands that only read, which are run again until the output matches.
const READING: [&str; 14] = [
    "cliffwatch status",
    "cliffwatch alerts",
    "cliffwatch outbox list",
    "cliffwatch outbox show",
    "cliffwatch outbox why",
    "cliffwatch explain",
    "cliffwatch silence list",
    "cliffwatch healthcheck",
    "cliffwatch upcoming",
    "cliffwatch changes",
    "curl",
    "journalctl",
    "df",
    "ls",
];

/// Stands in for systemd: starts and stops the daemon in the background, and writes its log to the file `journal`.
const SYSTEMCTL: &str = r#"
now_alive() { [ -s "$W/pid" ] && kill -0 "$(cat "$W/pid")" 2>/dev/null; }
lines() { wc -l <"$W/journal"; }
wait_for() { # pattern, first line
    for _ in $(seq 600); do tail -n "+$2" "$W/journal" | grep -q "$1" && return 0; now_alive || return 1; sleep 0.05; done; return 1
}
case "$1" in
start)
    now_alive && exit 0
    first=$(($(lines) + 1))
    setsid $LAUNCH "$BINARY" run >>"$W/journal" 2>&1 </dev/null &
    echo $! >"$W/pid"
    wait_for "cliffwatch .* started\|waiting for the database" "$first" || { echo "Job for cliffwatch.service failed."; exit 1; } ;;
stop)
    now_alive || exit 0
    kill -TERM "$(cat "$W/pid")"
    for _ in $(seq 1200); do now_alive || exit 0; sleep 0.05; done; exit 1 ;;
restart) "$0" stop && "$0" start ;;
reload) kill -HUP "$(cat "$W/pid")" && cliffwatch check >/dev/null 2>&1 ;;
*) echo "systemctl $1 is not supported"; exit 1 ;;
esac
"#;

/// Stands in for `journalctl -u cliffwatch -o cat -n LINES --grep PATTERN`.
const JOURNALCTL: &str = r#"
while [ $# -gt 0 ]; do
    case "$1" in -n) count=$2; shift ;; --grep) pattern=$2; shift ;; esac
    shift
done
grep -E -- "${pattern:-.}" "$W/journal" | tail -n "${count:-10}"
"#;

/// Stands in for apt: installs a binary, and restarts the service as the package does.
const APT_GET: &str = r#"
systemctl restart cliffwatch
"#;

pub(super) struct Machine {
    pub(super) fixture: Fixture,
    pub(super) desk: Hook,
    /// Messages of another run that the page also shows.
    pub(super) extra_messages: Vec<Value>,
    desk_address: std::net::SocketAddr,
    pages: u16,
    second_pages: u16,
    name: String,
    /// The sections of the page: heading and lines.
    sections: Vec<(String, Vec<String>)>,
    played: usize,
    _ending: tokio_util::sync::DropGuard,
}

impl Machine {
    /// Prepares the machine for a page. The source has the token `arbitrum`, and requires no key.
    pub(super) async fn new(name: &str) -> Self {
        Self::with(name, AccessPolicy::Open).await
    }

    /// Like [`Self::new`], for a source with keys. The key `desk` is in use.
    pub(super) async fn with_keys(name: &str) -> Self {
        Self::with(name, AccessPolicy::Keys).await
    }

    async fn with(name: &str, access: AccessPolicy) -> Self {
        let fixture = Fixture::new(Time::System, access).await;
        let put = |edit: &mut service::Edit<'_>| {
            edit.put_token(&item("arbitrum", "ARB"))?;
            let at = [20, 80, 110, 140, 170].map(from_now);
            edit.put_events("arbitrum", at.map(|at| cliff(&wire(at), "Team", 2_000_000.0, "second")).to_vec())
        };
        fixture.service.edit(put).expect("filled");
        let ending = CancellationToken::new();
        let (desk, desk_address) = Hook::start(ending.clone()).await;
        let page = fs::read_to_string(folder().join(format!("{name}.md"))).expect("a page");
        let mut sections = vec![(String::new(), Vec::new())];
        for line in page.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                sections.push((heading.to_owned(), Vec::new()));
            }
            sections.last_mut().expect("a section").1.push(line.to_owned());
        }
        let machine = Self {
            fixture,
            desk,
            extra_messages: Vec::new(),
            desk_address,
            pages: testkit::free_port(),
            second_pages: testkit::free_port(),
            name: name.to_owned(),
            sections,
            played: 0,
            _ending: ending.drop_guard(),
        };
        machine.install();
        machine
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.fixture.workdir.path(path.trim_start_matches('/'))
    }

    fn install(&self) {
        for path in PATHS.iter().chain(&["/etc/cliffwatch/rules", "/bin"]) {
            fs::create_dir_all(self.path(path)).expect("a folder");
        }
        fs::set_permissions(self.path("/var/lib/cliffwatch"), PermissionsExt::from_mode(0o700)).expect("private");
        let scripts = [
            ("systemctl", SYSTEMCTL),
            ("journalctl", JOURNALCTL),
            ("apt-get", APT_GET),
            ("sudo", "exec \"$@\""),
            ("cliffwatch", "exec $LAUNCH \"$BINARY\" \"$@\""),
        ];
        for (name, text) in scripts {
            testkit::install_script(&format!("#!/bin/sh\n{}\n", text.trim()), &self.path(&format!("/bin/{name}")));
        }
        fs::write(self.path("/journal"), "").expect("written");
        self.write("/etc/cliffwatch/api-key", &format!("{}\n", self.fixture.key));
        self.write("/etc/cliffwatch/rules/unlocks.toml", RULES);
        self.configure("", DATABASE);
    }

    /// Writes a file, with the machine's paths in place of the page's.
    pub(super) fn write(&self, path: &str, text: &str) {
        fs::write(self.path(path), self.local(text)).expect("written");
        fs::set_permissions(self.path(path), PermissionsExt::from_mode(0o600)).expect("private");
    }

    /// Writes the config, followed by `more`. Every feed is polled each second.
    pub(super) fn configure(&self, more: &str, store: &str) {
        let (source, hook, desk) = (self.fixture.source, self.fixture.hook_address, self.desk_address);
        let schedule: String = ["token_list", "upcoming", "unlock_events", "burn", "buyback", "evaluate"]
            .map(|job| format!("{job} = \"* * * * * *\"\n"))
            .concat();
        let config = format!(
            "[source]\nbase_url = \"http://{source}\"\nlegacy_base_url = \"http://{source}\"\nrequests_per_minute = 60000\n\
             timeout = \"5s\"\napi_key_file = \"api-key\"\n[watch]\ntokens = [\"arbitrum\"]\n[schedule]\n{schedule}allocations = \"off\"\n\
             [store]\n{store}\n[http]\nlisten = \"{PAGES}\"\n[log]\nformat = \"human\"\n\
             [[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://{hook}/hook\"\n\
             [[receiver]]\nname = \"desk\"\ntype = \"webhook\"\nurl = \"http://{desk}/hook\"\n\
             [route]\nreceivers = [\"ops\"]\nfallback = [\"desk\"]\ngroup_wait = \"0s\"\n{more}\n"
        );
        self.write("/etc/cliffwatch/cliffwatch.toml", &config);
    }

    /// Replaces the paths and addresses of the page with the ones of the machine.
    fn local(&self, text: &str) -> String {
        let text = text
            .replace(PAGES, &format!("127.0.0.1:{}", self.pages))
            .replace(FIRST_MACHINE, &format!("127.0.0.1:{}", self.pages));
        let text = text.replace(SECOND_MACHINE, &format!("127.0.0.1:{}", self.second_pages));
        PATHS.iter().fold(text, |text, path| text.replace(path, &self.path(path).display().to_string()))
    }

    /// The reverse of [`Self::local`].
    fn as_on_page(&self, text: &str) -> String {
        let text = text.replace(&format!("127.0.0.1:{}", self.pages), PAGES);
        let text = PATHS.iter().fold(text, |text, path| text.replace(&self.path(path).display().to_string(), path));
        let text = text.replace(&self.fixture.hook_address.to_string(), "hooks.example.com");
        let text = text.replace(&self.desk_address.to_string(), "desk.example.com");
        text.replace(&self.fixture.source.to_string(), "api.example.com")
    }

    /// Runs a shell command as on the page. Returns standard output and errors together, as a terminal shows them.
    pub(super) fn shell(&self, command: &str) -> String {
        let path = std::env::var("PATH").unwrap_or_default();
        let ran = Command::new("sh")
            .args(["-c", &format!("exec 2>&1; {}", self.local(command))])
            .current_dir(self.path(""))
            .env_clear()
            .env("PATH", format!("{}:{path}", self.path("/bin").display()))
            .env("W", self.path(""))
            .env("BINARY", env!("CARGO_BIN_EXE_cliffwatch"))
            .env("LAUNCH", fs::read_to_string(self.path("/launch")).unwrap_or_default())
            .env("CLIFFWATCH_CONFIG", self.path("/etc/cliffwatch/cliffwatch.toml"))
            .stdin(Stdio::null())
            .output()
            .expect("sh runs");
        let text = self.as_on_page(&String::from_utf8_lossy(&ran.stdout));
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// Starts the service, and waits for its first message and for the end of the first polls, so that later data is a change.
    #[track_caller]
    pub(super) fn start(&self) {
        let said = self.shell("systemctl start cliffwatch");
        assert_eq!(said, "", "{}", self.journal());
        let last_polls = ["burn: 1 polled", "buyback: 1 polled", "unlock_events: 1 polled"];
        until("the first polls", || last_polls.iter().all(|text| self.journal().contains(text)), || self.journal());
        until("the first message", || !self.fixture.hook.accepted().is_empty(), || self.journal());
    }

    /// Starts a second instance with the same files. Killed on drop.
    pub(super) fn start_second(&self) -> Daemon {
        let config = self.path("/etc/cliffwatch/cliffwatch.toml");
        let listen = format!("127.0.0.1:{}", self.second_pages);
        let environment = [("CLIFFWATCH_CONFIG", config.to_str().expect("UTF-8")), ("CLIFFWATCH_HTTP__LISTEN", &listen)];
        self.fixture.workdir.start("run", &environment)
    }

    /// Uses up the credits of a key, as another program does.
    pub(super) async fn use_up(&self, key: &str) {
        cliffwatch::source::install_crypto_provider();
        let (client, source) = (reqwest::Client::new(), self.fixture.source);
        for _ in 0..1_000 {
            let request = client.get(format!("http://{source}/v4/token/list")).header("x-api-key", key);
            if request.send().await.expect("a response").status() == 429 {
                return;
            }
        }
        panic!("the credits do not end");
    }

    /// Moves the content of the database's WAL into its file, so that the disk has no room of the database left.
    pub(super) fn stop_growth(&self) {
        let database = rusqlite::Connection::open(self.path("/var/lib/cliffwatch/cliffwatch.db")).expect("opens");
        database.busy_timeout(WAIT_TIMEOUT).expect("set");
        database.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get::<_, bool>(0)).expect("the WAL is truncated");
    }

    pub(super) fn journal(&self) -> String {
        fs::read_to_string(self.path("/journal")).unwrap_or_default()
    }

    /// Waits until the output of a command contains `text`.
    #[track_caller]
    pub(super) fn until(&self, command: &str, text: &str) {
        until(text, || self.shell(command).contains(text), || format!("{}\n{}", self.shell(command), self.journal()));
    }

    /// Waits until a receiver accepted a message with `text`.
    #[track_caller]
    pub(super) fn until_accepted(&self, hook: &Hook, text: &str) {
        let bodies = || hook.accepted().iter().map(|(_, body)| format!("{body:#}\n")).collect::<String>();
        until(text, || bodies().contains(text), || format!("{}\n{}", bodies(), self.journal()));
    }

    /// Plays the next section. The output of its commands and the messages on the page must match.
    #[track_caller]
    pub(super) fn play(&mut self, heading: &str) {
        self.played += 1;
        let (found, lines) = self.sections.get(self.played).cloned().expect("a section");
        assert_eq!(found, heading, "{}", self.name);
        let mut played = Vec::new();
        let mut lines = lines.into_iter();
        while let Some(line) = lines.next() {
            played.push(line.clone());
            let Some(language) = line.strip_prefix("```") else { continue };
            let block: Vec<String> = lines.by_ref().take_while(|line| line != "```").collect();
            match language {
                "console" => self.play_block(&block, &mut played),
                "text" => self.check_message(&block, &mut played),
                _ => played.extend(block),
            }
            played.push("```".to_owned());
        }
        self.sections[self.played].1 = played;
    }

    fn play_block(&self, block: &[String], played: &mut Vec<String>) {
        let mut lines = block.iter().peekable();
        while let Some(line) = lines.next() {
            let command = line.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: no command: {line}", self.name));
            let mut written = String::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with("$ ")) {
                written.push_str(&format!("{line}\n"));
            }
            let said = self.run(command, &written);
            played.push(line.clone());
            if is_update() && comparable(&said) != comparable(&written) {
                played.extend(said.lines().map(str::to_owned));
            } else {
                let (said_, written_) = (comparable(&said), comparable(&written));
                assert_eq!(
                    written_,
                    said_,
                    "{}: {command}\nleft: the page, right: the program\n{said}\n{}\n`INSTA_UPDATE=always` updates the page",
                    self.name,
                    self.journal()
                );
                played.extend(written.lines().map(str::to_owned));
            }
        }
    }

    /// Runs a command. If it only reads, runs it again until its output is `written`.
    fn run(&self, command: &str, written: &str) -> String {
        let name = command.trim_start_matches("sudo ");
        let deadline = Instant::now() + if is_update() { Duration::from_secs(20) } else { MATCH_TIMEOUT };
        loop {
            let said = self.shell(command);
            let is_reading = READING.iter().any(|reading| name.starts_with(reading));
            if !is_reading || comparable(&said) == comparable(written) || Instant::now() > deadline {
                return said;
            }
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Checks that each line of a block is in one message that a receiver accepted.
    fn check_message(&self, block: &[String], played: &mut Vec<String>) {
        let text = |body: &Value| -> Vec<String> {
            let alerts = body["data"]["alerts"].as_array().cloned().unwrap_or_default();
            let texts = alerts.iter().flat_map(|alert| ["summary", "description"].map(|key| alert["annotations"][key].clone()));
            texts.filter_map(|text| text.as_str().map(|text| comparable(&self.as_on_page(text)))).collect()
        };
        let expected: Vec<String> = block.iter().map(|line| comparable(line)).collect();
        let accepted = || -> Vec<Vec<String>> {
            let hooks = [&self.fixture.hook, &self.desk];
            let bodies = hooks.iter().flat_map(|hook| hook.accepted()).map(|(_, body)| body);
            bodies.chain(self.extra_messages.clone()).map(|body| text(&body)).collect()
        };
        let is_sent = || accepted().iter().any(|texts| expected.iter().all(|line| texts.iter().any(|text| text.contains(line))));
        until(&format!("{}: {block:#?}", self.name), is_sent, || format!("{:#?}", accepted()));
        played.extend(block.iter().cloned());
    }

    /// Checks that all sections were played, and updates the page if requested.
    #[track_caller]
    pub(super) fn finish(self) {
        assert_eq!(self.played + 1, self.sections.len(), "{}: not all sections were played", self.name);
        if is_update() {
            let page: String = self.sections.iter().flat_map(|(_, lines)| lines).map(|line| format!("{line}\n")).collect();
            fs::write(folder().join(format!("{}.md", self.name)), page).expect("written");
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.path("/pid")).unwrap_or_default();
        if !pid.trim().is_empty() {
            Command::new("kill").args(["-KILL", pid.trim()]).stderr(Stdio::null()).status().ok();
        }
    }
}

fn is_update() -> bool {
    std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always")
}

/// The patterns of values that differ from run to run, with their placeholders.
static VARIABLE_PARTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let parts = [
        (r"\d{4}-\d{2}-\d{2}[T ]\d{2}[:-]\d{2}([:-]\d{2}(\.\d+)?)?(Z| UTC)?", "TIME"),
        (r"\d{4}-\d{2}-\d{2}", "DATE"),
        (r"\d{1,2} [A-Z][a-z]{2}( \d{4})?(, \d{2}:\d{2})?", "DAY"),
        (r"\b(al|no|si|gr|msg)_[0-9a-z_]+", "ID"),
        (r"\(pid \d+\)|\bpid \d+", "PID"),
        (r"\d+(\.\d+)? ?(ms|s|min|h|days?|hours?|minutes?|seconds?|KiB|MiB|KB|MB|bytes)\b", "AMOUNT"),
        (r"1?\d(\.\d)?[KM]\b|\d+%", "SIZE"),
        (r"\b\d+\.\d+\.\d+\b", "VERSION"),
        (r"\b\d+\.\d\b", "NUMBER"),
        (r"[-─]{3,}", "RULE"),
        (r" +", " "),
    ];
    parts.map(|(pattern, name)| (Regex::new(pattern).expect("a pattern"), name)).into()
});

/// Returns the text with placeholders for values that differ from run to run.
fn comparable(text: &str) -> String {
    VARIABLE_PARTS.iter().fold(text.trim_end().to_owned(), |text, (pattern, name)| pattern.replace_all(&text, *name).into_owned())
}
