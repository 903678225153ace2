use std::net::TcpListener;

use super::*;

/// Starts a server that sends the same response to every request. Returns its address.
fn responding(response: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut query = [0; 1024];
            let length = stream.read(&mut query).unwrap();
            assert!(query[..length].starts_with(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n"));
            stream.write_all(response.as_bytes()).unwrap();
        }
    });
    address
}

fn checked(address: String) -> anyhow::Result<Exit> {
    let invocation = Invocation {
        is_real_time: false,
        may_change_live_database: true,
        config: None,
        format: super::super::OutputFormat::Table,
        color: false,
        verbose: 0,
        clock: model::Clock::system(),
    };
    run(&HealthcheckArgs { address: Some(address) }, &invocation)
}

#[test]
fn only_status_200_is_healthy() {
    assert_eq!(checked(responding("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")).unwrap(), Exit::Done);
    assert_eq!(checked(responding("HTTP/1.1 503 Service Unavailable\r\n\r\nno")).unwrap(), Exit::Failed);
}

#[test]
fn missing_daemon_and_other_servers_are_errors() {
    // Bound but not listening, so that no other process uses the port.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(
        checked(held.local_addr().unwrap().to_string()).unwrap_err().to_string().contains("no response from http://127.0.0.1:")
    );
    for response in ["", "SSH-2.0-x\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 many\r\n\r\n"] {
        assert!(checked(responding(response)).unwrap_err().to_string().contains("no HTTP response"), "{response:?}");
    }
}

#[test]
fn server_without_a_response_times_out() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = checked(silent.local_addr().unwrap().to_string()).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "no data within 3 s");
}

#[test]
fn unspecified_address_is_checked_on_loopback() {
    assert_eq!(address_of("0.0.0.0:9797").unwrap().to_string(), "127.0.0.1:9797");
    assert_eq!(address_of("[::]:9797").unwrap().to_string(), "[::1]:9797");
    assert_eq!(address_of(" 10.0.0.5:9797 ").unwrap().to_string(), "10.0.0.5:9797");
    for bad in ["off", "9797", "127.0.0.1", "127.0.0.1:x"] {
        assert!(address_of(bad).is_err(), "{bad}");
    }
}
