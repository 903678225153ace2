use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::{KeyProblem, Receivers, message};
use model::Replay;
use model::config::{self, Span};
use testkit::samples::{HOSTILE, delivery_config, due, hostile, moved, resolved, unlock};
use testkit::time;

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

/// Starts a server that sends `response` unchanged to each request. If it is `None`, the server never responds.
pub async fn server(response: Option<&str>) -> (String, Arc<Mutex<Vec<Seen>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (log, response) = (seen.clone(), response.map(str::to_owned));
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let (log, response) = (log.clone(), response.clone());
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
                match response {
                    Some(response) => {
                        let _written = socket.write_all(response.as_bytes()).await;
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

fn secret(text: &str) -> BTreeMap<String, SecretText> {
    [("secret".to_owned(), text.to_owned().into())].into()
}

fn build(receiver: &config::ReceiverSettings) -> Result<WebhookReceiver, Vec<KeyProblem>> {
    let mut problems = Vec::new();
    WebhookReceiver::build(receiver, &delivery_config(), Some("https://cliffwatch.example.com"), &mut problems).ok_or(problems)
}

async fn send(receiver: &config::ReceiverSettings) -> SendResult {
    let delivery = due(1, "ops", vec![unlock()]);
    build(receiver).expect("a valid receiver").send(&delivery, time("2026-03-09T13:00:05Z")).await
}

#[tokio::test]
async fn signature_covers_the_sent_bytes() {
    let (url, seen) = server(Some(&ok("204 No Content", "", ""))).await;
    let receiver = config::ReceiverSettings { format_keys: secret("plain text"), ..receiver(&format!("{url}/hook")) };
    let webhook = build(&receiver).expect("a valid receiver");
    let delivery = due(7, "ops", vec![unlock()]);
    let result = webhook.send(&delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((result.outcome, result.status), (Outcome::Accepted, Some(204)));
    // A retry sends the same bytes under the same id.
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
async fn receiver_without_a_secret_gets_no_signature() {
    let (url, seen) = server(Some(&ok("200 OK", "", "thanks"))).await;
    let result = send(&receiver(&url)).await;
    assert_eq!(result, SendResult { outcome: Outcome::Accepted, status: Some(200), text: "thanks".into() });
    assert_eq!(seen.lock().expect("a lock")[0].header("webhook-signature"), None);
}

#[tokio::test]
async fn each_http_response_has_an_outcome() {
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
        let result = send(&receiver(&url)).await;
        assert_eq!(result.outcome, expected, "{status}");
        assert_eq!(result.status, status[..3].parse().ok());
        assert!(!result.text.is_empty());
    }
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let (elsewhere, seen) = server(Some(&ok("200 OK", "", ""))).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let (url, _) = server(Some(&ok(status, &format!("location: {elsewhere}/\r\n"), ""))).await;
        let result = send(&receiver(&url)).await;
        assert_eq!(result.outcome, Outcome::Refused);
        assert!(result.text.contains("not followed"), "{}", result.text);
    }
    assert!(seen.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn broken_or_missing_response_is_retried() {
    let (cut, _) = server(Some("HTTP/1.1 20")).await;
    let (garbage, _) = server(Some("go away\r\n\r\n")).await;
    // The bound socket keeps other processes from listening on the port.
    let held = TcpSocket::new_v4().expect("a socket");
    held.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let closed = format!("http://{}", held.local_addr().expect("an address"));
    for url in [cut, garbage, closed] {
        let result = send(&receiver(&format!("{url}/secret-path-123"))).await;
        assert_eq!((result.outcome, result.status), (Outcome::LATER, None));
        assert!(!result.text.contains("secret-path"), "{}", result.text);
        assert!(!result.text.contains("127.0.0.1"), "{}", result.text);
    }
    let (mute, _) = server(None).await;
    let delivery = config::DeliverySettings { timeout: Span(Duration::from_millis(200)), ..delivery_config() };
    let mut problems = Vec::new();
    let webhook = WebhookReceiver::build(&receiver(&mute), &delivery, None, &mut problems).expect("a valid receiver");
    let result = webhook.send(&due(1, "ops", vec![unlock()]), time("2026-03-09T13:00:05Z")).await;
    assert_eq!((result.outcome, result.status), (Outcome::LATER, None));
    assert!(result.text.contains("no response within"), "{}", result.text);
}

#[tokio::test]
async fn response_is_cut_to_the_limit_and_an_incomplete_one_counts() {
    let long = "x".repeat(1 << 20);
    let (url, _) = server(Some(&ok("400 Bad Request", "", &long))).await;
    assert_eq!(send(&receiver(&url)).await.text.len(), MAX_RESPONSE_BYTES);
    // The status decides, even if the body is incomplete.
    let (cut, _) = server(Some("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf")).await;
    assert_eq!(send(&receiver(&cut)).await, SendResult { outcome: Outcome::Accepted, status: Some(200), text: "half".into() });
}

#[tokio::test]
async fn recorded_text_contains_no_secret() {
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
    let result = send(&receiver).await;
    assert_eq!(result.outcome, Outcome::Refused);
    let shown = format!("{} {:?}", result.text, build(&receiver).expect("a valid receiver"));
    for secret in ["T0KENabcdefgh", "B0123456789", "qwertyuiop", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "hunter2"] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
}

#[test]
fn invalid_config_reports_every_problem_without_secrets() {
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
fn url_must_be_https_and_public_unless_it_is_loopback_or_listed() {
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
        ("http://example.com/hook", "must use https"),
        ("https://10.0.0.1/hook", "private"),
        ("https://[fd00::1]/hook", "private"),
        ("https://169.254.169.254/latest", "private"),
        ("https://2130706434/hook", "private"),
        ("https://0x0a.1/hook", "private"),
        ("https://[::ffff:10.0.0.1]/hook", "private"),
        ("http://localhost.example.com/", "must use https"),
        ("ftp://example.com/", "must begin with https://"),
        ("example.com/hook", "not valid"),
        ("", "not valid"),
    ] {
        let error = check(url, &[]).err().unwrap_or_default();
        // 2130706434 is 127.0.0.2, a loopback address.
        if url.contains("2130706434") {
            assert_eq!(error, "");
            continue;
        }
        assert!(error.contains(why), "{url}: {error}");
    }
    assert_eq!(check("https://10.1.2.3/hook", &["10.1.0.0/16"]), Ok(()));
    assert!(check("http://10.1.2.3/hook", &["10.1.0.0/16"]).is_err(), "a listed network does not allow http://");
}

#[tokio::test]
async fn url_file_is_read_for_each_attempt() {
    let (first, seen_first) = server(Some(&ok("200 OK", "", ""))).await;
    let (second, seen_second) = server(Some(&ok("200 OK", "", ""))).await;
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), format!("{first}/a\n")).expect("written");
    let receiver = config::ReceiverSettings { name: "ops".into(), url_file: Some(file.path().to_owned()), ..Default::default() };
    let receivers = Receivers::build(&[receiver], &delivery_config(), None).expect("a valid receiver");
    let delivery = due(1, "ops", vec![unlock()]);
    let (outcome, attempt) = receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((outcome, attempt.outcome.as_str(), attempt.status), (Outcome::Accepted, "accepted", Some(200)));
    std::fs::write(file.path(), format!("{second}/b\n")).expect("written");
    receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!((seen_first.lock().expect("a lock").len(), seen_second.lock().expect("a lock").len()), (1, 1));
    std::fs::remove_file(file.path()).expect("removed");
    let (outcome, attempt) = receivers.send(&"ops".into(), &delivery, time("2026-03-09T13:00:05Z")).await;
    assert_eq!(outcome, Outcome::LATER);
    assert!(attempt.response.contains("cannot read the secret"), "{}", attempt.response);
}

#[tokio::test]
async fn replay_has_the_same_id_a_header_and_a_note() {
    let (url, seen) = server(Some(&ok("204 No Content", "", ""))).await;
    let receivers = Receivers::build(&[receiver(&url)], &delivery_config(), None).expect("a valid receiver");
    let delivery = due(1, "ops", vec![unlock()]);
    let (requested_at, first_delivered_at) = (time("2026-03-12T00:00:00Z"), Some(time("2026-03-09T13:00:05Z")));
    let replayed = DueDelivery { replay: Some(Replay { requested_at, first_delivered_at }), ..delivery.clone() };
    for delivery in [&delivery, &replayed, &replayed] {
        receivers.send(&"ops".into(), delivery, time("2026-03-12T00:00:01Z")).await;
    }
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.iter().map(|request| request.header("webhook-id")).collect::<Vec<_>>(), vec![Some("msg_0001".to_owned()); 3]);
    assert_eq!(seen[0].header("cliffwatch-replay"), None);
    assert_eq!(seen[1].header("cliffwatch-replay").as_deref(), Some("true"));
    assert_eq!(seen[1].body, seen[2].body, "each attempt sends the same bytes");
    let body = |index: usize| serde_json::from_slice::<serde_json::Value>(&seen[index].body).expect("JSON");
    let (mut first, mut again) = (body(0), body(1));
    let note = again["data"]["note"].take();
    assert_eq!(note, "Replay of a message of 9 Mar 2026, 13:00 UTC, first delivered at 9 Mar 2026, 13:00 UTC");
    first["data"]["note"].take();
    assert_eq!(first, again, "the rest is unchanged");
}

#[test]
fn webhook_body_matches_the_goldens() {
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
fn group_key_is_the_same_when_firing_and_resolved() {
    assert_eq!(message::group_key(&due(1, "ops", vec![unlock()])), message::group_key(&due(1, "ops", vec![resolved()])));
    assert_ne!(message::group_key(&due(1, "ops", vec![unlock()])), message::group_key(&due(1, "ops", vec![moved()])));
    assert_eq!(message::group_key(&due(1, "ops", vec![unlock(), moved()])), "{}");
}

#[test]
fn webhook_body_is_limited_and_counts_omitted_alerts() {
    let many: Vec<_> = (0..250).map(|_| unlock()).collect();
    let body = message::webhook_body(&due(1, "ops", many), None).expect("JSON").expect("a body");
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(value["data"]["alerts"].as_array().map(Vec::len), Some(model::rows::MAX_ALERTS));
    assert_eq!(value["data"]["truncatedAlerts"], 150);

    let mut large = unlock();
    large.body.record = Some(serde_json::Value::from("x".repeat(2 * message::MAX_BODY_BYTES)));
    let body = message::webhook_body(&due(1, "ops", vec![large, unlock()]), None).expect("JSON").expect("a body");
    assert!(body.len() <= message::MAX_BODY_BYTES);
    let value: serde_json::Value = serde_json::from_slice(&body).expect("JSON");
    assert_eq!(value["data"]["alerts"].as_array().map(Vec::len), Some(2));
}

#[tokio::test]
async fn hostile_name_is_sent_as_data() {
    let (url, seen) = server(Some(&ok("200 OK", "", ""))).await;
    let webhook = build(&receiver(&url)).expect("a valid receiver");
    let result = webhook.send(&due(1, "ops", vec![hostile()]), time("2026-03-09T13:00:05Z")).await;
    assert_eq!(result.outcome, Outcome::Accepted);
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen[0].header("bcc"), None);
    let value: serde_json::Value = serde_json::from_slice(&seen[0].body).expect("JSON");
    assert_eq!(value["data"]["alerts"][0]["token"]["symbol"], HOSTILE);
    insta::with_settings!({filters => vec![(r"x{60,}", "xxx[…]")]}, {
        insta::assert_json_snapshot!("body_hostile", value);
    });
}
