//! PostgreSQL servers of a test's own, which it may restart, freeze, replace by a replica and lead astray.

use std::{
    fs,
    io::{Read, Seek},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::ports::free_port;

/// A server in a folder that vanishes with it.
pub struct Cluster {
    programs: PathBuf,
    folder: tempfile::TempDir,
    pub port: u16,
}

impl Cluster {
    /// Whether the environment names PostgreSQL's programs.
    pub fn is_to_be_had() -> bool {
        programs().is_some()
    }

    /// A server with these settings of `postgresql.conf`, one a line. None, which is said, where the environment names no folder of
    /// PostgreSQL's programs; `tests/postgres/run` does.
    pub fn start(settings: &str) -> Option<Self> {
        let Some(cluster) = Self::empty() else {
            println!("left out: a PostgreSQL server of its own (tests/postgres/run says where its programs are)");
            return None;
        };
        cluster.run("initdb", &["-D", &cluster.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]);
        let own = format!("listen_addresses = '127.0.0.1'\nport = {}\nmax_connections = 200\nfsync = off\n", cluster.port);
        let sockets = format!("unix_socket_directories = '{}'\n", cluster.folder.path().display());
        cluster.configure(&(own + &sockets + settings));
        cluster.resume();
        Some(cluster)
    }

    /// A streaming replica of this one, which has each commit before whoever made it hears so.
    pub fn replica(&self) -> Self {
        let replica = Self::empty().expect("the programs");
        let port = self.port.to_string();
        let from =
            ["-D", &replica.data(), "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "-N"];
        replica.run("pg_basebackup", &from);
        let sockets = format!("unix_socket_directories = '{}'\n", replica.folder.path().display());
        replica.configure(&format!("port = {}\nwal_retrieve_retry_interval = 200ms\n{sockets}", replica.port));
        replica.resume();
        self.ask("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.ask("SELECT pg_reload_conf()");
        replica
    }

    /// Makes a replica the primary, and answers when it is.
    pub fn promote(&self) {
        self.control(&["promote", "-w", "-t", "120"]);
    }

    fn empty() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            // A server refuses to run as root.
            let given = Command::new("chown").arg("postgres").arg(folder.path()).status();
            assert!(given.is_ok_and(|status| status.success()), "the user `postgres` of Debian's package");
        }
        Some(Self { programs, folder, port: free_port() })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    /// Asks it past the program, by its socket, which needs no encryption.
    pub fn ask(&self, sql: &str) -> String {
        let url = format!("postgres://postgres@%2F{}:{}/postgres", self.socket(), self.port);
        let answer = Command::new("psql").args([&url, "-X", "-q", "-t", "-A", "-c", sql]).output().expect("psql runs");
        String::from_utf8_lossy(&answer.stdout).trim().to_owned()
    }

    fn socket(&self) -> String {
        self.folder.path().display().to_string().trim_start_matches('/').replace('/', "%2F")
    }

    /// Adds settings, which count from the next start or reload.
    pub fn configure(&self, settings: &str) {
        let path = Path::new(&self.data()).join("postgresql.conf");
        let text = fs::read_to_string(&path).expect("read");
        fs::write(path, format!("{text}\n{settings}")).expect("written");
    }

    /// Says who may come in how, from the next reload.
    pub fn admit(&self, lines: &str) {
        fs::write(Path::new(&self.data()).join("pg_hba.conf"), lines).expect("written");
    }

    /// A file that the server may read, and others may not.
    pub fn give(&self, from: &Path, name: &str) {
        let to = self.folder.path().join(name);
        fs::copy(from, &to).expect("copied");
        let mut owned = Command::new("sh");
        owned.args(["-c", "chmod 600 \"$0\" && { [ \"$(id -u)\" != 0 ] || chown postgres \"$0\"; }"]).arg(&to);
        assert!(owned.status().is_ok_and(|status| status.success()), "{name}");
    }

    pub fn reload(&self) {
        self.control(&["reload"]);
    }

    pub fn resume(&self) {
        let log = self.folder.path().join("log");
        self.control(&["-w", "-t", "120", "-l", &log.display().to_string(), "start"]);
    }

    /// Stops it: `fast` in good order, `immediate` as a loss of power does.
    pub fn stop(&self, how: &str) {
        self.control(&["-w", "-t", "120", "-m", how, "stop"]);
    }

    pub fn restart(&self) {
        self.stop("fast");
        self.resume();
    }

    fn control(&self, arguments: &[&str]) {
        self.run("pg_ctl", &[&["-D", &self.data()], arguments].concat());
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let (ended_well, said) = self.try_run(program, arguments);
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        assert!(ended_well, "{program} {arguments:?}: {said}{log}");
    }

    fn try_run(&self, program: &str, arguments: &[&str]) -> (bool, String) {
        let program = self.programs.join(program);
        let mut command = Command::new(if is_root() { Path::new("runuser") } else { &program });
        if is_root() {
            command.args(["-u", "postgres", "--"]).arg(&program);
        }
        // To a file: a pipe would be open for as long as a server that was started has it.
        let mut said = tempfile::tempfile().expect("a file");
        let out = |said: &fs::File| said.try_clone().expect("a file");
        command.args(arguments).current_dir(self.folder.path()).stdin(Stdio::null()).stdout(out(&said)).stderr(out(&said));
        let status = command.status().expect("it runs");
        let mut text = String::new();
        said.rewind().and_then(|()| said.read_to_string(&mut text)).expect("read");
        (status.success(), text)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // It may have been stopped before, and must not be asked for long.
        self.try_run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}

fn programs() -> Option<PathBuf> {
    std::env::var_os("CLIFFWATCH_TEST_POSTGRES_PROGRAMS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
