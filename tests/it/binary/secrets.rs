//! No secret is shown anywhere.

use super::*;

/// A mail server that refuses every login and says why, with what it was given.
async fn rude_mail_server(ending: CancellationToken) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("bound");
    tokio::spawn(async move {
        loop {
            let stream = tokio::select! {
                Ok((stream, _)) = listener.accept() => stream,
                () = ending.cancelled() => return,
            };
            tokio::spawn(async move {
                let (read, mut write) = stream.into_split();
                write.write_all(b"220 rude ESMTP\r\n").await.ok();
                let mut lines = BufReader::new(read).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    let answer = match line.split(' ').next().unwrap_or_default().to_ascii_uppercase().as_str() {
                        "EHLO" => "250-rude\r\n250 AUTH PLAIN LOGIN\r\n".to_owned(),
                        "AUTH" => format!("535 5.7.8 refused: {line} smtp-password-4242\r\n"),
                        "QUIT" => "221 bye\r\n".to_owned(),
                        _ => "250 ok\r\n".to_owned(),
                    };
                    if write.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_is_shown_anywhere() {
    let room = Room::new(Time::System, AccessPolicy::Keys).await;
    let ending = CancellationToken::new();
    let mail = rude_mail_server(ending.clone()).await;
    let hook = room.hook_address;
    // Inline, by file, and by the environment.
    room.desk.write("api-key", &room.key).write("ops-secret", "whsec_c2lnbmluZy1zZWNyZXQtNDI0Mg==\n");
    room.configure(&format!(
        r#"
fallback = ["mail"]
[[receiver]]
name = "signed"
type = "webhook"
url = "http://{hook}/hook/url-secret-4242"
secret_file = "ops-secret"
[[receiver]]
name = "mail"
type = "email"
smtp = "smtp://{mail}"
username = "alerts"
password = "smtp-password-4242"
from = "Cliffwatch <a@example.com>"
to = ["b@example.com"]
[[route.routes]]
matchers = ['alertname=~".+"']
receivers = ["ops", "signed", "mail"]
"#
    ));
    room.desk.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    room.hook.answer_always(Some(503));
    let environment = [
        ("CLIFFWATCH_SOURCE__API_KEY_FILE", "api-key"),
        ("CLIFFWATCH_HTTP__TOKEN", "http-token-4242"),
        ("CLIFFWATCH_HTTP__DEAD_MANS_SWITCH", "http://127.0.0.1:9/ping/switch-secret-4242"),
        ("RUST_LOG", "trace"),
    ];
    let secrets = [
        room.key.as_str(),
        "c2lnbmluZy1zZWNyZXQtNDI0Mg",
        "signing-secret-4242",
        "url-secret-4242",
        "smtp-password-4242",
        // The login as it goes over the wire: base64 of NUL, name, NUL, password.
        "AGFsZXJ0cwBzbXRwLXBhc3N3b3JkLTQyNDI",
        "http-token-4242",
        "switch-secret-4242",
    ];
    let clean = |what: &str, text: &str| {
        for secret in secrets {
            if let Some(at) = text.find(secret) {
                let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
                panic!("{what} shows {secret}: {}", &text[from..(at + secret.len() + 40).min(text.len())]);
            }
        }
    };

    let daemon = room.desk.start("run", &environment);
    let address = daemon.address();
    // Everything has met refusal once: the webhooks 503, the mail server a bad login, the switch a closed port.
    let tried = || {
        let rows = room.desk.run_with("outbox list --format json", &environment).json();
        let rows = rows.as_array().expect("rows").clone();
        ["ops", "signed", "mail"]
            .iter()
            .all(|name| rows.iter().any(|row| row["receiver"] == *name && row["lastAnswer"].is_string()))
    };
    until("each receiver was tried", tried, || daemon.log());
    // They were really used, and repeated to us: what is kept of it is clean.
    let rows = room.desk.run_with("outbox list --format json", &environment).json();
    let answers: String = rows.as_array().expect("rows").iter().filter_map(|row| row["lastAnswer"].as_str()).collect();
    assert!(answers.contains("535") && answers.contains("refused: AUTH") && answers.contains("nothing at"), "{answers}");
    // A source in trouble that repeats the key; then one that refuses it.
    room.faults.set("/v", Fault::Body(format!("{{\"status\":false,\"errorMessage\":\"bad key {}\"}}", room.key)));
    until("the source is in trouble", || daemon.log().contains("failed"), || daemon.log());
    room.faults.clear();
    room.faults.set("/v", Fault::status(401));
    until("the key is refused", || daemon.log().contains("unauthorized"), || daemon.log());

    for path in ["/", "/metrics", "/api/status", "/api/upcoming", "/api/changes", "/api/alerts", "/api/outbox", "/-/ready"] {
        clean(path, &page(&address, path).await);
    }
    for line in [
        "check",
        "check --format json",
        "status",
        "alerts",
        "changes",
        "upcoming",
        "outbox list",
        "outbox show 1",
        "outbox show 2",
        "outbox show 3",
        "--help",
        "run --help",
    ] {
        let ran = room.desk.run_with(line, &environment);
        clean(line, &ran.out);
        clean(line, &ran.err);
    }
    room.hook.answer_always(None);
    until("the receiver takes it at last", || room.hook.was_signed(), || daemon.log());
    let ran = daemon.stop();
    assert_eq!(ran.code(), 0);
    clean("the log", &ran.err);
    clean("standard output", &ran.out);
    for entry in fs::read_dir(room.desk.folder.path()).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test.db")) {
            clean("the database", &String::from_utf8_lossy(&fs::read(&path).expect("read")));
        }
    }
    // A config that cannot be used is told without the secrets in it, nor those in the lines around.
    let broken = fs::read_to_string(room.desk.path("cliffwatch.toml")).expect("read").replace("username", "usrname");
    room.desk.write("cliffwatch.toml", &broken);
    let ran = room.desk.run_with("check", &environment);
    assert_eq!(ran.code(), 1);
    assert!(ran.err.contains("username"), "{}", ran.err);
    clean("check", &ran.err);
    ending.cancel();
}

/// A page, with the token, whatever its status.
async fn page(address: &str, path: &str) -> String {
    cliffwatch::source::install_crypto_provider();
    let client = reqwest::Client::builder().timeout(Duration::from_secs(10)).build().expect("a client");
    client
        .get(format!("{address}{path}"))
        .bearer_auth("http-token-4242")
        .send()
        .await
        .expect("an answer")
        .text()
        .await
        .expect("a text")
}
