use super::*;
use crate::card::{nearness, web_address};
use model::{MemberBody, Notification, Timestamp, TokenBody};
use testkit::samples::{HOSTILE, digest, due, group, hostile, moved, resolved, unlock};
use testkit::time;

fn compose_one(notice: Notification) -> Mail {
    let now = notice.at;
    compose_at(&[notice], now).expect("a mail")
}

fn compose_at(notifications: &[Notification], now: Timestamp) -> Option<Mail> {
    let external_url = Some("https://cliffwatch.example.com");
    compose(&Brief { delivery: &due(1, "desk", notifications.to_vec()), external_url, now }, None)
}

#[test]
fn subject_has_token_value_share_and_date() {
    assert_eq!(compose_one(unlock()).subject, "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    // A rule without annotations gives the same subject.
    let mut plain = unlock();
    plain.body.annotations.clear();
    assert_eq!(compose_one(plain).subject, "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    assert_eq!(compose_one(resolved()).subject, "[Resolved] ARB: $33.15M (2.77%) unlocked on 16 Mar 2026, 13:00 UTC");
    assert_eq!(
        compose_one(moved()).subject,
        "[Critical] APT moved: $13.26M (1.11%) from 12 Apr 2026 to 12 May 2026 (+30 days) · 37.06M of Core Contributors, Investors (0.37% of supply)"
    );
    let several = compose_at(&[unlock(), moved()], time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(several.subject.starts_with("[Critical] 2 alerts: APT moved: $13.26M"), "the most severe alert: {}", several.subject);
    assert_eq!(compose_at(&[], time("2026-03-09T13:00:05Z")), None);
}

/// The headline of an HTML mail says how an alert ended, as the subject does.
#[test]
fn html_headline_has_the_outcome() {
    for (reason, outcome) in [("removed", "Removed from the schedule"), ("cleared", "Buyback seen: 1.25M")] {
        let mut notice = resolved();
        notice.body.reason = reason.to_owned();
        notice.body.annotations.insert(model::OUTCOME.to_owned(), outcome.to_owned());
        let mail = compose_one(notice);
        let html = mail.html.expect("HTML");
        assert!(html.contains(&format!(" &middot; {outcome}</td>")), "{reason}: {html}");
        assert!(mail.subject.ends_with(outcome), "{}", mail.subject);
    }
    let firing = compose_one(unlock()).html.expect("HTML");
    assert!(!firing.contains("&middot; </td>"), "{firing}");
}

#[test]
fn test_message_is_marked() {
    let receiver = model::supply::ReceiverName::from("desk");
    let delivery = crate::message::test_delivery(&receiver, time("2026-03-09T13:00:00Z"));
    let mail = compose_one(delivery.notifications[0].clone());
    assert_eq!(mail.subject, "[Test] Test message from Cliffwatch to desk");
    assert_ne!(delivery.webhook_id, crate::message::test_delivery(&receiver, time("2026-03-09T13:00:01Z")).webhook_id);
}

#[test]
fn nearness_is_as_precise_as_the_date() {
    let near = |days: f64, when: &str| {
        let mut notice = unlock();
        notice.body.days_until = Some(days);
        notice.body.when = Some(when.into());
        nearness(&notice, notice.at)
    };
    assert_eq!(near(7.0, "on 16 Mar 2026").as_deref(), Some("in 7 days"));
    assert_eq!(near(9.0, "in March 2026").as_deref(), Some("the month begins in 9 days"));
    assert_eq!(near(0.14, "in March 2026").as_deref(), Some("the month begins in less than a day"));
    assert_eq!(near(0.0, "in March 2026").as_deref(), Some("some time this month"));
    assert_eq!(near(2.0, "in the week of 15 Mar 2026").as_deref(), Some("the week begins in 2 days"));
    assert_eq!(near(0.14, "on 16 Mar 2026, 13:00 UTC").as_deref(), Some("in 3 h"));
    assert_eq!(near(0.01, "on 16 Mar 2026, 13:00 UTC").as_deref(), Some("in 14 min"));
    assert_eq!(near(1.2, "on 16 Mar 2026").as_deref(), Some("in 1 day"));
    assert_eq!(near(-2.0, "on 16 Mar 2026"), None);
    assert_eq!(near(f64::NAN, "on 16 Mar 2026"), None);
}

#[test]
fn late_mail_says_so_and_counts_days_from_the_attempt() {
    let late = |now: &str| compose_at(&[unlock()], time(now)).expect("a mail");
    let mail = late("2026-03-11T13:00:00Z");
    assert!(mail.subject.ends_with(" · in 5 days"), "{}", mail.subject);
    assert!(mail.text.contains("Sent: 11 Mar 2026, 13:00 UTC, 2 days late"), "{}", mail.text);
    let mail = late("2026-03-20T13:00:00Z");
    assert!(mail.subject.ends_with(" UTC"), "{}", mail.subject);
    assert!(!late("2026-03-09T13:10:00Z").text.contains("late"));
}

#[test]
fn stale_prices_are_named_once() {
    let stale = |mut notification: Notification, at: &str| {
        notification.body.stale_price_as_of = Some(time(at));
        notification
    };
    let named = |notifications: &[Notification], words: &str| {
        let mail = compose_at(notifications, time("2026-03-09T13:00:05Z")).expect("a mail");
        assert!(!mail.subject.contains("prices of"), "{}", mail.subject);
        let html = mail.html.expect("HTML");
        for line in mail.text.lines().filter(|line| line.contains("prices of") && notifications.len() == 1) {
            assert_eq!(line.trim(), "At prices of 3 Nov 2025");
        }
        (mail.text.matches(words).count(), html.matches(words).count())
    };
    let (november, december) = ("2025-11-03T02:01:35Z", "2025-12-24T00:00:00Z");
    assert_eq!(named(&[unlock()], "prices of"), (0, 0));
    assert_eq!(named(&[stale(unlock(), november)], "At prices of 3 Nov 2025"), (1, 1));
    for count in [2, 3, 4, 20] {
        let group: Vec<Notification> = group(count).into_iter().map(|one| stale(one, november)).collect();
        assert_eq!(named(&group, "At prices of 3 Nov 2025"), (1, 1), "{count}");
    }
    let mut mixed = group(2);
    mixed[0] = stale(mixed[0].clone(), november);
    mixed[1] = stale(mixed[1].clone(), december);
    assert_eq!(named(&mixed, "At prices of 3 Nov 2025"), (1, 1));
    assert_eq!(named(&mixed, "At prices of 24 Dec 2025"), (1, 1));
}

#[test]
fn text_part_is_complete() {
    insta::assert_snapshot!("text_unlock", compose_one(unlock()).text);
    insta::assert_snapshot!(
        "text_moved_and_resolved",
        compose_at(&[moved(), resolved()], time("2026-03-09T13:00:05Z")).expect("a mail").text
    );
}

#[test]
fn html_part_shows_the_same_facts() {
    let html = compose_one(unlock()).html.expect("HTML");
    for fact in [
        "$33.15M",
        "92.65M ARB",
        "2.77%",
        "Investors",
        "13.07M",
        "Reason: due within 7 days",
        "Polled: 9 Mar 2026, 12:10 UTC",
        "Runbook",
    ] {
        assert!(html.contains(fact), "{fact} is missing");
    }
    assert!(
        html.replace("&#x2f;", "/").contains(&format!("https://cliffwatch.example.com/alerts/{}", unlock().alert)),
        "its page"
    );
    insta::assert_snapshot!("html_moved", compose_one(moved()).html.expect("HTML"));
}

#[test]
fn hostile_name_is_sanitized() {
    let mail = compose_one(hostile());
    assert!(mail.subject.chars().count() <= MAX_TITLE_CHARS);
    let html = mail.html.expect("HTML");
    for part in [&mail.subject, &mail.text, &html] {
        assert!(part.chars().all(|c| c == '\n' || !c.is_control()), "a control character in {part:?}");
        assert!(!part.contains(['\u{202E}', '\u{200B}']), "a hidden mark in {part:?}");
        assert!(!part.contains("49"), "a template within a name was rendered");
    }
    assert!(!mail.subject.contains('\n'));
    assert!(!mail.text.lines().any(|line| line.starts_with("Bcc:")), "a line looks like a header");
    assert!(!html.contains("<script"), "unescaped markup");
    assert!(!html.contains("javascript:"), "a script link");
    assert!(html.contains("&lt;script&gt;"));
    assert!(html.len() < 200_000, "{} bytes", html.len());
    for trap in ["<script>", "<!channel>", "\r\n", "\u{202E}", "\u{200B}"] {
        assert!(HOSTILE.contains(trap), "{trap:?}");
    }
    insta::with_settings!({filters => vec![(r"x{60,}", "xxx[…]")]}, {
        insta::assert_snapshot!("text_hostile", format!("Subject: {}\n\n{}", mail.subject, mail.text));
        insta::assert_snapshot!("html_hostile", html);
    });
}

#[test]
fn digest_contains_the_unsubscribe_link() {
    let notifications = vec![digest()];
    let delivery = due(1, "desk", notifications);
    let brief = Brief { delivery: &delivery, external_url: None, now: time("2026-03-09T08:00:00Z") };
    let link = "https://cliffwatch.example.com/unsubscribe/AbC";
    let mail = compose(&brief, Some(link)).expect("a mail");
    assert!(mail.text.contains(&format!("\nUnsubscribe from these digests: {link}\n")), "{}", mail.text);
    let html = mail.html.expect("HTML").replace("&#x2f;", "/");
    assert!(html.contains(&format!("<a class=\"link\" href=\"{link}\"")), "{html}");
    assert!(!compose(&brief, None).expect("a mail").text.contains("Unsubscribe"));
}

#[test]
fn mail_with_many_alerts_is_limited_and_counts_the_rest() {
    let many: Vec<Notification> = testkit::samples::group(500);
    let mail = compose_at(&many, time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(mail.text.contains("400 more alerts not shown"));
    assert_eq!(
        mail.text.lines().filter(|line| line.starts_with("- T") && line.contains(": $33.15M")).count(),
        MAX_LINES,
        "one line per alert"
    );
    let html = mail.html.expect("HTML");
    assert!(html.len() < 200_000, "{} bytes", html.len());
    assert_eq!((html.matches("&#9679;").count(), html.matches("Reason: ").count()), (MAX_LINES, DETAILED_CARDS));
    assert_eq!(mail.pictures.len(), DETAILED_CARDS);
    // A few alerts are all shown in full, without a list.
    let few = compose_at(&[unlock(), moved(), resolved()], time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(!few.text.contains("Details of the first") && few.html.expect("HTML").matches("Reason: ").count() == 3);
}

#[test]
fn resolution_says_why_the_alert_ended() {
    let over = |reason: &str, when: Option<&str>, outcome: Option<&str>| {
        let mut notice = resolved();
        notice.body.reason = reason.into();
        notice.body.when = when.map(str::to_owned);
        notice.body.annotations.extend(outcome.map(|outcome| ("outcome".to_owned(), outcome.to_owned())));
        compose_one(notice).subject
    };
    let moved = "moved to 26 Dec 2026, outside the lead time of 7 days";
    assert_eq!(
        over("rescheduled out", Some("on 26 Dec 2026"), Some(moved)),
        format!("[Resolved] ARB: $33.15M (2.77%) unlock · {moved}")
    );
    let when = Some("on 16 Mar 2026");
    for (reason, outcome, words) in [
        ("removed", Some("removed from the schedule"), "removed from the schedule"),
        ("cleared", Some("no longer matches: cliffValue is $4.10M"), "no longer matches: cliffValue is $4.10M"),
        ("cleared", None, "condition no longer true"),
        ("new word", None, "new word"),
    ] {
        assert_eq!(over(reason, when, outcome), format!("[Resolved] ARB: $33.15M (2.77%) unlocks on 16 Mar 2026 · {words}"));
    }
}

#[test]
fn rules_about_one_event_share_a_card() {
    let mail = compose_at(&testkit::samples::several_rules(), time("2026-03-09T13:00:05Z")).expect("a mail");
    assert_eq!(mail.subject, "[Critical] ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    for (part, times) in [("Rule: BigCliffAhead", 1), ("Rule:", 1), ("InsiderUnlockAhead (info)", 1), ("80M announced", 1)] {
        assert_eq!(mail.text.matches(part).count(), times, "{part} in {}", mail.text);
    }
    let html = mail.html.expect("HTML");
    assert!(html.contains("Also CommittedClaimDiffers (warning): ARB: 80M announced"), "{html}");
}

#[test]
fn alert_of_a_group_lists_its_tokens() {
    let mut notice = testkit::samples::source_incident();
    let member = |symbol: &str, share: f64, value: f64| model::MemberBody {
        token: model::TokenBody { id: symbol.to_lowercase(), name: symbol.into(), symbol: symbol.into() },
        share: Some(share),
        amount: Some(value / 2.0),
        value: Some(value),
    };
    notice.kind = model::NotificationKind::Firing;
    notice.body.members = vec![member("APT", 60.0, 61_400_000.0), member("ARB", 40.0, 33_150_000.0)];
    let mail = compose_one(notice);
    assert!(mail.text.contains("Tokens:\n  APT (60.00% of the group): 30.70M ($61.40M)\n  ARB (40.00%"), "{}", mail.text);
}

#[test]
fn data_source_with_a_url_is_a_link() {
    let mut notice = unlock();
    notice.body.source.data_source = Some("https://docs.example.com/tokens?a=1&b=2".into());
    let html = compose_one(notice).html.expect("HTML").replace("&#x2f;", "/");
    assert!(html.contains("href=\"https://docs.example.com/tokens?a=1&amp;b=2\""), "{html}");
    let mut notice = unlock();
    notice.body.source.data_source = Some("https://a.example/x, Whitepaper; https://b.example/y".into());
    let html = compose_one(notice).html.expect("HTML").replace("&#x2f;", "/");
    for part in ["href=\"https://a.example/x\"", ">https://a.example/x</a>, Whitepaper, <a", "href=\"https://b.example/y\""] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let mut notice = unlock();
    notice.body.source.data_source = Some("javascript:alert(1)".into());
    assert!(!compose_one(notice).html.expect("HTML").contains("href=\"javascript"));
}

#[test]
fn welcome_message_lists_ten_entries() {
    let batch = model::Batch { is_welcome: true, truncated: 83, note: Some("The first".into()), ..Default::default() };
    let delivery = model::DueDelivery { batch, ..due(1, "desk", testkit::samples::group(40)) };
    let external_url = Some("https://cliffwatch.example.com");
    let mail = compose(&Brief { delivery: &delivery, external_url, now: time("2026-03-09T13:00:05Z") }, None).expect("a mail");
    assert!(mail.subject.starts_with("Welcome · 123 alerts: T01: $33.15M"), "{}", mail.subject);
    assert_eq!(mail.text.lines().filter(|line| line.starts_with("- T")).count(), 10);
    assert!(mail.text.contains("113 more alerts not shown: see https://cliffwatch.example.com/alerts or"), "{}", mail.text);
    assert!(mail.text.starts_with("Welcome to Cliffwatch. Firing now: 123 alerts. Most urgent first:\n"), "{}", mail.text);
    assert!(!mail.text.contains("Details of the first") && mail.pictures.is_empty());
}

#[test]
fn only_plain_http_urls_become_links() {
    assert_eq!(web_address(" https://wiki.example.com/a?b=1 ").as_deref(), Some("https://wiki.example.com/a?b=1"));
    for text in ["javascript:alert(1)", "data:text/html,x", "wiki", "", "https://user:secret@example.com/", "file:///etc/passwd"]
    {
        assert_eq!(web_address(text), None, "{text}");
    }
}

#[test]
fn digest_is_shown_as_tables_in_html() {
    let mail = compose_one(digest());
    assert_eq!(mail.subject, "Digest: 2 upcoming unlocks worth $94.55M, 1 change since yesterday");
    assert!(mail.text.contains("\n  Upcoming until 16 Mar 2026:\n    ARB: $33.15M (2.77%)"), "{}", mail.text);
    let html = mail.html.expect("HTML");
    for fact in [
        "$61.40M, 1.10% of market cap",
        "in March 2026",
        "and 3 more",
        "silenced",
        "Firing alerts",
        "and 3 more",
        "every receiver accepts messages",
        "Vesting continuously",
        "value unknown, 700 OP at 100 per day",
    ] {
        assert!(html.contains(fact), "{fact} is missing");
    }
    insta::assert_snapshot!("html_digest", html);
    // Without a valid record, the mail shows the text.
    let mut strange = digest();
    strange.body.record = None;
    assert!(compose_one(strange).html.expect("HTML").contains("Upcoming until 16 Mar 2026:"));
}

/// An alert about a group of tokens.
fn portfolio() -> Notification {
    let mut notice = unlock();
    let member = |symbol: &str, share: f64, value: f64| MemberBody {
        token: TokenBody { id: symbol.to_lowercase(), name: symbol.into(), symbol: symbol.into() },
        share: Some(share),
        amount: None,
        value: Some(value),
    };
    notice.body.rule = "PortfolioWeek".into();
    notice.body.annotations =
        [("summary".to_owned(), "portfolio: $94.55M (1.92% of market cap) unlocks in the next 7 days".to_owned())].into();
    notice.body.members = vec![member("APT", 64.9, 61_400_000.0), member("ARB", 35.1, 33_150_000.0)];
    (notice.body.token, notice.body.record, notice.body.resource, notice.body.event) = (None, None, None, None);
    (notice.body.when, notice.body.days_until, notice.body.lead) = (None, None, None);
    notice.body.labels.insert("group".into(), "portfolio".into());
    notice
}

/// Writes sample mails with embedded pictures to the folder `CLIFFWATCH_PREVIEW`.
#[test]
#[ignore = "writes files for manual review"]
fn write_sample_mails() {
    let folder = std::path::PathBuf::from(std::env::var_os("CLIFFWATCH_PREVIEW").expect("CLIFFWATCH_PREVIEW"));
    let fold = |count: usize, truncated: u32, is_welcome: bool, note: &str| model::DueDelivery {
        batch: model::Batch {
            shape: model::BatchKind::Batch,
            truncated,
            is_welcome,
            note: Some(note.into()),
            ..Default::default()
        },
        ..due(1, "desk", testkit::samples::group(count))
    };
    for (name, delivery) in [
        ("unlock", due(1, "desk", vec![unlock()])),
        ("resolved", due(1, "desk", vec![resolved()])),
        ("moved", due(1, "desk", vec![moved()])),
        ("several", due(1, "desk", testkit::samples::several_rules())),
        ("storm", fold(40, 372, false, "412 alerts at once: the source corrected many schedules")),
        ("welcome", fold(40, 83, true, "replaced by the welcome note")),
        ("digest", due(1, "desk", vec![digest()])),
        ("portfolio", due(1, "desk", vec![portfolio()])),
        ("source", due(1, "desk", vec![testkit::samples::source_incident()])),
        ("hostile", due(1, "desk", vec![hostile()])),
    ] {
        let now = delivery.notifications[0].at;
        let mail = compose(
            &Brief { delivery: &delivery, external_url: Some("https://cliffwatch.example.com"), now },
            (name == "digest").then_some("https://cliffwatch.example.com/unsubscribe/x"),
        )
        .expect("a mail");
        let mut html = mail.html.expect("HTML");
        for (at, picture) in mail.pictures.iter().enumerate() {
            use base64::Engine as _;
            let data = base64::engine::general_purpose::STANDARD.encode(picture);
            html = html.replace(&format!("cid:schedule-{}\"", at + 1), &format!("data:image/png;base64,{data}\""));
        }
        std::fs::write(folder.join(format!("{name}.html")), html).expect("written");
        std::fs::write(folder.join(format!("{name}.txt")), format!("Subject: {}\n\n{}", mail.subject, mail.text))
            .expect("written");
    }
}

/// A digest with as many lines in each part as there can be, and long names in all of them.
fn largest_digest() -> Notification {
    let mut notice = digest();
    let mut record = notice.body.record.clone().expect("a record");
    for part in ["ahead", "linear", "possible", "groups", "changes", "fires", "heldBack", "silences"] {
        let Some(lines) = record.get_mut(part).and_then(serde_json::Value::as_array_mut) else { panic!("no {part}") };
        let first = lines.first().cloned().unwrap_or_else(|| panic!("no {part}"));
        *lines = vec![first; model::digest::MAX_LINES];
    }
    let read: model::Digest = serde_json::from_value(record.clone()).expect("a digest");
    assert_eq!(read.ahead.len(), model::digest::MAX_LINES);
    notice.body.annotations.insert("description".into(), model::phrase::digest::text(&read));
    notice.body.record = Some(record);
    notice
}

#[test]
fn largest_digest_is_a_whole_mail() {
    let mail = compose_one(largest_digest());
    let html = mail.html.expect("HTML");
    assert!(html.ends_with("</html>\n") || html.ends_with("</html>"), "the HTML is whole");
    assert!(html.matches("<tr>").count() > 5 * model::digest::MAX_LINES, "{}", html.matches("<tr>").count());
    assert!(mail.text.contains(model::phrase::digest::SILENCES), "the text is whole");
    assert!(mail.text.contains("Sent by Cliffwatch"), "the signature is there");
}
