//! Two instances of the real binary on one database, each behind wires of its own, one to each server, that can be cut.

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

/// The program, in the folder that those of all instances are in.
pub const PROGRAM: &str = "cliffwatch";

/// A wire to the server. Cut, it carries nothing and says nothing, as a network does that is cut.
#[derive(Clone, Debug, Default)]
pub struct Wire(Arc<AtomicBool>);

impl Wire {
    /// Listens here and carries what comes to `server`, `host:port`.
    pub async fn to(server: &str) -> (Self, u16) {
        let wire = Self::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (carrying, server) = (wire.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (wire, server) = (carrying.clone(), server.clone());
                tokio::spawn(async move {
                    wire.whole().await;
                    let Ok(far) = TcpStream::connect(&server).await else { return };
                    let (near_in, near_out) = near.into_split();
                    let (far_in, far_out) = far.into_split();
                    tokio::join!(wire.clone().carry(near_in, far_out), wire.carry(far_in, near_out));
                });
            }
        });
        (wire, port)
    }

    async fn whole(&self) {
        while self.0.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    async fn carry(self, mut from: tokio::net::tcp::OwnedReadHalf, mut to: tokio::net::tcp::OwnedWriteHalf) {
        let mut bytes = vec![0; 1 << 14];
        while let Ok(count @ 1..) = from.read(&mut bytes).await {
            self.whole().await;
            if to.write_all(&bytes[..count]).await.is_err() {
                break;
            }
        }
    }

    pub fn cut(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub fn mend(&self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// One instance.
pub struct Instance {
    folder: PathBuf,
    /// One to each server.
    pub wires: Vec<Wire>,
    pub child: Child,
}

impl Instance {
    /// An instance with this config in a folder of its own.
    pub fn start(folder: PathBuf, wires: Vec<Wire>, config: &str, rules: &str) -> Self {
        std::fs::create_dir_all(folder.join("rules")).expect("a folder");
        std::fs::write(folder.join("cliffwatch.toml"), config).expect("written");
        std::fs::write(folder.join("rules/r.toml"), rules).expect("written");
        let child = spawn(&folder);
        Self { folder, wires, child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, name: &str) {
        Command::new("kill").args([&format!("-{name}"), &self.pid().to_string()]).status().expect("kill runs");
    }

    /// Cuts it off from every server.
    pub fn cut_off(&self) {
        self.wires.iter().for_each(Wire::cut);
    }

    pub fn reconnect(&self) {
        self.wires.iter().for_each(Wire::mend);
    }

    /// Starts it again once it has ended.
    pub async fn again(&mut self) {
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

    /// How often it said that it stands by.
    pub fn times_standing_by(&self) -> usize {
        self.log().matches("standing by: ").count()
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

/// Starts the program beside the instance's folder from a name of its own, which is gone then, as after an upgrade: an instance that begins
/// anew does without it.
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
