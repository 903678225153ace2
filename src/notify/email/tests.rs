mod partial;

use std::sync::{Arc, Mutex};

use lettre::transport::smtp::client::TlsParameters;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;

use super::server::{MailSecurity, TlsTrust};
use super::*;
use crate::KeyProblem;
use model::config::{self, SecretText, Span};
use testkit::samples::{delivery_config, due, hostile, moved, resolved, unlock};
use testkit::time;

/// A step of the scripted server.
#[derive(Clone, Copy, Debug)]
enum Act {
    Say(&'static str),
    /// Replies after [`LATE`].
    SayLate(&'static str),
    /// Sends no reply and keeps the connection open.
    Hang,
    Drop,
}

/// The wait of a slow server, longer than [`SHORT_TIMEOUT`].
const LATE: Duration = Duration::from_millis(2_500);
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);

/// The steps of a scripted mail server, by point: `greeting`, the verb of each command, `.` after the mail, and `RCPT <address>`.
#[derive(Clone, Default)]
struct Script(Vec<(&'static str, Act)>);

impl Script {
    fn at(&self, point: &str) -> Option<Act> {
        self.0.iter().find(|(at, _)| *at == point).map(|(_, act)| *act)
    }
}

/// The received commands and the accepted mails.
#[derive(Clone, Debug, Default)]
struct SmtpLog {
    commands: Vec<String>,
    mails: Vec<String>,
}

async fn server(script: Script) -> (String, Arc<Mutex<SmtpLog>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Mutex::new(SmtpLog::default()));
    let log = seen.clone();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, script.clone(), log.clone()));
        }
    });
    (format!("smtp://{address}"), seen)
}

async fn serve(socket: tokio::net::TcpStream, script: Script, log: Arc<Mutex<SmtpLog>>) {
    let mut socket = BufReader::new(socket);
    let mut act = script.at("greeting").unwrap_or(Act::Say("220 ready"));
    let mut in_mail = false;
    let mut mail = String::new();
    loop {
        match act {
            Act::Say(text) | Act::SayLate(text) => {
                if matches!(act, Act::SayLate(_)) {
                    tokio::time::sleep(LATE).await;
                }
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
                if matches!(act, Act::Say(text) | Act::SayLate(text) if text.starts_with("250")) {
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

async fn send(script: Script, tries: u32) -> (SendResult, SmtpLog) {
    // Only a hanging server makes the test wait for the timeout.
    let hangs = script.0.iter().any(|(_, act)| matches!(act, Act::Hang));
    let (smtp, seen) = server(script).await;
    let timeout = if hangs { Duration::from_secs(2) } else { TIMEOUT };
    let mut email = build_with(&receiver(&smtp), timeout).expect("a valid receiver");
    email.reply_timeout = timeout;
    let delivery = DueDelivery { tries, ..due(1, "desk", vec![unlock()]) };
    let result = email.send(&delivery, time(NOW), None).await;
    let seen = seen.lock().expect("a lock").clone();
    (result, seen)
}

#[tokio::test]
async fn code_250_after_the_dot_accepts_the_mail() {
    let (result, seen) = send(Script::default(), 0).await;
    assert_eq!(
        result,
        SendResult {
            outcome: Outcome::Accepted,
            status: Some(250),
            text: "250 2.0.0 queued as 12345; accepted for: desk@example.com, risk@example.com".into()
        }
    );
    assert_eq!(seen.mails.len(), 1);
    assert!(seen.commands.contains(&"MAIL FROM:<alerts@example.com>".to_owned()), "{:?}", seen.commands);
    assert!(seen.commands.contains(&"RCPT TO:<risk@example.com>".to_owned()), "{:?}", seen.commands);
}

#[tokio::test]
async fn each_server_fault_has_an_outcome() {
    use Act::{Drop, Hang, Say, SayLate};
    let later = Outcome::LATER;
    let mut hanging = tokio::task::JoinSet::new();
    for (point, act, outcome, status) in [
        ("greeting", Hang, later.clone(), None),
        ("greeting", Drop, later.clone(), None),
        ("greeting", Say("hello there"), later.clone(), None),
        ("greeting", Say("421 4.3.2 too busy"), later.clone(), Some(421)),
        ("greeting", Say("554 5.3.2 no mail here"), Outcome::Refused, Some(554)),
        ("EHLO", Hang, later.clone(), None),
        ("EHLO", Say("502 unknown command"), Outcome::Refused, Some(502)),
        ("MAIL", Say("451 4.3.0 later"), later.clone(), Some(451)),
        ("MAIL", Say("550 5.7.1 not you"), Outcome::Refused, Some(550)),
        ("MAIL", Drop, later.clone(), None),
        ("RCPT", Say("450 4.2.1 grey"), later.clone(), Some(450)),
        ("RCPT", Say("550 5.1.1 no such user"), Outcome::Refused, Some(550)),
        ("RCPT", Hang, later.clone(), None),
        ("DATA", Hang, later.clone(), None),
        ("DATA", Say("452 4.3.1 full"), later.clone(), Some(452)),
        ("DATA", Say("554 5.5.1 no valid recipients"), Outcome::Refused, Some(554)),
        (".", Say("451 4.3.0 try again"), later, Some(451)),
        (".", Say("554 5.7.1 spam"), Outcome::Refused, Some(554)),
        (".", Say("252 cannot verify"), Outcome::Uncertain, None),
        (".", Say("nonsense"), Outcome::Uncertain, None),
        (".", Drop, Outcome::Uncertain, None),
        (".", Hang, Outcome::Uncertain, None),
    ] {
        let case = async move {
            let (result, seen) = send(Script(vec![(point, act)]), 0).await;
            assert_eq!((result.outcome, result.status), (outcome, status), "{point} {act:?}: {}", result.text);
            assert!(!result.text.is_empty());
            assert!(seen.mails.is_empty(), "{point} {act:?}");
        };
        match act {
            Hang => drop(hanging.spawn(case)),
            Say(_) | SayLate(_) | Drop => case.await,
        }
    }
    while let Some(ended) = hanging.join_next().await {
        ended.expect("the outcome is as expected");
    }
}

#[tokio::test]
async fn retry_keeps_message_id_and_thread() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let delivery = due(1, "desk", vec![unlock()]);
    email.send(&delivery, time(NOW), None).await;
    email.send(&DueDelivery { attempts: 1, tries: 1, ..delivery }, time("2026-03-09T14:00:05Z"), None).await;
    let end = due(2, "desk", vec![resolved()]);
    email.send(&end, time("2026-03-16T13:00:05Z"), None).await;
    let mails = seen.lock().expect("a lock").mails.clone();
    let header = |mail: &str, name: &str| mail.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert_eq!(header(&mails[0], "Message-ID: "), "Message-ID: <msg_0001@cliffwatch.example.com>");
    assert_eq!(header(&mails[1], "Message-ID: "), header(&mails[0], "Message-ID: "));
    assert_ne!(header(&mails[2], "Message-ID: "), header(&mails[0], "Message-ID: "));
    // All mails about an event form one thread.
    assert!(header(&mails[0], "References: ").starts_with("References: <ev_"));
    assert_eq!(header(&mails[2], "References: "), header(&mails[0], "References: "));
    assert_eq!(header(&mails[0], "Auto-Submitted: "), "Auto-Submitted: auto-generated");
    assert_eq!(header(&mails[0], "List-Id: "), "List-Id: <desk.cliffwatch.example.com>");
    assert_eq!(header(&mails[0], "Date: "), "Date: Mon, 09 Mar 2026 13:00:05 +0000");
    assert!(mails[0].contains("multipart/alternative"));
}

/// The recipients that do not get the mail, although others do.
fn rejected(outcome: &Outcome) -> Vec<&str> {
    match outcome {
        Outcome::AcceptedExcept { rejected } => rejected.iter().map(|recipient| recipient.address.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn rejected_recipient_does_not_affect_the_others() {
    let (result, seen) = send(Script(vec![("RCPT risk@", Act::Say("550 5.1.1 no such user"))]), 0).await;
    assert_eq!((rejected(&result.outcome), result.status), (vec!["risk@example.com"], Some(250)));
    assert!(
        result.text.contains("not delivered to: risk@example.com") && result.text.contains("no such user"),
        "{}",
        result.text
    );
    assert_eq!(seen.mails.len(), 1);
}

#[tokio::test]
async fn temporarily_rejected_recipient_does_not_delay_the_mail_for_others() {
    let (smtp, seen) = server(Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))])).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let mut outcomes = Vec::new();
    for tries in 0..=MAX_RETRIED_ATTEMPTS {
        let result = email.send(&DueDelivery { tries, ..due(1, "desk", vec![unlock()]) }, time(NOW), None).await;
        assert!(result.text.contains("risk@example.com"), "{}", result.text);
        outcomes.push(result.outcome);
    }
    let [before @ .., last] = outcomes.as_slice() else { panic!("attempts") };
    assert!(before.iter().all(|outcome| *outcome == Outcome::Partly), "{outcomes:?}");
    assert_eq!(rejected(last), ["risk@example.com"]);
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.mails.len(), 1, "the others have it once");
    let requested =
        |name: &str| seen.commands.iter().filter(|command| command.starts_with("RCPT") && command.contains(name)).count();
    assert_eq!((requested("desk@"), requested("risk@")), (1, outcomes.len()));
}

#[tokio::test]
async fn recipient_that_is_accepted_later_gets_the_same_mail() {
    let (smtp, seen) = server(Script(vec![("RCPT risk@", Act::Say("451 4.7.1 greylisted"))])).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let delivery = due(1, "desk", vec![unlock()]);
    assert_eq!(email.send(&delivery, time(NOW), None).await.outcome, Outcome::Partly);
    let (other, later) = server(Script::default()).await;
    let moved =
        EmailReceiver { server: build(&receiver(&other)).expect("valid").server, pool: pool::ConnectionPool::default(), ..email };
    let result = moved.send(&DueDelivery { tries: 1, ..delivery }, time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    let (first, second) = (seen.lock().expect("a lock").clone(), later.lock().expect("a lock").clone());
    let recipients =
        |log: &SmtpLog| log.commands.iter().filter(|command| command.starts_with("RCPT")).cloned().collect::<Vec<_>>();
    assert_eq!(recipients(&second).len(), 1, "{:?}", second.commands);
    let id = |mail: &str| mail.lines().find(|line| line.starts_with("Message-ID")).map(str::to_owned);
    assert_eq!(id(&first.mails[0]), id(&second.mails[0]), "one message for all");
}

#[tokio::test]
async fn last_attempt_does_not_wait_for_a_temporarily_rejected_recipient() {
    let (smtp, seen) = server(Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))])).await;
    let retry = vec![Span(Duration::ZERO), Span(Duration::from_secs(30)), Span(Duration::from_secs(300))];
    let delivery = config::DeliverySettings { retry, ..delivery_config() };
    let email = EmailReceiver::build(&receiver(&smtp), &delivery, None, &mut Vec::new()).expect("a valid receiver");
    let last = DueDelivery { tries: 2, ..due(1, "desk", vec![unlock()]) };
    let result = email.send(&last, time(NOW), None).await;
    assert_eq!(rejected(&result.outcome), ["risk@example.com"], "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 1);
}

#[tokio::test]
async fn encoded_word_from_the_source_is_not_decoded_in_the_subject() {
    let (smtp, seen) = server(Script::default()).await;
    let mut notice = unlock();
    notice.body.token.as_mut().expect("a token").symbol = "=?utf-8?q?=E2=80=AE?= X".into();
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    email.send(&due(1, "desk", vec![notice]), time(NOW), None).await;
    let mails = seen.lock().expect("a lock").mails.clone();
    let subject = mails[0].lines().find(|line| line.starts_with("Subject: ")).expect("a subject");
    assert!(subject.contains("= ?utf-8?q?") && !subject.contains("=?utf-8?q?"), "{subject}");
}

#[tokio::test]
async fn recorded_text_contains_no_password() {
    let (smtp, seen) = server(Script(vec![(
        "AUTH",
        Act::Say("535 5.7.8 you said AGFsZXJ0cwBodW50ZXIyLWh1bnRlcjI= that is hunter2-hunter2, aHVudGVyMi1odW50ZXIy"),
    )]))
    .await;
    let receiver = config::ReceiverSettings {
        username: Some("alerts".into()),
        password: Some(SecretText::from("hunter2-hunter2".to_owned())),
        ..receiver(&smtp)
    };
    let email = build(&receiver).expect("a valid receiver");
    let result = email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!((result.outcome, result.status), (Outcome::Refused, Some(535)));
    let shown = format!("{} {email:?}", result.text);
    for secret in ["hunter2", "aHVudGVyMi1odW50ZXIy", "AGFsZXJ0cwBodW50ZXIyLWh1bnRlcjI"] {
        assert!(!shown.contains(secret), "{secret} is in {shown}");
    }
    assert!(seen.lock().expect("a lock").commands.iter().any(|command| command.starts_with("AUTH PLAIN")));
}

#[tokio::test]
async fn hostile_name_adds_no_header_and_no_recipient() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let result = email.send(&due(1, "desk", vec![hostile(), moved()]), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    let seen = seen.lock().expect("a lock").clone();
    let head = seen.mails[0].split("\r\n\r\n").next().unwrap_or_default().to_owned();
    assert!(!head.to_lowercase().lines().any(|line| line.starts_with("bcc")), "{head}");
    assert_eq!(seen.commands.iter().filter(|command| command.starts_with("RCPT")).count(), 2);
}

#[tokio::test]
async fn mail_is_never_sent_unencrypted_over_a_network() {
    // The config accepts loopback without TLS, so the test sets the security itself.
    let (smtp, seen) = server(Script::default()).await;
    let mut email = build(&receiver(&smtp)).expect("a valid receiver");
    let tls = TlsParameters::new("mail.example.com".into()).expect("TLS");
    email.server.security = MailSecurity::StartTls(TlsTrust::verified(tls));
    let result = email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::LATER);
    assert!(result.text.contains("does not offer STARTTLS"), "{}", result.text);
    assert!(!seen.lock().expect("a lock").commands.iter().any(|command| command.starts_with("MAIL")));

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
fn invalid_config_reports_every_problem() {
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
async fn connection_is_reused_and_a_closed_one_replaced() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let count = |verb: &str| seen.lock().expect("a lock").commands.iter().filter(|line| line.starts_with(verb)).count();
    for id in 1..=3 {
        let result = email.send(&due(id, "desk", vec![unlock()]), time(NOW), None).await;
        assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    }
    assert_eq!((count("EHLO"), count("MAIL")), (1, 3));
    // A changed password needs a new connection.
    assert!(email.pool.take(&Some(SmtpLogin { username: "alerts".into(), password: "other".into() })).is_none());
    // If the server closes an idle connection, the next mail uses a new one.
    let (smtp, seen) = server(Script(vec![("QUIT", Act::Drop)])).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    let mut open = email.pool.take(&None).expect("an idle connection");
    open.connection.quit().await.expect_err("the server drops it");
    email.pool.keep(open);
    let result = email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 2);
}

#[tokio::test]
async fn mail_contains_the_picture_of_the_schedule() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    let mail = seen.lock().expect("a lock").mails[0].clone();
    assert!(mail.contains("multipart/alternative") && mail.contains("multipart/related"), "{mail}");
    assert!(mail.contains("Content-ID: <schedule-1>") && mail.contains("Content-Type: image/png"), "{mail}");
    assert!(mail.contains("cid:schedule-1"), "{mail}");
}

#[tokio::test]
async fn only_digests_have_an_unsubscribe_header() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    email.send(&due(1, "desk", vec![testkit::samples::digest()]), time(NOW), None).await;
    email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    let mails = seen.lock().expect("a lock").mails.clone();
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
async fn each_recipient_of_a_digest_has_a_personal_link() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let digest = due(1, "desk", vec![testkit::samples::digest()]);
    let result = email.send(&digest, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    assert!(result.text.ends_with("accepted for: desk@example.com, risk@example.com"), "{}", result.text);
    let seen = seen.lock().expect("a lock").clone();
    assert_eq!(seen.mails.len(), 2);
    assert_eq!(seen.commands.iter().filter(|line| line.starts_with("EHLO")).count(), 1, "one connection");
    let all = |name| seen.mails.iter().map(|mail| header(mail, name)).collect::<Vec<_>>();
    let (links, ids) = (all("List-Unsubscribe"), all("Message-ID"));
    assert!(links[0].starts_with("<https://cliffwatch.example.com/unsubscribe/"), "{links:?}");
    assert!(links[0].ends_with(">, <mailto:alerts@example.com?subject=unsubscribe%20desk>"), "{links:?}");
    assert_ne!(links[0], links[1]);
    assert_ne!(ids[0], ids[1]);
    assert_eq!(all("List-Unsubscribe-Post"), ["List-Unsubscribe=One-Click"; 2]);
    assert!(all("To")[0].contains("desk@example.com") && !all("To")[0].contains("risk@example.com"));
    assert!(seen.mails[0].contains("Unsubscribe from these digests: https://"), "{}", seen.mails[0]);
}

#[tokio::test]
async fn unsubscribed_recipient_still_gets_alerts() {
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let digest = due(1, "desk", vec![testkit::samples::digest()]);
    let recipients = || {
        let seen = std::mem::take(&mut *seen.lock().expect("a lock"));
        seen.commands.into_iter().filter(|line| line.starts_with("RCPT")).collect::<Vec<_>>()
    };
    email.send(&digest, time(NOW), Some(&consent(&["desk@example.com"]))).await;
    assert_eq!(recipients(), ["RCPT TO:<risk@example.com>"]);
    let result = email.send(&digest, time(NOW), Some(&consent(&["desk@example.com", "risk@example.com"]))).await;
    assert_eq!((result.outcome, recipients().len()), (Outcome::Accepted, 0));
    assert!(result.text.starts_with("not sent: all recipients unsubscribed"), "{}", result.text);
    email.send(&due(2, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(recipients().len(), 2);
}

#[tokio::test]
async fn retry_of_a_digest_skips_recipients_that_have_it() {
    let (smtp, seen) = server(Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))])).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let digest = due(1, "desk", vec![testkit::samples::digest()]);
    let result = email.send(&digest, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(result.outcome, Outcome::Partly, "{}", result.text);
    assert!(result.text.contains("accepted for: desk@example.com") && result.text.contains("mailbox full"), "{}", result.text);
    let patient = DueDelivery { tries: MAX_RETRIED_ATTEMPTS, ..digest };
    let result = email.send(&patient, time(NOW), Some(&consent(&[]))).await;
    assert_eq!(rejected(&result.outcome), ["risk@example.com"], "{}", result.text);
    assert!(result.text.contains("not delivered to: risk@example.com"), "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 1, "once");
    // A rejected sender is tried once, not once per recipient.
    let (smtp, seen) = server(Script(vec![("MAIL", Act::Say("530 5.7.0 log in first"))])).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let result = email.send(&due(2, "desk", vec![testkit::samples::digest()]), time(NOW), Some(&consent(&[]))).await;
    assert_eq!(result.outcome, Outcome::Refused, "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").commands.iter().filter(|line| line.starts_with("MAIL")).count(), 1);
}

#[tokio::test]
async fn replay_has_the_same_message_id_a_header_and_a_note() {
    let (smtp, seen) = server(Script::default()).await;
    let receivers = crate::Receivers::build(&[receiver(&smtp)], &delivery_config(), None).expect("a valid receiver");
    let name = model::ReceiverName::from(receiver(&smtp).name.as_str());
    let delivery = due(1, name.as_str(), vec![unlock()]);
    let replay = Some(model::Replay { requested_at: time(NOW), first_delivered_at: None });
    for delivery in [&delivery, &DueDelivery { replay, ..delivery.clone() }] {
        let (outcome, attempt) = receivers.send(&name, delivery, time(NOW)).await;
        assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    }
    let mails = seen.lock().expect("a lock").mails.clone();
    let header = |mail: &str, name: &str| mail.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert_eq!(header(&mails[1], "Message-ID: "), header(&mails[0], "Message-ID: "));
    assert_eq!(
        (header(&mails[0], "Cliffwatch-Replay"), header(&mails[1], "Cliffwatch-Replay")),
        (String::new(), "Cliffwatch-Replay: true".to_owned())
    );
    let note = "Replay of a message of 9 Mar 2026, 13:00 UTC, not delivered before";
    assert!(!decoded(&mails[0]).contains("Replay of") && decoded(&mails[1]).contains(note), "{}", decoded(&mails[1]));
}

/// Decodes quoted-printable text as RFC 2045 defines it.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let text = text.replace("=\r\n", "");
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        match (first, tail.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok())) {
            (b'=', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).replace("\r\n", "\n")
}

#[tokio::test]
async fn mail_is_seven_bit_with_short_lines_and_arrives_unchanged() {
    let mut long = unlock();
    // Lines that begin with a dot at many offsets, so that some stand at the border of two writes.
    let lines: Vec<String> =
        (0..900).map(|n| format!("{} {n} Ünlöck {}", ".".repeat(1 + n % 3), "x".repeat(1 + n % 7))).collect();
    long.body.annotations.insert("description".into(), lines.join("\n"));
    long.body.labels.insert("note".into(), "\u{1F680}".repeat(30));
    let notifications: Vec<_> = (0..4)
        .map(|n| {
            let mut notice = long.clone();
            notice.body.event = Some(format!("event \r\nBcc: x@example.com {n} \u{202e}"));
            notice.alert = format!("al_{n}").as_str().into();
            notice
        })
        .collect();
    let (smtp, seen) = server(Script::default()).await;
    let email = build(&receiver(&smtp)).expect("a valid receiver");
    let result = email.send(&due(1, "desk", notifications), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    let mail = seen.lock().expect("a lock").mails[0].clone();
    assert!(mail.is_ascii(), "the mail needs no extension of the server");
    assert!(!mail.replace("\r\n", "").contains(['\r', '\n']), "a bare line break");
    assert!(mail.lines().all(|line| line.len() <= 998), "a line is too long");
    let (head, body) = mail.split_once("\r\n\r\n").expect("a head");
    assert!(head.lines().all(|line| line.len() <= 200), "{head}");
    assert!(!head.to_lowercase().contains("bcc"), "{head}");
    // The transport doubles a dot at the start of a line; the server removes it.
    let sent = body.replace("\r\n.", "\r\n");
    let text = decoded(&sent);
    for line in lines.iter().take(150) {
        assert!(text.contains(&format!("\n  {line}\n")), "{line:?} is missing");
    }
}
