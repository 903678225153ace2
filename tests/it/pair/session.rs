//! A small client of PostgreSQL that shares no code with the program: it observes the lease, and takes all free connections.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

/// The version 3.0 of the protocol.
const PROTOCOL: i32 = 3 << 16;
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(3);
/// The interval at which [`Greed`] looks for a free connection.
const GREED_INTERVAL: Duration = Duration::from_millis(20);

/// A connection without encryption and password.
pub struct RawSession(TcpStream);

impl RawSession {
    pub fn open(port: u16, user: &str) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), RESPONSE_TIMEOUT)?;
        stream.set_read_timeout(Some(RESPONSE_TIMEOUT))?;
        stream.set_write_timeout(Some(RESPONSE_TIMEOUT))?;
        let mut session = Self(stream);
        let parameters = format!("user\0{user}\0database\0postgres\0\0");
        let mut startup = i32::try_from(parameters.len() + 8).expect("short").to_be_bytes().to_vec();
        startup.extend(PROTOCOL.to_be_bytes());
        startup.extend(parameters.as_bytes());
        session.0.write_all(&startup)?;
        session.read_rows()?;
        Ok(session)
    }

    /// Runs a query and returns the first column.
    pub fn query(&mut self, sql: &str) -> io::Result<Vec<String>> {
        let mut message = vec![b'Q'];
        message.extend(i32::try_from(sql.len() + 5).expect("short").to_be_bytes());
        message.extend(sql.as_bytes());
        message.push(0);
        self.0.write_all(&message)?;
        self.read_rows()
    }

    /// Reads messages until the server is ready for the next query.
    fn read_rows(&mut self) -> io::Result<Vec<String>> {
        let mut rows = Vec::new();
        loop {
            let mut head = [0; 5];
            self.0.read_exact(&mut head)?;
            let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]).saturating_sub(4);
            let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
            self.0.read_exact(&mut body)?;
            match head[0] {
                b'Z' => return Ok(rows),
                b'E' => return Err(io::Error::other(String::from_utf8_lossy(&body).into_owned())),
                // The number of columns has two bytes, the length of the first value four.
                b'D' => rows.push(String::from_utf8_lossy(body.get(6..).unwrap_or_default()).into_owned()),
                _ => {}
            }
        }
    }
}

/// A client that takes every connection that becomes free, until it is dropped.
pub struct Greed {
    is_over: Arc<AtomicBool>,
    taker: Option<std::thread::JoinHandle<()>>,
}

impl Greed {
    pub fn begin(port: u16, user: &'static str) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let ending = is_over.clone();
        let taker = std::thread::spawn(move || {
            let mut taken = Vec::new();
            while !ending.load(Ordering::SeqCst) {
                match RawSession::open(port, user) {
                    Ok(session) => taken.push(session),
                    Err(_) => std::thread::sleep(GREED_INTERVAL),
                }
            }
        });
        Self { is_over, taker: Some(taker) }
    }
}

impl Drop for Greed {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(taker) = self.taker.take() {
            taker.join().ok();
        }
    }
}
