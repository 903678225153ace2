//! A mail server with STARTTLS and logins accepts our mail, and a mail library parses it.

use std::{path::Path, process::Command};

use cliffwatch::{
    model::rows::DueDelivery,
    notify::{Outcome, Receivers},
};
use serde_json::Value;

use crate::receivers::outside::{self, ExternalProgram, due, parsed, receivers, resolved, send, unlock};

const PASSWORD: &str = "correct horse, ünïcode battery";

/// Creates a certificate for `localhost`, signed by a test authority.
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

fn server(folder: &Path) -> (ExternalProgram, u16) {
    certificate(folder);
    let child = ExternalProgram::start(
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
async fn server_with_starttls_and_login_accepts_valid_mail() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (server, port) = server(folder.path());
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"Desk <desk@example.com>\", \"risk@example.com\"]");
    let firing = unlock("aptos", 7);
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![firing.clone()])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(250)), "{}", attempt.response);
    assert!(attempt.response.contains("accepted for: desk@example.com, risk@example.com"), "{}", attempt.response);

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

    // The resolution belongs to the same thread and uses the same connection.
    let (outcome, attempt) = send(&ours, &due("msg_2", vec![resolved(&firing)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    let end = parsed(&server.line());
    assert_eq!(end["headers"]["references"], headers["references"]);
    assert_ne!(end["headers"]["message-id"], headers["message-id"]);
    assert!(end["headers"]["subject"].as_str().is_some_and(|subject| subject.starts_with("[Resolved] APTOS")));
    assert_eq!(end["session"], mail["session"]);
}

#[tokio::test]
async fn each_recipient_has_a_result_and_a_wrong_password_is_reported() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (server, port) = server(folder.path());
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\", \"unknown@example.com\"]");
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert!(matches!(outcome, Outcome::AcceptedExcept { .. }), "{outcome:?} {}", attempt.response);
    assert!(
        attempt.response.contains("accepted for: desk@example.com")
            && attempt.response.contains("not delivered to: unknown@example.com")
            && attempt.response.contains("no such user"),
        "{}",
        attempt.response
    );
    assert_eq!(parsed(&server.line())["recipients"], serde_json::json!(["desk@example.com"]));

    // A temporary failure of one recipient does not delay the mail for the others. The last attempt reports it.
    let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\", \"later@example.com\"]");
    let delivery = due("msg_2", vec![unlock("aptos", 7)]);
    let (outcome, attempt) = send(&ours, &delivery).await;
    assert_eq!(outcome, Outcome::Partly, "{}", attempt.response);
    assert_eq!(parsed(&server.line())["recipients"], serde_json::json!(["desk@example.com"]));
    let (outcome, attempt) = send(&ours, &DueDelivery { tries: 10, ..delivery }).await;
    assert!(matches!(outcome, Outcome::AcceptedExcept { .. }), "{outcome:?} {}", attempt.response);
    assert!(attempt.response.contains("later@example.com"), "{}", attempt.response);

    let wrong = mailbox(folder.path(), port, "wrong password", "[\"desk@example.com\"]");
    let (outcome, attempt) = send(&wrong, &due("msg_3", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(535)), "{}", attempt.response);
    assert!(!attempt.response.contains("wrong password"), "{}", attempt.response);
}

#[tokio::test]
async fn unknown_certificate_gets_no_mail_and_no_password() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (_server, port) = server(folder.path());
    let elsewhere = tempfile::tempdir().expect("a folder");
    certificate(elsewhere.path());
    let ours = mailbox(elsewhere.path(), port, PASSWORD, "[\"desk@example.com\"]");
    let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::LATER, None), "{}", attempt.response);
    assert!(attempt.response.to_lowercase().contains("certificate"), "{}", attempt.response);
}

/// Creates a self-signed certificate with additional openssl arguments.
fn self_signed(folder: &Path, more: &[&str]) {
    let openssl = outside::program("openssl");
    let plain = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "server.key", "-out", "server.pem", "-days", "2"];
    let output = Command::new(&openssl).current_dir(folder).args(plain).args(more).output().expect("openssl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::copy(folder.join("server.pem"), folder.join("ca.pem")).expect("copied");
}

#[tokio::test]
async fn configured_self_signed_certificate_is_accepted() {
    if outside::lacks_python("aiosmtpd") || outside::lacks_program("openssl", "openssl") {
        return;
    }
    let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
    for (what, more) in [
        ("a CA certificate without an alternative name, the default of `openssl req -x509`", &names[..2]),
        ("a CA certificate", &names[..]),
        ("not a CA certificate", &[&names[..], &["-addext", "basicConstraints=critical,CA:FALSE"]].concat()[..]),
        ("another name", &["-subj", "/CN=mail.elsewhere.example"][..]),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        self_signed(folder.path(), more);
        let child = ExternalProgram::start(
            Command::new(outside::python())
                .arg(outside::script("smtpd.py"))
                .args([folder.path().join("server.pem"), folder.path().join("server.key")])
                .args(["alerts", PASSWORD]),
        );
        let port: u16 = child.line().parse().expect("a port");
        let ours = mailbox(folder.path(), port, PASSWORD, "[\"desk@example.com\"]");
        let (outcome, attempt) = send(&ours, &due("msg_1", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(250)), "{what}: {}", attempt.response);
        let mail = parsed(&child.line());
        assert_eq!((&mail["tls"], &mail["authenticated"]), (&Value::from(true), &Value::from(true)), "{what}");

        // A different certificate with the same name is not accepted.
        let elsewhere = tempfile::tempdir().expect("a folder");
        self_signed(elsewhere.path(), more);
        let theirs = mailbox(elsewhere.path(), port, PASSWORD, "[\"desk@example.com\"]");
        let (outcome, attempt) = send(&theirs, &due("msg_2", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::LATER, None), "{what}: {}", attempt.response);
        assert!(attempt.response.to_lowercase().contains("certificate"), "{what}: {}", attempt.response);
    }
}
