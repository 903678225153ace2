//! Tests of addresses, connections, and databases that several processes use.

use super::*;

#[tokio::test]
async fn both_addresses_start_and_stop_together() {
    let service = small(options());
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    let (sender, bound) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(async move {
        listen(
            &service,
            Listening { address: any, legacy: Some(any), tls: None },
            |bound| sender.send(bound).unwrap(),
            async move { drop(stopped.await) },
        )
        .await
    });
    let bound: BoundAddresses = bound.await.unwrap();
    for (address, weekly) in [(bound.address, 404), (bound.legacy.unwrap(), 200)] {
        rustls::crypto::ring::default_provider().install_default().ok();
        let response = reqwest::get(format!("http://{address}/v2/emission?tokenId=alpha")).await.unwrap();
        assert_eq!(response.status().as_u16(), weekly);
    }
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), serving).await.expect("both stop").unwrap().unwrap();
    let taken = std::net::TcpListener::bind(any).unwrap();
    let taken_already = Listening { address: taken.local_addr().unwrap(), legacy: None, tls: None };
    let error = listen(&small(options()), taken_already, |_| {}, async {}).await.unwrap_err();
    assert_eq!(error.to_string(), format!("cannot listen on {}", taken.local_addr().unwrap()));
}

#[tokio::test]
async fn import_of_another_process_is_served_soon() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("service.db");
    let served = Service::open(&path, options()).unwrap();
    let server = Server::start(served.router()).await;
    assert_eq!(server.data("/v5/token/list").await, Value::Array(vec![]));
    let other = Service::open(&path, options()).unwrap();
    other.import(files(FILES), |_| {}).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.data("/v5/token/list").await.as_array().unwrap().is_empty() {
        assert!(Instant::now() < deadline, "timed out waiting for the import");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    other.add_key("desk", 5).unwrap();
    while server.request("/v5/token/list").await.0 != 401 {
        assert!(Instant::now() < deadline, "timed out waiting for the key");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn incomplete_request_does_not_delay_shutdown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let router = small(options()).router();
    let limits = ConnectionLimits { stop_grace: Duration::from_millis(100), ..ConnectionLimits::default() };
    let server = tokio::spawn(serve_within(limits, listener, router, None, Box::pin(async move { drop(stopped.await) })));
    let mut half = tokio::net::TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /v5/burn/alpha HT").await.unwrap();
    stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(10), server).await.expect("it stops").unwrap().unwrap();
}

#[tokio::test]
async fn idle_connection_is_closed_for_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits {
        connections: 1,
        idle_timeout: Duration::from_millis(200),
        stop_grace: Duration::ZERO,
        ..ConnectionLimits::default()
    };
    let router = small(options()).router();
    tokio::spawn(serve_within(limits, listener, router, None, Box::pin(std::future::pending())));
    let mut silent = tokio::net::TcpStream::connect(address).await.unwrap();
    silent.write_all(b"GET /v5/burn/alpha HT").await.unwrap();
    // The only slot is in use until the idle connection is closed.
    let mut next = tokio::net::TcpStream::connect(address).await.unwrap();
    next.write_all(b"GET /v5/burn/alpha HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut response = String::new();
    let read = tokio::time::timeout(Duration::from_secs(10), next.read_to_string(&mut response)).await;
    assert!(read.is_ok() && response.starts_with("HTTP/1.1 200"), "{read:?} {response}");
    let mut rest = Vec::new();
    // Whether the server sends a last response does not matter.
    let ended = tokio::time::timeout(Duration::from_secs(10), silent.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the idle connection is closed");
}

/// Half of the clients are silent, and half send a byte at a time.
#[tokio::test]
async fn clients_without_complete_requests_do_not_block_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = ConnectionLimits { connections: 16, ..ConnectionLimits::default() };
    let router = small(options()).router();
    tokio::spawn(serve_within(limits, listener, router, None, Box::pin(std::future::pending())));
    let mut batch = tokio::task::JoinSet::new();
    for one in 0..64 {
        batch.spawn(async move {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let mut slowly = b"GET /v5/burn/alpha HTTP/1.1\r\nx-much: ".iter().copied().chain(std::iter::repeat(b'x'));
            while one % 2 == 0 || stream.write_all(&[slowly.next().unwrap()]).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    for _ in 0..3 {
        let begun = Instant::now();
        let mut next = tokio::net::TcpStream::connect(address).await.unwrap();
        next.write_all(b"GET /-/healthy HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let mut response = String::new();
        let read = tokio::time::timeout(Duration::from_secs(20), next.read_to_string(&mut response)).await;
        assert!(read.is_ok() && response.starts_with("HTTP/1.1 200"), "{read:?} {response}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    }
}
