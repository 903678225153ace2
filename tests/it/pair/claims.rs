//! What the metrics of the two instances claim about who is active, and whether the lease agrees. A scraper per instance reads `/metrics`
//! every second, without code of the program.
//!
//! A claim is true at some instant between the request and the response, and two scrapes never have the same instant. So "both are active"
//! cannot be read from two responses alone. It can be read together with the lease: an instance that claims to be active after another one
//! has taken the lease is a second active instance, and so is one whose claim follows that of the other one without a takeover between them.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::watch::Tenure;

const SCRAPE_INTERVAL: Duration = Duration::from_secs(1);
const SCRAPE_TIMEOUT: Duration = Duration::from_secs(1);
/// The age at which a claim says nothing about now.
const OUTDATED_AFTER: Duration = Duration::from_millis(2_500);

/// The role of an instance in one scrape.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The name of the machine.
    pub host: &'static str,
    pub requested_at: Instant,
    pub responded_at: Instant,
    /// `None` if the instance did not respond.
    pub is_active: Option<bool>,
}

impl Claim {
    fn is_of_active(&self) -> bool {
        self.is_active == Some(true)
    }
}

/// Sends a request to a local server and returns the body of its response.
pub fn get(port: u16, path: &str, timeout: Duration) -> io::Result<String> {
    let deadline = Instant::now() + timeout;
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from(([127, 0, 0, 1], port)), timeout)?;
    // Version 1.0, so that the body has no chunks.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
    let (mut response, mut block) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        match stream.read(&mut block)? {
            0 => break,
            count => response.extend_from_slice(&block[..count]),
        }
    }
    let text = String::from_utf8_lossy(&response);
    match text.split_once("\r\n\r\n") {
        Some((head, body)) if head.split(' ').nth(1) == Some("200") => Ok(body.to_owned()),
        _ => Err(io::Error::other(format!("{path}: {}", text.lines().next().unwrap_or_default()))),
    }
}

/// Scrapes both instances until it is dropped.
#[derive(Debug)]
pub struct ClaimBooks {
    claims: Arc<Mutex<Vec<Claim>>>,
    is_over: Arc<AtomicBool>,
}

impl ClaimBooks {
    pub fn open(instances: [(&'static str, u16); 2]) -> Self {
        let books = Self { claims: Arc::default(), is_over: Arc::default() };
        for (host, port) in instances {
            let (claims, is_over) = (books.claims.clone(), books.is_over.clone());
            std::thread::spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    let requested_at = Instant::now();
                    let page = get(port, "/metrics", SCRAPE_TIMEOUT).ok();
                    let responded_at = Instant::now();
                    let has = |line: &str| page.as_ref().is_some_and(|page| page.lines().any(|other| other == line));
                    let is_active = match (has("cliffwatch_active 1"), has("cliffwatch_active 0")) {
                        (true, false) => Some(true),
                        (false, true) => Some(false),
                        _ => None,
                    };
                    claims.lock().unwrap().push(Claim { host, requested_at, responded_at, is_active });
                    std::thread::sleep(SCRAPE_INTERVAL.saturating_sub(requested_at.elapsed()));
                }
            });
        }
        books
    }

    pub fn all(&self) -> Vec<Claim> {
        self.claims.lock().unwrap().clone()
    }

    /// Returns whether exactly one instance claims to be active now. An instance that does not respond claims nothing.
    pub fn show_one_active(&self) -> bool {
        let claims = self.claims.lock().unwrap();
        let latest = |host: &str| claims.iter().rev().find(|claim| claim.host == host);
        let hosts: Vec<_> = ["one", "two"].into_iter().filter_map(latest).collect();
        let active = hosts.iter().filter(|claim| claim.is_of_active() && claim.requested_at.elapsed() < OUTDATED_AFTER);
        active.count() == 1
    }
}

impl Drop for ClaimBooks {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Returns a description of each claim that the lease contradicts.
pub fn contradictions(claims: &[Claim], tenures: &[Tenure]) -> Vec<String> {
    let origin = claims.first().map_or_else(Instant::now, |claim| claim.requested_at);
    let at = |instant: Instant| instant.saturating_duration_since(origin).as_secs_f64();
    let mut active: Vec<&Claim> = claims.iter().filter(|claim| claim.is_of_active()).collect();
    active.sort_by_key(|claim| claim.requested_at);
    let mut wrong = Vec::new();
    for claim in &active {
        let held = |tenure: &&Tenure| tenure.at < claim.requested_at && claim.responded_at < tenure.held_until;
        if let Some(tenure) = tenures.iter().find(held).filter(|tenure| tenure.host != claim.host) {
            wrong.push(format!(
                "{} claims to be active at {:.1} s, but {} has held lease {} since {:.1} s",
                claim.host,
                at(claim.requested_at),
                tenure.host,
                tenure.number,
                at(tenure.at)
            ));
        }
    }
    for (first, second) in active.iter().zip(active.iter().skip(1)).filter(|(first, second)| first.host != second.host) {
        let takeover = tenures.iter().enumerate().any(|(no, tenure)| {
            let earliest = no.checked_sub(1).and_then(|before| tenures.get(before)).map(|before| before.held_until);
            tenure.host == second.host
                && tenure.at >= first.requested_at
                && earliest.is_none_or(|earliest| earliest <= second.responded_at)
        });
        if !takeover {
            wrong.push(format!(
                "{} claims to be active at {:.1} s and {} at {:.1} s, without a takeover between them",
                first.host,
                at(first.requested_at),
                second.host,
                at(second.requested_at)
            ));
        }
    }
    wrong
}

#[test]
fn two_active_instances_are_found_in_their_claims() {
    let begin = Instant::now();
    let after = |secs: f64| begin + Duration::from_secs_f64(secs);
    let claim = |host: &'static str, secs: f64| Claim {
        host,
        requested_at: after(secs),
        responded_at: after(secs + 0.02),
        is_active: Some(true),
    };
    let tenure = |number: i64, host: &str, from: f64, to: f64| Tenure::of(number, host, after(from), after(to));
    let leases = [tenure(1, "one", 0.0, 9.5), tenure(2, "two", 10.0, 20.0)];
    let count = |claims: &[Claim]| contradictions(claims, &leases).len();

    assert_eq!(count(&[claim("one", 1.0), claim("one", 9.0), claim("two", 10.1)]), 0);
    assert_eq!(count(&[claim("one", 9.4), claim("two", 9.45)]), 2, "before the takeover");
    assert_eq!(count(&[claim("one", 9.4), claim("two", 9.49)]), 0, "a takeover during the scrape");
    assert_eq!(count(&[claim("one", 10.5)]), 1, "the former one, alone");
    assert_eq!(count(&[claim("one", 9.0), claim("two", 10.5), claim("one", 11.0), claim("two", 11.5)]), 3, "both");
    // While the server is away, the lease is not read.
    assert_eq!(count(&[claim("two", 21.0), claim("one", 22.0)]), 1, "no takeover was seen");
}
