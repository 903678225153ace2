//! Instances of the real binary, connected to the database servers through proxies that can simulate a network failure.

use std::{
    fs::OpenOptions,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// The name of the program file, in the parent of all instance folders.
pub const PROGRAM: &str = "cliffwatch";

/// A TCP proxy to a server. After a cut, it forwards nothing in a direction, or in both, but keeps connections open, like a broken network.
/// What was held back arrives after the repair.
#[derive(Clone, Debug, Default)]
pub struct Proxy {
    to_server: Arc<AtomicBool>,
    to_client: Arc<AtomicBool>,
}

impl Proxy {
    /// Starts a proxy to `server`, given as `host:port`. Returns it and its port.
    pub async fn to(server: &str) -> (Self, u16) {
        let proxy = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (accepting, server) = (proxy.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (proxy, server) = (accepting.clone(), server.clone());
                tokio::spawn(async move {
                    wait_until_connected(&proxy.to_server).await;
                    let Ok(far) = TcpStream::connect(&server).await else { return };
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::join!(forward(&proxy.to_server, near_in, far_out), forward(&proxy.to_client, far_in, near_out));
                });
            }
        });
        (proxy, port)
    }

    pub fn cut(&self) {
        self.cut_requests();
        self.cut_responses();
    }

    /// Cuts only the direction to the server.
    pub fn cut_requests(&self) {
        self.to_server.store(true, Ordering::SeqCst);
    }

    /// Cuts only the direction from the server.
    pub fn cut_responses(&self) {
        self.to_client.store(true, Ordering::SeqCst);
    }

    pub fn repair(&self) {
        self.to_server.store(false, Ordering::SeqCst);
        self.to_client.store(false, Ordering::SeqCst);
    }
}

async fn wait_until_connected(is_cut: &AtomicBool) {
    while is_cut.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn forward(is_cut: &AtomicBool, mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf) {
    let mut bytes = vec![0; 1 << 14];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        wait_until_connected(is_cut).await;
        if to.write_all(&bytes[..count]).await.is_err() {
            break;
        }
    }
}

pub struct Instance {
    folder: PathBuf,
    /// One proxy per server.
    pub proxies: Vec<Proxy>,
    pub child: Child,
    /// The port of the web pages.
    pub pages: u16,
}

impl Instance {
    /// Starts an instance with this config in `folder`.
    pub fn start(folder: PathBuf, proxies: Vec<Proxy>, config: &str, rules: &str, pages: u16) -> Self {
        std::fs::create_dir_all(folder.join("rules")).expect("a folder");
        std::fs::write(folder.join("cliffwatch.toml"), config).expect("written");
        std::fs::write(folder.join("rules/r.toml"), rules).expect("written");
        let child = spawn(&folder);
        Self { folder, proxies, child, pages }
    }

    /// Runs a command of the program with the config of the instance, on the same machine. Returns its exit code and its output.
    pub fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = Command::new(self.folder.with_file_name(PROGRAM));
        command.args(["--config", "cliffwatch.toml", "--color", "never"]).args(arguments).current_dir(&self.folder);
        let output = command.stdin(Stdio::null()).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    }

    /// Changes a file of the instance.
    pub fn edit(&self, name: &str, change: impl FnOnce(String) -> String) {
        let path = self.folder.join(name);
        let text = std::fs::read_to_string(&path).expect("read");
        std::fs::write(path, change(text)).expect("written");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill runs");
    }

    /// Disconnects the instance from all servers.
    pub fn cut_off(&self) {
        self.proxies.iter().for_each(Proxy::cut);
    }

    pub fn reconnect(&self) {
        self.proxies.iter().for_each(Proxy::repair);
    }

    /// Waits for the exit and starts the instance again.
    pub async fn restart(&mut self) {
        loop {
            if self.child.try_wait().expect("waits").is_some() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        self.child = spawn(&self.folder);
    }

    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("waits").is_some()
    }

    /// The number of times that it logged becoming a standby.
    pub fn times_as_standby(&self) -> usize {
        self.log().matches("standby: ").count()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Starts the program through a temporary hard link and removes the link, like an upgrade. An instance must restart itself without it.
fn spawn(folder: &Path) -> Child {
    let log = OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("a log");
    let program = folder.join("cliffwatch");
    std::fs::hard_link(folder.with_file_name(PROGRAM), &program).expect("linked");
    let mut command = Command::new(&program);
    command.args(["--config", "cliffwatch.toml", "--color", "never", "run"]).current_dir(folder);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("starts");
    std::fs::remove_file(program).expect("removed");
    child
}
