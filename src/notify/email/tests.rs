use std::sync::{Arc, Mutex};

use lettre::transport::smtp::client::TlsParameters;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::server::{MailSecurity, TlsTrust};
use super::*;
use crate::KeyProblem;
use crate::samples::{delivery_config, due, hostile, moved, resolved, time, unlock};
use model::config::{self, SecretText, Span};

/// What the scripted server does at one point.
#[derive(Clone, Copy, Debug)]
enum Act {
    /// Says this.
    Say(&'static str),
    /// Says nothing, ever.
    Hang,
    /// Closes the connection.
    Drop,
}

/// A mail server that does as it is told. Points: `greeting`, the verb of each command, `.` after the mail; for recipients also
/// `RCPT <address>`.
#[derive(Clone, Default)]
struct Script(Vec<(&'static str, Act)>);

impl Script {
    fn at(&self, point: &str) -> Option<Act> {
        self.0.iter().find(|(at, _)| *at == point).map(|(_, act)| *act)
    }
}

/// What clients said: all commands, and the mails that were accepted.
#[derive(Clone, Debug, Default)]
struct Heard {
    commands: Vec<String>,
    mails: Vec<String>,
}

async fn server(script: Script) -> (String, Arc<Mutex<Heard>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let heard = Arc::new(Mutex::new(Heard::default()));
    let log = heard.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, script.clone(), log.clone()));
        }
    });
    (format!("smtp://{address}"), heard)
}

async fn serve(socket: tokio::net::TcpStream, script: Script, log: Arc<Mutex<Heard>>) {
    let mut socket = BufReader::new(socket);
    let mut act = script.at("greeting").unwrap_or(Act::Say("220 ready"));
    let mut in_mail = false;
    let mut mail = String::new();
    loop {
        match act {
            Act::Say(text) => {
                if socket.write_all(format!("{text}\r\n").as_bytes()).await.is_err() {
                    return;
                }
                in_mail = text.starts_with("354");
            }
            Act::Hang => std::future::pending::<()>().await,
            Act::Drop => return,
        }
        loop {
            let mut line = String::new();
            let Ok(1..) = socket.read_line(&mut line).await else { return };
            let text = line.trim_end().to_owned();
            if in_mail && text != "." {
                mail.push_str(&line);
                continue;
            }
            let verb = if in_mail { "." } else { text.split([' ', ':']).next().unwrap_or_default() }.to_uppercase();
            log.lock().expect("a lock").commands.push(text.clone());
            let standard = match verb.as_str() {
                "EHLO" => "250-mail.example.com\r\n250-8BITMIME\r\n250 AUTH PLAIN LOGIN",
                "DATA" => "354 go ahead",
                "AUTH" => "235 welcome",
                "." => "250 2.0.0 queued as 12345",
                "QUIT" => "221 bye",
                _ => "250 ok",
            };
            let of_recipient =
                script.0.iter().find(|(at, _)| at.strip_prefix("RCPT ").is_some_and(|to| verb == "RCPT" && text.contains(to)));
            act = of_recipient.map(|(_, act)| *act).or_else(|| script.at(&verb)).unwrap_or(Act::Say(standard));
            if in_mail {
                in_mail = false;
                if matches!(act, Act::Say(text) if text.starts_with("250")) {
                    log.lock().expect("a lock").mails.push(std::mem::take(&mut mail));
                }
            }
            break;
        }
    }
}

fn receiver(smtp: &str) -> config::ReceiverSettings {
    config::ReceiverSettings {
        name: "desk".into(),
        kind: config::ReceiverKind::Email,
        smtp: Some(smtp.to_owned()),
        from: Some("Cliffwatch <alerts@example.com>".into()),
        to: vec!["Desk <desk@example.com>".into(), "risk@example.com".into()],
        ..Default::default()
    }
}

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(20);

fn build(receiver: &config::ReceiverSettings) -> Result<EmailReceiver, Vec<KeyProblem>> {
    build_with(receiver, TIMEOUT)
}

fn build_with(receiver: &config::ReceiverSettings, timeout: Duration) -> Result<EmailReceiver, Vec<KeyProblem>> {
    let delivery = config::DeliverySettings { timeout: Span(timeout), ..delivery_config() };
    let mut problems = Vec::new();
    EmailReceiver::build(receiver, &delivery, Some("https://cliffwatch.example.com"), &mut problems).ok_or(problems)
}

const NOW: &str = "2026-03-09T13:00:05Z";

async fn send(script: Script, tries: u32) -> (SendResult, Heard) {
    // Only a server that hangs is worth no long wait.
    let hangs = script.0.iter().any(|(_, act)| matches!(act, Act::Hang));
    let (smtp, heard) = server(script).await;
    let timeout = if hangs { Duration::from_secs(2) } else { TIMEOUT };
    let email = build_with(&receiver(&smtp), timeout).expect("it is well configured");
    let delivery = DueDelivery { tries, ..due(1, "desk", vec![unlock()]) };
    let answer = email.send(&delivery, time(NOW), None).await;
    let heard = heard.lock().expect("a lock").clone();
    (answer, heard)
}

#[tokio::test]
async fn an_accepted_mail_is_accepted_by_code_250_after_the_dot() {
    let (answer, heard) = send(Script::default(), 0).await;
    assert_eq!(
        answer,
        SendResult {
            outcome: Outcome::Accepted,
            status: Some(250),
            text: "250 2.0.0 queued as 12345; taken for: desk@example.com, risk@example.com".into()
        }
    );
    assert_eq!(heard.mails.len(), 1);
    assert!(heard.commands.contains(&"MAIL FROM:<alerts@example.com>".to_owned()), "{:?}", heard.commands);
    assert!(heard.commands.contains(&"RCPT TO:<risk@example.com>".to_owned()), "{:?}", heard.commands);
}

#[tokio::test]
async fn every_fault_of_a_server_has_its_outcome() {
    use Act::{Drop, Hang, Say};
    let later = Outcome::LATER;
    let mut hanging = tokio::task::JoinSet::new();
    for (point, act, outcome, status) in [
        ("greeting", Hang, later.clone(), None),
        ("greeting", Drop, later.clone(), None),
        ("greeting", Say("hello there"), later.clone(), None),
        ("greeting", Say("421 4.3.2 too busy"), later.clone(), Some(421)),
        ("greeting", Say("554 5.3.2 no mail here"), Outcome::Refused, Some(554)),
        ("EHLO", Hang, later.clone(), None),
        ("EHLO", Say("502 what"), Outcome::Refused, Some(502)),
        ("MAIL", Say("451 4.3.0 later"), later.clone(), Some(451)),
        ("MAIL", Say("550 5.7.1 not you"), Outcome::Refused, Some(550)),
        ("MAIL", Drop, later.clone(), None),
        ("RCPT", Say("450 4.2.1 grey"), later.clone(), Some(450)),
        ("RCPT", Say("550 5.1.1 nobody"), Outcome::Refused, Some(550)),
        ("RCPT", Hang, later.clone(), None),
        ("DATA", Hang, later.clone(), None),
        ("DATA", Say("452 4.3.1 full"), later.clone(), Some(452)),
        ("DATA", Say("554 5.5.1 no valid recipients"), Outcome::Refused, Some(554)),
        (".", Say("451 4.3.0 try again"), later, Some(451)),
        (".", Say("554 5.7.1 spam"), Outcome::Refused, Some(554)),
        (".", Say("252 who knows"), Outcome::Uncertain, None),
        (".", Say("nonsense"), Outcome::Uncertain, None),
        (".", Drop, Outcome::Uncertain, None),
        (".", Hang, Outcome::Uncertain, None),
    ] {
        let case = async move {
            let (answer, heard) = send(Script(vec![(point, act)]), 0).await;
            assert_eq!((answer.outcome, answer.status), (outcome, status), "{point} {act:?}: {}", answer.text);
            assert!(!answer.text.is_empty());
            assert!(heard.mails.is_empty(), "{point} {act:?}");
        };
        match act {
            // Waited for together.
            Hang => drop(hanging.spawn(case)),
            Say(_) | Drop => case.await,
        }
    }
    while let Some(ended) = hanging.join_next().await {
        ended.expect("the outcome is as expected");
    }
}

#[tokio::test]
async fn an_uncertain_mail_is_sent_again_under_the_same_id() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let delivery = due(1, "desk", vec![unlock()]);
    email.send(&delivery, time(NOW), None).await;
    email.send(&DueDelivery { attempts: 1, tries: 1, ..delivery }, time("2026-03-09T14:00:05Z"), None).await;
    let end = due(2, "desk", vec![resolved()]);
    email.send(&end, time("2026-03-16T13:00:05Z"), None).await;
    let mails = heard.lock().expect("a lock").mails.clone();
    let header = |mail: &str, name: &str| mail.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert_eq!(header(&mails[0], "Message-ID: "), "Message-ID: <msg_0001@cliffwatch.example.com>");
    assert_eq!(header(&mails[1], "Message-ID: "), header(&mails[0], "Message-ID: "));
    assert_ne!(header(&mails[2], "Message-ID: "), header(&mails[0], "Message-ID: "));
    // One thread for all that is told of the event, from the first message to the end.
    assert!(header(&mails[0], "References: ").starts_with("References: <ev_"));
    assert_eq!(header(&mails[2], "References: "), header(&mails[0], "References: "));
    assert_eq!(header(&mails[0], "Auto-Submitted: "), "Auto-Submitted: auto-generated");
    assert_eq!(header(&mails[0], "List-Id: "), "List-Id: <desk.cliffwatch.example.com>");
    assert_eq!(header(&mails[0], "Date: "), "Date: Mon, 09 Mar 2026 13:00:05 +0000");
    assert!(mails[0].contains("multipart/alternative"));
}

#[tokio::test]
async fn one_refused_recipient_does_not_keep_the_mail_from_the_others() {
    let (answer, heard) = send(Script(vec![("RCPT risk@", Act::Say("550 5.1.1 no such user"))]), 0).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Accepted, Some(250)));
    assert!(
        answer.text.contains("not delivered to: risk@example.com") && answer.text.contains("no such user"),
        "{}",
        answer.text
    );
    assert_eq!(heard.mails.len(), 1);
}

#[tokio::test]
async fn a_recipient_who_is_refused_for_the_moment_is_waited_for_but_not_for_ever() {
    let script = Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))]);
    let (answer, heard) = send(script.clone(), 0).await;
    assert_eq!(answer.outcome, Outcome::LATER, "{}", answer.text);
    assert!(heard.mails.is_empty(), "nobody got it yet, so nobody will get it twice");
    let (answer, heard) = send(script, PATIENT_TRIES).await;
    assert_eq!(answer.outcome, Outcome::Accepted);
    assert!(answer.text.contains("risk@example.com"), "{}", answer.text);
    assert_eq!(heard.mails.len(), 1);
}

#[tokio::test]
async fn a_password_is_never_in_what_is_recorded() {
    let (smtp, heard) = server(Script(vec![(
        "AUTH",
        Act::Say("535 5.7.8 you said AGFsZXJ0cwBodW50ZXIyLWh1bnRlcjI= that is hunter2-hunter2, aHVudGVyMi1odW50ZXIy"),
    )]))
    .await;
    let receiver = config::ReceiverSettings {
        username: Some("alerts".into()),
        password: Some(SecretText::from("hunter2-hunter2".to_owned())),
        ..receiver(&smtp)
    };
    let email = build(&receiver).expect("it is well configured");
    let answer = email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!((answer.outcome, answer.status), (Outcome::Refused, Some(535)));
    let shown = format!("{} {email:?}", answer.text);
    for secret in ["hunter2", "aHVudGVyMi1odW50ZXIy", "AGFsZXJ0cwBodW50ZXIyLWh1bnRlcjI"] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
    assert!(heard.lock().expect("a lock").commands.iter().any(|command| command.starts_with("AUTH PLAIN")));
}

#[tokio::test]
async fn a_hostile_name_adds_no_header_and_no_recipient() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let answer = email.send(&due(1, "desk", vec![hostile(), moved()]), time(NOW), None).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{}", answer.text);
    let heard = heard.lock().expect("a lock").clone();
    let head = heard.mails[0].split("\r\n\r\n").next().unwrap_or_default().to_owned();
    assert!(!head.to_lowercase().lines().any(|line| line.starts_with("bcc")), "{head}");
    assert_eq!(heard.commands.iter().filter(|command| command.starts_with("RCPT")).count(), 2);
}

#[tokio::test]
async fn nothing_is_said_in_plain_text_over_a_network() {
    // A name that is not loopback needs STARTTLS; here the server is reached through its config, so that the check of the offer runs.
    let (smtp, heard) = server(Script::default()).await;
    let mut email = build(&receiver(&smtp)).expect("it is well configured");
    let tls = TlsParameters::new("mail.example.com".into()).expect("TLS");
    email.server.security = MailSecurity::StartTls(TlsTrust::verified(tls));
    let answer = email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(answer.outcome, Outcome::LATER);
    assert!(answer.text.contains("offers no STARTTLS"), "{}", answer.text);
    assert!(!heard.lock().expect("a lock").commands.iter().any(|command| command.starts_with("MAIL")));

    let security = |text: &str| {
        MailServer::parse(text, None, None).map(|server| (format!("{:?}", server.security), server.host, server.port))
    };
    let expected = |security: &str, host: &str, port: u16| Ok((security.to_owned(), host.to_owned(), port));
    assert_eq!(security("smtp://mail.example.com"), expected("StartTls", "mail.example.com", 587));
    assert_eq!(security("smtp://10.0.0.1:25"), expected("StartTls", "10.0.0.1", 25));
    assert_eq!(security("smtps://mail.example.com"), expected("Implicit", "mail.example.com", 465));
    assert_eq!(security("smtp://127.0.0.1:2525"), expected("Plain", "127.0.0.1", 2525));
    assert_eq!(security("smtp://localhost:25/"), expected("Plain", "localhost", 25));
    assert_eq!(security("smtp://[::1]:25"), expected("Plain", "::1", 25));
}

#[test]
fn a_wrong_config_is_answered_with_every_problem() {
    let wrong = config::ReceiverSettings {
        from: Some("Cliff\r\nwatch <alerts@example.com>".into()),
        to: vec!["desk".into(), "jürgen@example.com".into(), "desk@exämple.com".into()],
        username: Some("alerts".into()),
        ..receiver("http://mail.example.com")
    };
    let problems = build(&wrong).expect_err("it is wrong");
    let keys: Vec<&str> = problems.iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["smtp", "password", "from", "to", "to", "to"]);
    assert!(problems[4].message.contains("ASCII"), "{}", problems[4].message);
    let nothing = config::ReceiverSettings { name: "desk".into(), kind: config::ReceiverKind::Email, ..Default::default() };
    let keys: Vec<&str> = build(&nothing).expect_err("it is empty").iter().map(|problem| problem.key).collect();
    assert_eq!(keys, ["smtp", "from", "to"]);
    for smtp in [
        "smtp://",
        "mail.example.com",
        "mail.example.com:587",
        "smtp://user:s3cr3t@mail.example.com",
        "smtp://mail.example.com/x",
    ] {
        let problems = build(&receiver(smtp)).expect_err(smtp);
        assert_eq!(problems[0].key, "smtp", "{smtp}");
        assert!(!problems[0].message.contains("s3cr3t"));
    }
    let mut no_file = receiver("smtps://mail.example.com");
    no_file.tls_ca_file = Some("/does/not/exist.pem".into());
    assert_eq!(build(&no_file).expect_err("no file")[0].key, "tls_ca_file");
}

#[tokio::test]
async fn a_connection_serves_several_mails_and_a_dead_one_costs_nothing() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let count = |verb: &str| heard.lock().expect("a lock").commands.iter().filter(|said| said.starts_with(verb)).count();
    for id in 1..=3 {
        let answer = email.send(&due(id, "desk", vec![unlock()]), time(NOW), None).await;
        assert_eq!(answer.outcome, Outcome::Accepted, "{}", answer.text);
    }
    assert_eq!((count("EHLO"), count("MAIL")), (1, 3));
    // Another password is another login.
    assert!(email.pool.take(&Some(("alerts".into(), "other".into()))).is_none());
    // A server that ends a connection while it waits: the next mail takes a new one, and is lost by no means.
    let (smtp, heard) = server(Script(vec![("QUIT", Act::Drop)])).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    let mut open = email.pool.take(&None).expect("it waits");
    open.connection.quit().await.expect_err("the server drops it");
    email.pool.keep(open);
    let answer = email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{}", answer.text);
    assert_eq!(heard.lock().expect("a lock").mails.len(), 2);
}

#[tokio::test]
async fn the_picture_of_the_schedule_is_part_of_the_mail() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    let mail = heard.lock().expect("a lock").mails[0].clone();
    assert!(mail.contains("multipart/alternative") && mail.contains("multipart/related"), "{mail}");
    assert!(mail.contains("Content-ID: <schedule-1>") && mail.contains("Content-Type: image/png"), "{mail}");
    assert!(mail.contains("cid:schedule-1"), "{mail}");
}

#[tokio::test]
async fn a_digest_says_how_to_be_rid_of_it_and_an_alert_does_not() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    email.send(&due(1, "desk", vec![crate::samples::digest()]), time(NOW), None).await;
    email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    let mails = heard.lock().expect("a lock").mails.clone();
    assert!(mails[0].contains("List-Unsubscribe: <mailto:alerts@example.com?subject=unsubscribe%20desk>\r\n"), "{}", mails[0]);
    assert!(!mails[1].contains("List-Unsubscribe"));
}

fn consent(opted_out: &[&str]) -> DigestConsent {
    let opted_out = opted_out.iter().map(|address| (*address).to_owned()).collect();
    DigestConsent { key: model::rows::LinkKey::new([7; 32]), opted_out }
}

fn header(mail: &str, name: &str) -> String {
    let unfolded = mail.replace("\r\n ", " ");
    let begin = format!("{name}: ");
    unfolded.lines().find_map(|line| line.strip_prefix(&begin)).unwrap_or_default().trim().to_owned()
}

#[tokio::test]
async fn each_recipient_of_a_digest_has_a_link_of_their_own() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let digest = due(1, "desk", vec![crate::samples::digest()]);
    let answer = email.send(&digest, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{}", answer.text);
    assert!(answer.text.ends_with("taken for: desk@example.com, risk@example.com"), "{}", answer.text);
    let heard = heard.lock().expect("a lock").clone();
    assert_eq!(heard.mails.len(), 2);
    assert_eq!(heard.commands.iter().filter(|said| said.starts_with("EHLO")).count(), 1, "one connection");
    let all = |name| heard.mails.iter().map(|mail| header(mail, name)).collect::<Vec<_>>();
    let (links, ids) = (all("List-Unsubscribe"), all("Message-ID"));
    assert!(links[0].starts_with("<https://cliffwatch.example.com/unsubscribe/"), "{links:?}");
    assert!(links[0].ends_with(">, <mailto:alerts@example.com?subject=unsubscribe%20desk>"), "{links:?}");
    assert_ne!(links[0], links[1]);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(all("List-Unsubscribe-Post"), ["List-Unsubscribe=One-Click"; 2]);
    assert!(all("To")[0].contains("desk@example.com") && !all("To")[0].contains("risk@example.com"));
    assert!(heard.mails[0].contains("To stop these digests: https://"), "{}", heard.mails[0]);
}

#[tokio::test]
async fn who_stopped_a_digest_gets_none_and_gets_every_alert() {
    let (smtp, heard) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let digest = due(1, "desk", vec![crate::samples::digest()]);
    let recipients = || {
        let heard = std::mem::take(&mut *heard.lock().expect("a lock"));
        heard.commands.into_iter().filter(|said| said.starts_with("RCPT")).collect::<Vec<_>>()
    };
    email.send(&digest, time(NOW), Some(&consent(&["desk@example.com"]))).await;
    assert_eq!(recipients(), ["RCPT TO:<risk@example.com>"]);
    let answer = email.send(&digest, time(NOW), Some(&consent(&["desk@example.com", "risk@example.com"]))).await;
    assert_eq!((answer.outcome, recipients().len()), (Outcome::Accepted, 0));
    assert!(answer.text.starts_with("sent to nobody"), "{}", answer.text);
    email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(recipients().len(), 2);
}

#[tokio::test]
async fn who_has_a_digest_does_not_get_it_again_while_another_is_waited_for() {
    let (smtp, heard) = server(Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))])).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let digest = due(1, "desk", vec![crate::samples::digest()]);
    let answer = email.send(&digest, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(answer.outcome, Outcome::LATER, "{}", answer.text);
    assert!(answer.text.contains("taken for: desk@example.com") && answer.text.contains("mailbox full"), "{}", answer.text);
    let patient = DueDelivery { tries: PATIENT_TRIES, ..digest };
    let answer = email.send(&patient, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(answer.outcome, Outcome::Accepted, "{}", answer.text);
    assert!(answer.text.contains("not delivered to: risk@example.com"), "{}", answer.text);
    assert_eq!(heard.lock().expect("a lock").mails.len(), 1, "once");
    // A login that fails is tried once, not once for each.
    let (smtp, heard) = server(Script(vec![("MAIL", Act::Say("530 5.7.0 log in first"))])).await;
    let email = build(&receiver(&smtp)).expect("it is well configured");
    let answer = email.send(&due(2, "desk", vec![crate::samples::digest()]), time(NOW), Some(&consent(&[]))).await;
    assert_eq!(answer.outcome, Outcome::Refused, "{}", answer.text);
    assert_eq!(heard.lock().expect("a lock").commands.iter().filter(|said| said.starts_with("MAIL")).count(), 1);
}
