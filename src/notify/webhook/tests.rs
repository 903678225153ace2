use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::samples::{HOSTILE, delivery_config, due, hostile, moved, resolved, time, unlock};
use crate::{KeyProblem, Receivers, message};
use model::config::{self, Span};

/// What a request looked like.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub head: String,
    pub body: Vec<u8>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    }
}

/// A server that gives `answer` to each request, byte for byte; with `None` it says nothing.
pub async fn server(answer: Option<&str>) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, answer) = (seen.clone(), answer.map(str::to_owned));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (log, answer) = (log.clone(), answer.clone());
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                let mut chunk = [0_u8; 65_536];
                loop {
                    let Ok(read @ 1..) = socket.read(&mut chunk).await else {
                        return;
                    };
                    bytes.extend_from_slice(&chunk[..read]);
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    let Some(end) = text.find("\r\n\r\n") else { continue };
                    let seen = Seen { head: text[..end].to_owned(), body: bytes[end + 4..].to_vec() };
                    let length: usize = seen.header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
                    if seen.body.len() >= length {
                        log.lock().expect("a lock").push(seen);
                        break;
                    }
                }
                match answer {
                    Some(answer) => {
                        let _written = socket.write_all(answer.as_bytes()).await;
                        let _closed = socket.shutdown().await;
                    }
                    None => std::future::pending::<()>().await,
                }
            });
        }
    });
    (format!("http://{address}"), seen)
}

pub fn ok(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn receiver(url: &str) -> config::ReceiverSettings {
    config::ReceiverSettings { name: "ops".into(), url: Some(SecretText::from(url.to_owned())), ..Default::default() }
}

/// The signing secret, as a config holds it.
fn secret(text: &str) -> BTreeMap<String, SecretText> {
    [("secret".to_owned(), text.to_owned().into())].into()
}

fn build(receiver: &config::ReceiverSettings) -> Result<WebhookReceiver, Vec<KeyProblem>> {
    let mut problems = Vec::new();
    WebhookReceiver::build(receiver, &delivery_config(), Some("https://cliffwatch.example.com"), &mut problems).ok_or(problems)
}

async fn send(receiver: &config::ReceiverSettings) -> SendResult {
    let delivery = due(1, "ops", vec![unlock()]);
    build(receiver).expect("it is well configured").send(&delivery, time("2026-03-09T13:00:05Z")).await
}

#[tokio::test]
async fn the_bytes_that_are_signed_are_the_bytes_that_are_sent() {
    let (url, seen) = server(Some(&ok("204 No Content", "", ""))).await;
    let receiver = config::ReceiverSettings { format_keys: secret("plain text"), ..receiver(&format!("{url}/hook")) };
    let webhook = build(&receiver).expect("it is well configured");
    let delivery = due(7, "ops", vec![unlock()]);
    let answer = webhook.send(&delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Accepted, Some(204)));
    // Another attempt, an hour later: the same bytes under the same id.
    webhook.send(&delivery, time("2026-03-09T14:00:05Z")).await;

    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.len(), 2);
    assert_eq!(seen[0].body, seen[1].body);
    assert!(seen[0].head.starts_with("POST /hook HTTP/1.1"));
    assert_eq!(seen[0].header("webhook-id").as_deref(), Some("msg_0007"));
    assert_eq!(seen[1].header("webhook-id").as_deref(), Some("msg_0007"));
    assert_eq!(seen[0].header("webhook-timestamp").as_deref(), Some("1773061205"));
    assert_eq!(seen[0].header("content-type").as_deref(), Some("application/json"));
    assert!(seen[0].header("user-agent").is_some_and(|agent| agent.starts_with("cliffwatch/")));
    assert_eq!(seen[0].header("accept-encoding"), None);
    let keys = signing_keys("plain text").expect("a secret");
    assert_eq!(seen[0].header("webhook-signature"), signatures(&keys, "msg_0007", 1_773_061_205, &seen[0].body));
}

#[tokio::test]
async fn a_receiver_without_a_secret_gets_no_signature() {
    let (url, seen) = server(Some(&ok("200 OK", "", "thanks"))).await;
    let answer = send(&receiver(&url)).await;
    assert_eq!(answer, SendResult { outcome: Outcome::Accepted, status: Some(200), text: "thanks".into() });
    assert_eq!(seen.lock().expect("a lock")[0].header("webhook-signature"), None);
}

#[tokio::test]
async fn every_answer_has_its_outcome_on_the_wire_too() {
    for (status, headers, expected) in [
        ("200 OK", "", Outcome::Accepted),
        ("202 Accepted", "", Outcome::Accepted),
        ("400 Bad Request", "", Outcome::Refused),
        ("401 Unauthorized", "", Outcome::Refused),
        ("404 Not Found", "", Outcome::Refused),
        ("408 Request Timeout", "", Outcome::LATER),
        ("410 Gone", "", Outcome::Gone),
        ("429 Too Many Requests", "retry-after: 120\r\n", Outcome::Later { retry_after: Some(chrono::TimeDelta::seconds(120)) }),
        (
            "503 Service Unavailable",
            "retry-after: Mon, 09 Mar 2026 13:01:05 GMT\r\n",
            Outcome::Later { retry_after: Some(chrono::TimeDelta::seconds(60)) },
        ),
        ("500 Internal Server Error", "retry-after: soon\r\n", Outcome::LATER),
    ] {
        let (url, _) = server(Some(&ok(status, headers, ""))).await;
        let answer = send(&receiver(&url)).await;
        assert_eq!(answer.outcome, expected, "{status}");
        assert_eq!(answer.status, status[..3].parse().ok());
        assert!(!answer.text.is_empty());
    }
}

#[tokio::test]
async fn a_redirect_is_refused_and_not_followed() {
    let (elsewhere, seen) = server(Some(&ok("200 OK", "", ""))).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (url, _) = server(Some(&ok(status, &format!("location: {elsewhere}/\r\n"), ""))).await;
        let answer = send(&receiver(&url)).await;
        assert_eq!(answer.outcome, Outcome::Refused);
        assert!(answer.text.contains("never followed"), "{}", answer.text);
    }
    assert!(seen.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn what_is_broken_or_silent_is_tried_later() {
    let (cut, _) = server(Some("HTTP/1.1 20")).await;
    let (garbage, _) = server(Some("go away\r\n\r\n")).await;
    // Held, so that nobody else comes to listen there.
    let held = TcpSocket::new_v4().expect("a socket");
    held.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let closed = format!("http://{}", held.local_addr().expect("an address"));
    for url in [cut, garbage, closed] {
        let answer = send(&receiver(&format!("{url}/secret-path-123"))).await;
        assert_eq!((answer.outcome, answer.status), (Outcome::LATER, None));
        assert!(!answer.text.contains("secret-path"), "{}", answer.text);
        assert!(!answer.text.contains("127.0.0.1"), "{}", answer.text);
    }
    let (mute, _) = server(None).await;
    let delivery = config::DeliverySettings { timeout: Span(Duration::from_millis(200)), ..delivery_config() };
    let mut problems = Vec::new();
    let webhook = WebhookReceiver::build(&receiver(&mute), &delivery, None, &mut problems).expect("it is well configured");
    let answer = webhook.send(&due(1, "ops", vec![unlock()]), time("2026-03-09T13:00:05Z")).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::LATER, None));
    assert!(answer.text.contains("no answer within"), "{}", answer.text);
}

#[tokio::test]
async fn an_answer_is_kept_to_its_bound_and_a_cut_one_still_counts() {
    let long = "x".repeat(1 << 20);
    let (url, _) = server(Some(&ok("400 Bad Request", "", &long))).await;
    assert_eq!(send(&receiver(&url)).await.text.len(), MAX_ANSWER_BYTES);
    // The status came: what follows decides nothing.
    let (cut, _) = server(Some("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    assert_eq!(send(&receiver(&cut)).await, SendResult { outcome: Outcome::Accepted, status: Some(200), text: "half".into() });
}

#[tokio::test]
async fn no_secret_is_in_what_is_recorded() {
    let token = "T0KENabcdefgh/B0123456789";
    let body = |url: &str| {
        format!(
            "you posted to {url}/services/{token}?key=qwertyuiop with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw \
             path /services/{token} json \\/services\\/T0KENabcdefgh\\/B0123456789 query qwertyuiop key MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw \
             login hunter2-hunter2"
        )
    };
    let (url, _) = server(Some(&ok("400 Bad Request", "", &body("http://user:hunter2-hunter2@host")))).await;
    let address = format!("{}/services/{token}?key=qwertyuiop", url.replace("http://", "http://user:hunter2-hunter2@"));
    let receiver =
        config::ReceiverSettings { format_keys: secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), ..receiver(&address) };
    let answer = send(&receiver).await;
    assert_eq!(answer.outcome, Outcome::Refused);
    let shown = format!("{} {:?}", answer.text, build(&receiver).expect("it is well configured"));
    for secret in ["T0KENabcdefgh", "B0123456789", "qwertyuiop", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "hunter2"] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
}

#[test]
fn a_wrong_config_is_answered_with_every_problem_and_no_secret() {
    let wrong = config::ReceiverSettings {
        url: Some(SecretText::from("http://hooks.example.com/s3cr3t-path".to_owned())),
        format_keys: secret("whsec_s3cr3t!"),
        format: Some("cliffwach".into()),
        allow_networks: vec!["10.0.0.0/99".into()],
        tls_ca_file: Some("/does/not/exist.pem".into()),
        ..receiver("")
    };
    let problems = build(&wrong).expect_err("it is wrong");
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["format", "allow_networks", "url", "secret", "tls_ca_file"]);
    let text = format!("{problems:?}");
    assert!(!text.contains("s3cr3t"), "{text}");
    assert!(text.contains("did you mean \\\"cliffwatch\\\"?"), "{text}");
}

#[test]
fn an_address_must_be_https_and_public_unless_it_is_loopback_or_listed() {
    let check = |url: &str, allow: &[&str]| {
        let receiver =
            config::ReceiverSettings { allow_networks: allow.iter().map(|text| (*text).to_owned()).collect(), ..receiver(url) };
        build(&receiver).map(|_| ()).map_err(|problems| problems[0].message.clone())
    };
    for url in
        ["https://example.com/hook", "http://127.0.0.1:8080/", "http://localhost:1/x", "http://[::1]:1/", "https://127.0.0.1/"]
    {
        assert_eq!(check(url, &[]), Ok(()), "{url}");
    }
    for (url, why) in [
        ("http://example.com/hook", "must be https"),
        ("https://10.0.0.1/hook", "private"),
        ("https://[fd00::1]/hook", "private"),
        ("https://169.254.169.254/latest", "private"),
        ("https://2130706434/hook", "private"),
        ("https://0x0a.1/hook", "private"),
        ("https://[::ffff:10.0.0.1]/hook", "private"),
        ("http://localhost.example.com/", "must be https"),
        ("ftp://example.com/", "must begin with https://"),
        ("example.com/hook", "no URL"),
        ("", "no URL"),
    ] {
        let error = check(url, &[]).err().unwrap_or_default();
        // 2130706434 is 127.0.0.2: whoever writes a loopback address means it.
        if url.contains("2130706434") {
            assert_eq!(error, "");
            continue;
        }
        assert!(error.contains(why), "{url}: {error}");
    }
    assert_eq!(check("https://10.1.2.3/hook", &["10.1.0.0/16"]), Ok(()));
    assert!(check("http://10.1.2.3/hook", &["10.1.0.0/16"]).is_err(), "a listed network is no reason for plain text");
}

#[tokio::test]
async fn the_address_is_read_at_each_use() {
    let (first, seen_first) = server(Some(&ok("200 OK", "", ""))).await;
    let (second, seen_second) = server(Some(&ok("200 OK", "", ""))).await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{first}/a\n")).expect("written");
    let receiver = config::ReceiverSettings { name: "ops".into(), url_file: Some(file.path().to_owned()), ..Default::default() };
    let receivers = Receivers::build(&[receiver], &delivery_config(), None).expect("it is well configured");
    let delivery = due(1, "ops", vec![unlock()]);
    let (outcome, attempt) = receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((outcome, attempt.outcome.as_str(), attempt.status), (Outcome::Accepted, "accepted", Some(200)));
    std::fs::write(file.path(), format!("{second}/b\n")).expect("written");
    receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((seen_first.lock().expect("a lock").len(), seen_second.lock().expect("a lock").len()), (1, 1));
    std::fs::remove_file(file.path()).expect("removed");
    let (outcome, attempt) = receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!(outcome, Outcome::LATER);
    assert!(attempt.answer.contains("cannot read the secret"), "{}", attempt.answer);
}

#[test]
fn the_body_is_the_one_that_receivers_rely_on() {
    let body = message::webhook_body(&due(1, "ops", vec![unlock()]), Some("https://cliffwatch.example.com"))
        .expect("JSON")
        .expect("a body");
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    insta::assert_json_snapshot!("body_firing", value);
    let body = message::webhook_body(&due(1, "ops", vec![moved(), resolved()]), None).expect("JSON").expect("a body");
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    insta::assert_json_snapshot!("body_of_two", value);
    assert_eq!(message::webhook_body(&due(1, "ops", vec![]), None).expect("JSON"), None);
}

#[test]
fn the_group_key_is_the_same_from_firing_to_end() {
    assert_eq!(message::group_key(&due(1, "ops", vec![unlock()])), message::group_key(&due(1, "ops", vec![resolved()])));
    assert_ne!(message::group_key(&due(1, "ops", vec![unlock()])), message::group_key(&due(1, "ops", vec![moved()])));
    assert_eq!(message::group_key(&due(1, "ops", vec![unlock(), moved()])), "{}");
}

#[test]
fn a_body_has_bounds_and_says_what_it_left_out() {
    let many: Vec<_> = (0..250).map(|_| unlock()).collect();
    let body = message::webhook_body(&due(1, "ops", many), None).expect("JSON").expect("a body");
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(value["data"]["alerts"].as_array().map(Vec::len), Some(message::MAX_ALERTS));
    assert_eq!(value["data"]["truncatedAlerts"], 150);

    let mut large = unlock();
    large.body.record = Some(serde_json::Value::from("x".repeat(2 * message::MAX_BODY_BYTES)));
    let body = message::webhook_body(&due(1, "ops", vec![large, unlock()]), None).expect("JSON").expect("a body");
    assert!(body.len() <= message::MAX_BODY_BYTES);
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(value["data"]["alerts"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn a_hostile_name_arrives_as_data_and_breaks_nothing() {
    let (url, seen) = server(Some(&ok("200 OK", "", ""))).await;
    let webhook = build(&receiver(&url)).expect("it is well configured");
    let answer = webhook.send(&due(1, "ops", vec![hostile()]), time("2026-03-09T13:00:05Z")).await;
    assert_eq!(answer.outcome, Outcome::Accepted);
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen[0].header("bcc"), None);
    let value: serde_json::Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!(value["data"]["alerts"][0]["token"]["symbol"], HOSTILE);
    insta::with_settings!({filters => vec![(r"x{60,}", "xxx[…]")]}, {
        insta::assert_json_snapshot!("body_hostile", value);
    });
}
