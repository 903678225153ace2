//! Secrets never appear in output, logs, pages, or the database.

use super::*;

/// A mail server that rejects every login and repeats the credentials in its response.
async fn leaking_mail_server(ending: CancellationToken) -> std::net::SocketAddr {
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
                    let response = match line.split(' ').next().unwrap_or_default().to_ascii_uppercase().as_str() {
                        "EHLO" => "250-rude\r\n250 AUTH PLAIN LOGIN\r\n".to_owned(),
                        "AUTH" => format!("535 5.7.8 refused: {line} smtp-password-4242\r\n"),
                        "QUIT" => "221 bye\r\n".to_owned(),
                        _ => "250 ok\r\n".to_owned(),
                    };
                    if write.write_all(response.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_never_shown() {
    let fixture = Fixture::new(Time::System, AccessPolicy::Keys).await;
    let ending = CancellationToken::new();
    let mail = leaking_mail_server(ending.clone()).await;
    let hook = fixture.hook_address;
    // Secrets from the config, from files, and from the environment.
    fixture.workdir.write("api-key", &fixture.key).write("ops-secret", "whsec_c2lnbmluZy1zZWNyZXQtNDI0Mg==\n");
    fixture.configure(&format!(
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
    fixture.workdir.write("rules/test.toml", "[[rule]]\nalert = \"Any\"\non = \"unlock\"\n");
    fixture.hook.respond_always(Some(503));
    let environment = [
        ("CLIFFWATCH_SOURCE__API_KEY_FILE", "api-key"),
        ("CLIFFWATCH_HTTP__TOKEN", "http-token-4242"),
        ("CLIFFWATCH_HTTP__DEAD_MANS_SWITCH", "http://127.0.0.1:9/ping/switch-secret-4242"),
        ("RUST_LOG", "trace"),
    ];
    let secrets = [
        fixture.key.as_str(),
        "c2lnbmluZy1zZWNyZXQtNDI0Mg",
        "signing-secret-4242",
        "url-secret-4242",
        "smtp-password-4242",
        // The login as it goes over the wire: base64 of NUL, name, NUL, password.
        "AGFsZXJ0cwBzbXRwLXBhc3N3b3JkLTQyNDI",
        "http-token-4242",
        "switch-secret-4242",
    ];
    let assert_clean = |what: &str, text: &str| {
        for secret in secrets {
            if let Some(at) = text.find(secret) {
                let from = text[..at].rfind('\n').map_or(0, |at| at + 1);
                panic!("{what} shows {secret}: {}", &text[from..(at + secret.len() + 40).min(text.len())]);
            }
        }
    };

    let daemon = fixture.workdir.start("run", &environment);
    let address = daemon.address();
    // Wait until each receiver has failed: the webhooks with 503, the mail server with a rejected login.
    let tried = || {
        let rows = fixture.workdir.run_with("outbox list --format json", &environment).json();
        let rows = rows.as_array().expect("rows").clone();
        ["ops", "signed", "mail"]
            .iter()
            .all(|name| rows.iter().any(|row| row["receiver"] == *name && row["lastAnswer"].is_string()))
    };
    until("each receiver was tried", tried, || daemon.log());
    // The servers repeated the secrets in their responses; the stored responses are redacted.
    let rows = fixture.workdir.run_with("outbox list --format json", &environment).json();
    let responses: String = rows.as_array().expect("rows").iter().filter_map(|row| row["lastAnswer"].as_str()).collect();
    assert!(responses.contains("535") && responses.contains("refused: AUTH") && responses.contains("nothing at"), "{responses}");
    // A source error that repeats the key, then a source that rejects the key.
    fixture.faults.set("/v", Fault::Body(format!("{{\"status\":false,\"errorMessage\":\"bad key {}\"}}", fixture.key)));
    until("a failed poll", || daemon.log().contains("failed"), || daemon.log());
    fixture.faults.clear();
    fixture.faults.set("/v", Fault::status(401));
    until("the key is rejected", || daemon.log().contains("unauthorized"), || daemon.log());

    for path in
        ["/", "/metrics", "/api/v1/status", "/api/v1/upcoming", "/api/v1/changes", "/api/v1/alerts", "/api/v1/outbox", "/-/ready"]
    {
        assert_clean(path, &page(&address, path).await);
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
        let ran = fixture.workdir.run_with(line, &environment);
        assert_clean(line, &ran.out);
        assert_clean(line, &ran.err);
    }
    fixture.hook.respond_always(None);
    until("the receiver accepts a message", || fixture.hook.was_signed(), || daemon.log());
    let ran = daemon.stop();
    assert_eq!(ran.code(), 0);
    assert_clean("the log", &ran.err);
    assert_clean("standard output", &ran.out);
    for entry in fs::read_dir(fixture.workdir.folder.path()).expect("listed") {
        let path = entry.expect("an entry").path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("test.db")) {
            assert_clean("the database", &String::from_utf8_lossy(&fs::read(&path).expect("read")));
        }
    }
    // Diagnostics of an invalid config do not show secrets, not even in the surrounding lines.
    let broken = fs::read_to_string(fixture.workdir.path("cliffwatch.toml")).expect("read").replace("username", "usrname");
    fixture.workdir.write("cliffwatch.toml", &broken);
    let ran = fixture.workdir.run_with("check", &environment);
    assert_eq!(ran.code(), 1);
    assert!(ran.err.contains("username"), "{}", ran.err);
    assert_clean("check", &ran.err);
    ending.cancel();
}

/// Requests a page with the token and returns its body for any status.
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
