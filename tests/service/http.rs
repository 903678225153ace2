//! HTTP features: entity tags, compression, HEAD, limits, metrics, and the access log.

use std::{
    io::{BufRead, Read},
    process::{Command, Stdio},
};

use cliffwatch::{service as serve, service::Service};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::service::support::{Server, bundled, options};

#[tokio::test]
async fn unchanged_response_is_not_sent_and_costs_no_credit() {
    let service = Service::in_memory(options()).unwrap();
    service.import(serve::bundled(), |_| {}).unwrap();
    let key = service.add_key("desk", 10).unwrap();
    let server = Server::of(&service).await;
    let path = "/v5/unlock/events/optimism?pageSize=10";
    let first = server.get(path, &[("x-api-key", &key)]).await;
    assert_eq!((first.status().as_u16(), first.headers()["cache-control"].to_str().unwrap()), (200, "private, no-cache"));
    let tag = first.headers()["etag"].to_str().unwrap().to_owned();
    let again = server.get(path, &[("x-api-key", &key), ("if-none-match", &tag)]).await;
    assert_eq!((again.status().as_u16(), again.headers()["etag"].to_str().unwrap()), (304, tag.as_str()));
    assert!(again.bytes().await.unwrap().is_empty());
    assert_eq!(service.keys().unwrap()[0].used, 1, "a 304 costs no credit");
    assert_eq!(server.get(path, &[("if-none-match", &tag)]).await.status(), 401, "an entity tag does not replace a key");
    let other = server.get("/v5/unlock/events/optimism?pageSize=11", &[("x-api-key", &key), ("if-none-match", &tag)]).await;
    assert_eq!(other.status(), 200, "another page has another entity tag");
    service.edit(|edit| edit.resize_event("optimism", crate::service::support::time("2023-02-09"), 2.0)).unwrap();
    let changed = server.get(path, &[("x-api-key", &key), ("if-none-match", &tag)]).await;
    assert_eq!(changed.status(), 200, "changed data has another entity tag");
}

#[tokio::test]
async fn head_has_no_body_and_gzip_has_the_same_content() {
    let server = Server::of(bundled()).await;
    let path = "/v5/token/list";
    let plain = server.get(path, &[("accept-encoding", "identity")]).await;
    let length = plain.headers()["content-length"].clone();
    let body = plain.bytes().await.unwrap();
    let head =
        server.http.head(format!("http://{}{path}", server.address)).header("accept-encoding", "identity").send().await.unwrap();
    assert_eq!((head.status().as_u16(), &head.headers()["content-length"]), (200, &length));
    assert!(head.bytes().await.unwrap().is_empty());

    // A raw request, because the client would decompress the response.
    let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\naccept-encoding: gzip\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut packed = Vec::new();
    stream.read_to_end(&mut packed).await.unwrap();
    let text = String::from_utf8_lossy(&packed);
    assert!(text.contains("content-encoding: gzip"), "{}", &text[..300]);
    assert!(packed.len() * 3 < body.len(), "{} of {} bytes", packed.len(), body.len());
    let unpacked = server.get(path, &[("accept-encoding", "gzip")]).await;
    assert_eq!(unpacked.headers()["vary"], "accept-encoding");
    assert_eq!(unpacked.bytes().await.unwrap(), body);
    // The `content-length` of a compressed body is its compressed length.
    let lengths = packed.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let declared = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse::<usize>().unwrap();
    assert_eq!(packed.len() - lengths, declared);
    // Small bodies are not compressed.
    let small = server.get("/v5/burn/arbitrum", &[("accept-encoding", "gzip")]).await;
    assert!(small.headers().contains_key("content-length") && small.status() == 200);
}

#[tokio::test]
async fn requests_beyond_limits_are_rejected() {
    let server = Server::of(bundled()).await;
    let long = "x".repeat(9_000);
    for (path, status) in [
        (format!("/v5/burn/bnb?start={long}"), 400),
        (format!("/v5/burn/{long}"), 400),
        ("/v5/burn/bnb?page=1".to_owned(), 400),
        ("/v5/nothing".to_owned(), 404),
        ("/v5/unlock/events/bnb?page=999999999&pageSize=999999999".to_owned(), 200),
        ("/v5/unlock/events/bnb?page=1000000000".to_owned(), 400),
        ("/v5/daily-emission/bnb?start=0001-01-01&end=9999-12-31".to_owned(), 200),
    ] {
        let (responded, body) = server.request(&path).await;
        assert_eq!(responded, status, "{}", &path[..path.len().min(60)]);
        assert_eq!(body["status"], status == 200);
    }
    let url = format!("http://{}/v5/burn/bnb", server.address);
    let posted = server.http.post(&url).send().await.unwrap();
    assert_eq!((posted.status().as_u16(), posted.headers()["allow"].to_str().unwrap()), (405, "GET,HEAD"));
    let heavy = server.http.get(&url).body(vec![b'x'; 100_000]).send().await.unwrap();
    assert_eq!(heavy.status(), 413);
    // A header that is too large closes the connection, and the service continues.
    let endless = server.http.get(&url).header("x-padding", "x".repeat(200_000)).send().await;
    assert!(endless.is_err() || endless.unwrap().status().is_client_error());
    assert_eq!(server.request("/v5/burn/bnb").await.0, 200);
}

#[test]
fn access_log_has_client_and_path_but_no_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let service = Service::open(&path, options()).unwrap();
    service.import(serve::bundled().take(2), |_| {}).unwrap();
    let key = service.add_key("desk", 5).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
        .args(["serve", "--listen", "127.0.0.1:0", "-vv", "--db"])
        .arg(&path)
        .env_remove("RUST_LOG")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let base = line.trim().strip_prefix("listening ").unwrap().to_owned();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let counts = runtime.block_on(async {
        cliffwatch::source::install_crypto_provider();
        let http = reqwest::Client::new();
        let get = |path: String| http.get(format!("{base}{path}")).header("x-api-key", &key).send();
        assert_eq!(get("/v5/burn/bnb".into()).await.unwrap().status(), 200);
        // Many clients put the key into the URL by mistake.
        assert_eq!(get(format!("/v5/burn/bnb?x-api-key={key}")).await.unwrap().status(), 400);
        assert_eq!(
            http.get(format!("{base}/v5/burn/bnb")).header("x-api-key", "wrong-secret").send().await.unwrap().status(),
            401
        );
        get("/metrics".into()).await.unwrap().text().await.unwrap()
    });
    let _ = Command::new("kill").arg(child.id().to_string()).status();
    let mut log = String::new();
    child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    child.wait().unwrap();
    for text in ["GET /v5/burn/bnb", "desk", "127.0.0.1", "200", "401"] {
        assert!(log.contains(text), "{text}: {log}");
    }
    assert!(counts.contains("cliffwatch_service_requests_total{path=\"/v5/burn/{id}\",status=\"200\"} 1"), "{counts}");
    assert!(counts.contains("cliffwatch_service_credits_total 1"), "{counts}");
    let bytes = std::fs::read(&path).unwrap();
    for secret in [key.as_str(), "wrong-secret"] {
        assert!(!log.contains(secret) && !counts.contains(secret), "{log}");
        assert!(!bytes.windows(secret.len()).any(|window| window == secret.as_bytes()), "the database contains a key");
    }
}

/// HEAD has the status and headers of GET and no body, for every kind of response.
#[tokio::test]
async fn head_has_the_headers_of_get_for_every_status() {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::open(&folder.path().join("service.db"), options()).unwrap();
    service.import(cliffwatch::service::bundled(), |_| {}).unwrap();
    let key = service.add_key("desk", 1_000).unwrap();
    let server = Server::of(&service).await;
    for (path, key) in [
        ("/v5/token/list", key.as_str()),
        ("/v3/unlock/events?tokenId=optimism", &key),
        ("/v5/burn/nonexistent", &key),
        ("/v5/burn/bnb?start=never", &key),
        ("/v5/burn/bnb", "cw_wrong"),
        ("/openapi.json", &key),
        ("/-/healthy", &key),
        ("/metrics", &key),
        ("/nowhere", &key),
    ] {
        let send = async |method: reqwest::Method| {
            let request = server.http.request(method, format!("http://{}{path}", server.address));
            let request = request.header("x-api-key", key).header("accept-encoding", "identity");
            let response = request.send().await.unwrap();
            let status = response.status().as_u16();
            let headers: std::collections::BTreeMap<String, String> =
                response.headers().iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect();
            (status, headers, response.bytes().await.unwrap().len())
        };
        let (status, mut headers, length) = send(reqwest::Method::GET).await;
        let (head_status, mut head_headers, head_length) = send(reqwest::Method::HEAD).await;
        assert!(length > 0 && head_length == 0, "{path}: {length} {head_length}");
        // The length may differ by a digit of a counter.
        for headers in [&mut headers, &mut head_headers] {
            let said = headers.remove("content-length");
            assert!(said.is_some(), "{path}: {headers:?}");
        }
        assert_eq!((status, headers), (head_status, head_headers), "{path}");
    }
}
