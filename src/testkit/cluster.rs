//! PostgreSQL servers for a single test, which can stop them, replicate them, and change their settings.

use std::{
    fs,
    io::{Read, Seek},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::free_port;

/// A server in a temporary folder. Stopped on drop.
pub struct Cluster {
    programs: PathBuf,
    folder: tempfile::TempDir,
    pub port: u16,
}

impl Cluster {
    /// Returns whether the environment provides the PostgreSQL programs.
    pub fn is_available() -> bool {
        programs().is_some()
    }

    /// Starts a server with these lines in `postgresql.conf`. Prints a message and returns `None` if the environment does not provide the
    /// PostgreSQL programs, as `tests/postgres/run` does.
    pub fn start(settings: &str) -> Option<Self> {
        let Some(cluster) = Self::empty() else {
            println!("SKIPPED: needs the PostgreSQL programs (see tests/postgres/run)");
            return None;
        };
        cluster.run("initdb", &["-D", &cluster.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "-N"]);
        let own = format!("listen_addresses = '127.0.0.1'\nport = {}\nmax_connections = 200\nfsync = off\n", cluster.port);
        let sockets = format!("unix_socket_directories = '{}'\n", cluster.folder.path().display());
        cluster.configure(&(own + &sockets + settings));
        cluster.resume();
        Some(cluster)
    }

    /// Starts a synchronous streaming replica.
    pub fn replica(&self) -> Self {
        let replica = Self::empty().expect("the programs");
        let port = self.port.to_string();
        let from =
            ["-D", &replica.data(), "-h", "127.0.0.1", "-p", &port, "-U", "postgres", "-R", "-X", "stream", "-c", "fast", "-N"];
        replica.run("pg_basebackup", &from);
        let sockets = format!("unix_socket_directories = '{}'\n", replica.folder.path().display());
        replica.configure(&format!("port = {}\nwal_retrieve_retry_interval = 200ms\n{sockets}", replica.port));
        replica.resume();
        self.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
        self.query("SELECT pg_reload_conf()");
        replica
    }

    /// Promotes a replica to primary, and waits for it.
    pub fn promote(&self) {
        self.control(&["promote", "-w", "-t", "120"]);
    }

    fn empty() -> Option<Self> {
        let programs = programs()?;
        let folder = tempfile::tempdir().expect("a folder");
        if is_root() {
            // PostgreSQL does not run as root.
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

    /// Runs a query through the socket, which needs no encryption.
    pub fn query(&self, sql: &str) -> String {
        let url = format!("postgres://postgres@%2F{}:{}/postgres", self.socket(), self.port);
        let response = Command::new("psql").args([&url, "-X", "-q", "-t", "-A", "-c", sql]).output().expect("psql runs");
        String::from_utf8_lossy(&response.stdout).trim().to_owned()
    }

    fn socket(&self) -> String {
        self.folder.path().display().to_string().trim_start_matches('/').replace('/', "%2F")
    }

    /// Adds settings, which apply from the next start or reload.
    pub fn configure(&self, settings: &str) {
        let path = Path::new(&self.data()).join("postgresql.conf");
        let text = fs::read_to_string(&path).expect("read");
        fs::write(path, format!("{text}\n{settings}")).expect("written");
    }

    /// Writes `pg_hba.conf`, which applies from the next reload.
    pub fn write_hba(&self, lines: &str) {
        fs::write(Path::new(&self.data()).join("pg_hba.conf"), lines).expect("written");
    }

    /// Copies a file to the server's folder, readable only by the server.
    pub fn install_file(&self, from: &Path, name: &str) {
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

    /// Stops the server: `fast` is a clean stop, `immediate` a crash.
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
        // Write to a file, because a started server would keep a pipe open.
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
        // The server may already be stopped, so ignore errors.
        self.try_run("pg_ctl", &["-D", &self.data(), "-m", "immediate", "stop"]);
    }
}

fn programs() -> Option<PathBuf> {
    std::env::var_os("CLIFFWATCH_TEST_POSTGRES_PROGRAMS").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
