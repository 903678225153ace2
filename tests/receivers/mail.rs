//! A mail server with STARTTLS and logins takes our mail, and a reader of mail finds in it what belongs there.

use std::{path::Path, process::Command};

use cliffwatch::{
    model::rows::DueDelivery,
    notify::{Outcome, Receivers},
};
use serde_json::Value;

use crate::outside::{self, Outside, due, parsed, receivers, resolved, send, unlock};

const PASSWORD: &str = "correct horse, ünïcode battery";

/// A certificate of an authority of our own for `localhost`.
fn certificate(folder: &Path) {
    let openssl = outside::program("openssl");
    let run = |arguments: &[&str]| {
        let output = Command::new(&openssl).current_dir(folder).args(arguments).output().expect("openssl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    std::fs::write(
        folder.join("server.ext"),
        "subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n",
    )
    .expect("written");
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    run(&[&["req", "-x509"], &key[..], &["-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=Test authority"]]
        .concat());
    run(&[&["req"], &key[..], &["-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost"]].concat());
    run(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-out",
        "server.pem",
        "-days",
        "2",
        "-extfile",
        "server.ext",
    ]);
}

fn server(folder: &Path) -> (Outside, u16) {
    certificate(folder);
    let child = Outside::start(
        Command::new(outside::python())
            .arg(outside::script("smtpd.py"))
            .args([folder.join("server.pem"), folder.join("server.key")])
            .args(["alerts", PASSWORD]),
    );
    let port = child.line().parse().expect("a port");
    (child, port)
}

fn mailbox(folder: &Path, port: u16, password: &str, to: &str) -> Receivers {
    std::fs::write(folder.join("password"), password).expect("written");
    receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"email\"\nsmtp = \"smtp://localhost:{port}\"\nusername = \"alerts\"\n\
         password_file = \"{0}/password\"\ntls_ca_file = \"{0}/ca.pem\"\nfrom = \"Cliffwatch <alerts@example.com>\"\nto = {to}\n",
        folder.display()
    ))
}

fn part<'a>(mail: &'a Value, kind: &str) -> &'a Value {
    let parts = mail["parts"].as_array().expect("parts");
    parts.iter().find(|part| part["type"] == kind).unwrap_or_else(|| panic!("no {kind} in {mail}"))
}

#[tokio::test]
async fn a_server_with_starttls_and_login_takes_mail_that_a_reader_understands() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (server, port) = server(folder.path());
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"Desk <desk@example.com>\", \"risk@example.com\"]");
    let firing = unlock("aptos", 7);
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![firing.clone()])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(250)), "{}", attempt.answer);
    assert!(attempt.answer.contains("taken for: desk@example.com, risk@example.com"), "{}", attempt.answer);

    let mail = parsed(&server.line());
    assert_eq!((&mail["tls"], &mail["authenticated"]), (&Value::from(true), &Value::from(true)));
    assert_eq!(mail["defects"], serde_json::json!([]));
    assert!(mail["longest"].as_u64().is_some_and(|longest| longest <= 998), "{}", mail["longest"]);
    let headers = &mail["headers"];
    let subject = headers["subject"].as_str().expect("a subject");
    assert!(subject.starts_with("APTOS: $33.15M (2.77%) unlocks on ") && subject.ends_with(" · in 7 days"), "{subject}");
    assert_eq!(headers["message-id"], "<msg_1@cliffwatch.example.com>");
    assert_eq!(headers["auto-submitted"], "auto-generated");
    assert_eq!(headers["list-id"], "<ops.cliffwatch.example.com>");
    let text = part(&mail, "text/plain")["text"].as_str().expect("text");
    assert!(text.contains("Prüfe die Absicherung – до пятницы. 🚨"), "{text}");
    let html = part(&mail, "text/html")["text"].as_str().expect("text");
    assert!(html.contains("Prüfe die Absicherung – до пятницы. 🚨") && html.contains("cid:schedule-1"), "{html}");
    let picture = part(&mail, "image/png");
    assert_eq!((&picture["cid"], &picture["begin"]), (&Value::from("<schedule-1>"), &Value::from("89504e470d0a1a0a")));

    // The end of it belongs to the same thread, and goes over the same connection.
    let (outcome, attempt) = send(&ours, &due("msg_2", vec![resolved(&firing)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    let end = parsed(&server.line());
    assert_eq!(end["headers"]["references"], headers["references"]);
    assert_ne!(end["headers"]["message-id"], headers["message-id"]);
    assert!(end["headers"]["subject"].as_str().is_some_and(|subject| subject.starts_with("[Resolved] APTOS")));
    assert_eq!(end["session"], mail["session"]);
}

#[tokio::test]
async fn each_recipient_has_a_result_and_a_wrong_password_is_said_plainly() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (server, port) = server(folder.path());
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\", \"nobody@example.com\"]");
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert!(
        attempt.answer.contains("taken for: desk@example.com")
            && attempt.answer.contains("not delivered to: nobody@example.com")
            && attempt.answer.contains("no such user"),
        "{}",
        attempt.answer
    );
    assert_eq!(parsed(&server.line())["recipients"], serde_json::json!(["desk@example.com"]));

    // One whose box is full is waited for, then left behind and named.
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\", \"later@example.com\"]");
    let delivery = due("msg_2", vec![unlock("aptos", 7)]);
    let (outcome, attempt) = send(&ours, &delivery).await;
    assert_eq!(outcome, Outcome::LATER, "{}", attempt.answer);
    let (outcome, attempt) = send(&ours, &DueDelivery { tries: 10, ..delivery }).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert!(attempt.answer.contains("not delivered to: later@example.com"), "{}", attempt.answer);

    let wrong = mailbox(folder.path(), port, "wrong password", "[\"desk@example.com\"]");
    let (outcome, attempt) = send(&wrong, &due("msg_3", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(535)), "{}", attempt.answer);
    assert!(!attempt.answer.contains("wrong password"), "{}", attempt.answer);
}

#[tokio::test]
async fn a_certificate_of_nobody_known_gets_no_mail_and_no_password() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, port) = server(folder.path());
    let elsewhere = tempfile::tempdir().expect("a folder");
    certificate(elsewhere.path());
    let ours = mailbox(elsewhere.path(), port, PASSWORD, "[\"desk@example.com\"]");
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::LATER, None), "{}", attempt.answer);
    assert!(attempt.answer.to_lowercase().contains("certificate"), "{}", attempt.answer);
}

/// A certificate that the server made and signed itself, as the usual one-liner makes it; `more` goes behind it.
fn self_signed(folder: &Path, more: &[&str]) {
    let openssl = outside::program("openssl");
    let plain = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.pem", "-days", "2"];
    let output = Command::new(&openssl).current_dir(folder).args(plain).args(more).output().expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::copy(folder.join("server.pem"), folder.join("ca.pem")).expect("copied");
}

#[tokio::test]
async fn a_certificate_that_a_server_signed_itself_is_taken_where_it_is_named() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    for (what, more) in [
        ("as `openssl req -x509` makes it: one that may sign others, without an alternative name", &names[..2]),
        ("one that may sign others", &names[..]),
        ("one that may sign nothing", &[&names[..], &["-addext", "basicConstraints=critical,CA:FALSE"]].concat()[..]),
        ("one of another name", &["-subj", "/CN=mail.elsewhere.example"][..]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        self_signed(folder.path(), more);
        let child = Outside::start(
            Command::new(outside::python())
                .arg(outside::script("smtpd.py"))
                .args([folder.path().join("server.pem"), folder.path().join("server.key")])
                .args(["alerts", PASSWORD]),
        );
        let port: u16 = child.line().parse().expect("a port");
        let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\"]");
        let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(250)), "{what}: {}", attempt.answer);
        let mail = parsed(&child.line());
        assert_eq!((&mail["tls"], &mail["authenticated"]), (&Value::from(true), &Value::from(true)), "{what}");

        // Another one of the same name, made elsewhere, is nobody's.
        let elsewhere = tempfile::tempdir().expect("a folder");
        self_signed(elsewhere.path(), more);
        let theirs = mailbox(elsewhere.path(), port, PASSWORD, "[\"desk@example.com\"]");
        let (outcome, attempt) = send(&theirs, &due("msg_2", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::LATER, None), "{what}: {}", attempt.answer);
        assert!(attempt.answer.to_lowercase().contains("certificate"), "{what}: {}", attempt.answer);
    }
}
