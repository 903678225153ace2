use std::net::TcpListener;

use super::*;

/// What listens and answers each question with one text.
fn answering(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut question = [0; 1024];
            let length = stream.read(&mut question).unwrap();
            assert!(question[..length].starts_with(b"GET /-/healthy HTTP/1.1\r\nHost: localhost\r\n"));
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    address
}

fn checked(address: String) -> anyhow::Result<Exit> {
    let invocation = Invocation {
        config: None,
        format: super::super::OutputFormat::Table,
        color: false,
        verbose: 0,
        clock: model::Clock::system(),
    };
    run(&HealthcheckArgs { address: Some(address) }, &invocation)
}

#[test]
fn only_200_is_well() {
    assert_eq!(checked(answering("HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nok\n")).unwrap(), Exit::Done);
    assert_eq!(checked(answering("HTTP/1.1 503 Service Unavailable\r\n\r\nno")).unwrap(), Exit::Failed);
}

#[test]
fn nobody_there_and_somebody_else_are_errors() {
    // Held, so that nobody else comes to listen there.
    let held = tokio::net::TcpSocket::new_v4().unwrap();
    held.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    assert!(checked(held.local_addr().unwrap().to_string()).unwrap_err().to_string().contains("no answer of http://127.0.0.1:"));
    for answer in ["", "SSH-2.0-x\r\n", "HTTP/1.1 \r\n\r\n", "HTTP/1.1 many\r\n\r\n"] {
        assert!(checked(answering(answer)).unwrap_err().to_string().contains("no answer of HTTP"), "{answer:?}");
    }
}

#[test]
fn who_takes_the_question_and_says_nothing_is_not_waited_for() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = checked(silent.local_addr().unwrap().to_string()).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "nothing came within 3 seconds");
}

#[test]
fn what_listens_everywhere_is_asked_on_loopback() {
    assert_eq!(address_of("0.0.0.0:9797").unwrap().to_string(), "127.0.0.1:9797");
    assert_eq!(address_of("[::]:9797").unwrap().to_string(), "[::1]:9797");
    assert_eq!(address_of(" 10.0.0.5:9797 ").unwrap().to_string(), "10.0.0.5:9797");
    for bad in ["off", "9797", "127.0.0.1", "127.0.0.1:x"] {
        assert!(address_of(bad).is_err(), "{bad}");
    }
}
