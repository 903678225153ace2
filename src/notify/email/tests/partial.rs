//! Mails that a server confirms late, and digests that some recipients have already.

use super::*;

#[tokio::test]
async fn slow_server_gets_time_to_confirm_each_mail() {
    let (smtp, seen) = server(Script(vec![(".", Act::SayLate("250 2.0.0 filtered and queued"))])).await;
    let email = build_with(&receiver(&smtp), SHORT_TIMEOUT).expect("a valid receiver");
    let result = email.send(&due(1, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 1);
    // The mail to each recipient of a digest is confirmed as slowly.
    let result = email.send(&due(2, "desk", vec![testkit::samples::digest()]), time(NOW), Some(&consent(&[]))).await;
    assert_eq!(result.outcome, Outcome::Accepted, "{}", result.text);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 3);
    // Every other step has the time of the attempt.
    let (smtp, _) = server(Script(vec![("DATA", Act::SayLate("354 go ahead"))])).await;
    let email = build_with(&receiver(&smtp), SHORT_TIMEOUT).expect("a valid receiver");
    let result = email.send(&due(3, "desk", vec![unlock()]), time(NOW), None).await;
    assert_eq!(result.outcome, Outcome::LATER, "{}", result.text);
}

#[tokio::test]
async fn digest_after_a_reload_skips_recipients_that_have_it() {
    let (smtp, seen) = server(Script(vec![("RCPT risk@", Act::Say("452 4.2.2 mailbox full"))])).await;
    let before = build(&receiver(&smtp)).expect("a valid receiver");
    let digest = due(1, "desk", vec![testkit::samples::digest()]);
    assert_eq!(before.send(&digest, time(NOW), Some(&consent(&[]))).await.outcome, Outcome::Partly);
    let after = build(&receiver(&smtp)).expect("a valid receiver");
    after.continue_from(&before);
    assert_eq!(after.send(&digest, time(NOW), Some(&consent(&[]))).await.outcome, Outcome::Partly);
    assert_eq!(seen.lock().expect("a lock").mails.len(), 1, "once");
}
