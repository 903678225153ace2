use super::*;
use crate::card::{nearness, web_address};
use crate::samples::{HOSTILE, digest, due, hostile, moved, resolved, time, unlock};
use model::{MemberBody, Notification, Timestamp, TokenBody};

fn compose_one(notice: Notification) -> Mail {
    let now = notice.at;
    compose_at(&[notice], now).expect("a mail")
}

fn compose_at(notifications: &[Notification], now: Timestamp) -> Option<Mail> {
    let external_url = Some("https://cliffwatch.example.com");
    compose(&Brief { delivery: &due(1, "desk", notifications.to_vec()), external_url, now }, None)
}

#[test]
fn the_subject_tells_token_size_share_and_when() {
    assert_eq!(compose_one(unlock()).subject, "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    // The same without a rule that words it.
    let mut plain = unlock();
    plain.body.annotations.clear();
    assert_eq!(compose_one(plain).subject, "ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    assert_eq!(compose_one(resolved()).subject, "[Resolved] ARB: $33.15M (2.77%) unlocked on 16 Mar 2026, 13:00 UTC");
    assert_eq!(
        compose_one(moved()).subject,
        "[Critical] APT moved: $13.26M (1.11%) from 12 Apr 2026 to 12 May 2026 (+30 days) · 37.06M of Core Contributors, Investors (0.37% of supply)"
    );
    let several = compose_at(&[unlock(), moved()], time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(several.subject.starts_with("[Critical] 2 alerts: APT moved: $13.26M"), "the gravest of them: {}", several.subject);
    assert_eq!(compose_at(&[], time("2026-03-09T13:00:05Z")), None);
}

#[test]
fn a_test_message_is_marked_as_one() {
    let receiver = model::supply::ReceiverName::from("desk");
    let delivery = crate::message::test_delivery(&receiver, time("2026-03-09T13:00:00Z"));
    let mail = compose_one(delivery.notifications[0].clone());
    assert_eq!(mail.subject, "[Test] Test message from Cliffwatch to desk");
    assert_ne!(delivery.webhook_id, crate::message::test_delivery(&receiver, time("2026-03-09T13:00:01Z")).webhook_id);
}

#[test]
fn nearness_never_claims_more_than_the_date_does() {
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
    assert_eq!(near(0.01, "on 16 Mar 2026, 13:00 UTC").as_deref(), Some("within the hour"));
    assert_eq!(near(1.2, "on 16 Mar 2026").as_deref(), Some("in 1 day"));
    assert_eq!(near(-2.0, "on 16 Mar 2026"), None);
    assert_eq!(near(f64::NAN, "on 16 Mar 2026"), None);
}

#[test]
fn a_mail_that_was_held_up_says_so_and_counts_from_today() {
    let late = |now: &str| compose_at(&[unlock()], time(now)).expect("a mail");
    let mail = late("2026-03-11T13:00:00Z");
    assert!(mail.subject.ends_with(" · in 5 days"), "{}", mail.subject);
    assert!(mail.text.contains("Sent: 11 Mar 2026, 13:00 UTC, 2 days late"), "{}", mail.text);
    let mail = late("2026-03-20T13:00:00Z");
    assert!(mail.subject.ends_with(" UTC"), "{}", mail.subject);
    assert!(!late("2026-03-09T13:10:00Z").text.contains("late"));
}

#[test]
fn the_text_part_is_complete_on_its_own() {
    insta::assert_snapshot!("text_unlock", compose_one(unlock()).text);
    insta::assert_snapshot!(
        "text_moved_and_resolved",
        compose_at(&[moved(), resolved()], time("2026-03-09T13:00:05Z")).expect("a mail").text
    );
}

#[test]
fn the_html_part_shows_the_same_facts() {
    let html = compose_one(unlock()).html.expect("the template works");
    for fact in [
        "$33.15M",
        "92.65M tokens",
        "2.77%",
        "Investors",
        "13.07M",
        "Told because: it is within 7 days",
        "Polled: 9 Mar 2026, 12:10 UTC",
        "Runbook",
    ] {
        assert!(html.contains(fact), "{fact} is missing");
    }
    assert!(
        html.replace("&#x2f;", "/").contains(&format!("https://cliffwatch.example.com/alerts/{}", unlock().alert)),
        "its page"
    );
    insta::assert_snapshot!("html_moved", compose_one(moved()).html.expect("the template works"));
}

#[test]
fn a_hostile_name_stays_text() {
    let mail = compose_one(hostile());
    assert!(mail.subject.chars().count() <= MAX_TITLE_CHARS);
    let html = mail.html.expect("the template works");
    for part in [&mail.subject, &mail.text, &html] {
        assert!(part.chars().all(|c| c == '\n' || !c.is_control()), "a control character in {part:?}");
        assert!(!part.contains(['\u{202E}', '\u{200B}']), "a hidden mark in {part:?}");
        assert!(!part.contains("49"), "a template within a name was rendered");
    }
    assert!(!mail.subject.contains('\n'));
    assert!(!mail.text.lines().any(|line| line.starts_with("Bcc:")), "a line passes for a header");
    assert!(!html.contains("<script"), "markup got through");
    assert!(!html.contains("javascript:"), "a link that runs got through");
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
fn a_digest_tells_its_recipient_where_to_stop_it() {
    let notifications = vec![digest()];
    let delivery = due(1, "desk", notifications);
    let brief = Brief { delivery: &delivery, external_url: None, now: time("2026-03-09T08:00:00Z") };
    let link = "https://cliffwatch.example.com/unsubscribe/AbC";
    let mail = compose(&brief, Some(link)).expect("a mail");
    assert!(mail.text.contains(&format!("\nTo stop these digests: {link}\n")), "{}", mail.text);
    let html = mail.html.expect("the template works").replace("&#x2f;", "/");
    assert!(html.contains(&format!("<a class=\"link\" href=\"{link}\"")), "{html}");
    assert!(!compose(&brief, None).expect("a mail").text.contains("To stop"));
}

#[test]
fn a_mail_of_many_alerts_has_bounds_and_counts_the_rest() {
    let many: Vec<Notification> = crate::samples::group(500);
    let mail = compose_at(&many, time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(mail.text.contains("400 more alerts not shown here"));
    assert_eq!(
        mail.text.lines().filter(|line| line.starts_with("- T") && line.contains(": $33.15M")).count(),
        MAX_LINES,
        "a line for each"
    );
    let html = mail.html.expect("the template works");
    assert!(html.len() < 200_000, "{} bytes", html.len());
    assert_eq!((html.matches("&#9679;").count(), html.matches("Told because").count()), (MAX_LINES, DETAILED));
    assert_eq!(mail.pictures.len(), DETAILED);
    // Few are all shown in full, and need no list.
    let few = compose_at(&[unlock(), moved(), resolved()], time("2026-03-09T13:00:05Z")).expect("a mail");
    assert!(!few.text.contains("in full") && few.html.expect("the template works").matches("Told because").count() == 3);
}

#[test]
fn an_end_says_in_words_what_became_of_it() {
    let over = |reason: &str, when: Option<&str>, lead: Option<&str>| {
        let mut notice = resolved();
        notice.body.reason = reason.into();
        notice.body.when = when.map(str::to_owned);
        notice.body.lead = lead.map(str::to_owned);
        compose_one(notice).subject
    };
    let out = "rescheduled out";
    assert_eq!(
        over(out, Some("on 26 Dec 2026"), Some("1w")),
        "[Resolved] ARB: $33.15M (2.77%) unlock · moved to 26 Dec 2026, outside your 7 days"
    );
    assert_eq!(over(out, Some("in December 2026"), None), "[Resolved] ARB: $33.15M (2.77%) unlock · moved to December 2026");
    assert_eq!(over(out, None, None), "[Resolved] ARB: $33.15M (2.77%) unlock · has no date any more");
    let when = Some("on 16 Mar 2026");
    for (reason, words) in [("removed", "taken out of the schedule"), ("cleared", "no longer holds"), ("new word", "new word")] {
        assert_eq!(over(reason, when, None), format!("[Resolved] ARB: $33.15M (2.77%) unlocks on 16 Mar 2026 · {words}"));
    }
}

#[test]
fn several_rules_about_one_event_are_one_card_under_the_strongest() {
    let mail = compose_at(&crate::samples::several_rules(), time("2026-03-09T13:00:05Z")).expect("a mail");
    assert_eq!(mail.subject, "[Critical] ARB: $33.15M (2.77%) unlocks on 16 Mar 2026, 13:00 UTC · in 7 days");
    for (part, times) in [("Rule: BigCliffAhead", 1), ("Rule:", 1), ("InsiderUnlockAhead (info)", 1), ("80M announced", 1)] {
        assert_eq!(mail.text.matches(part).count(), times, "{part} in {}", mail.text);
    }
    let html = mail.html.expect("the template works");
    assert!(html.contains("Also CommittedClaimDiffers (warning): ARB: 80M announced"), "{html}");
}

#[test]
fn a_group_as_a_whole_names_its_tokens() {
    let mut notice = crate::samples::source_trouble();
    let member = |symbol: &str, share: f64, value: f64| model::MemberBody {
        token: model::TokenBody { id: symbol.to_lowercase(), name: symbol.into(), symbol: symbol.into() },
        share: Some(share),
        amount: Some(value / 2.0),
        value: Some(value),
    };
    notice.kind = model::NotificationKind::Firing;
    notice.body.members = vec![member("APT", 60.0, 61_400_000.0), member("ARB", 40.0, 33_150_000.0)];
    let mail = compose_one(notice);
    assert!(mail.text.contains("Its tokens:\n  APT (60.00% of the group): 30.70M ($61.40M)\n  ARB (40.00%"), "{}", mail.text);
}

#[test]
fn a_source_that_is_an_address_of_the_web_is_a_link() {
    let mut notice = unlock();
    notice.body.source.data_source = Some("https://docs.example.com/tokens?a=1&b=2".into());
    let html = compose_one(notice).html.expect("the template works").replace("&#x2f;", "/");
    assert!(html.contains("href=\"https://docs.example.com/tokens?a=1&amp;b=2\""), "{html}");
    let mut notice = unlock();
    notice.body.source.data_source = Some("https://a.example/x, Whitepaper; https://b.example/y".into());
    let html = compose_one(notice).html.expect("the template works").replace("&#x2f;", "/");
    for part in ["href=\"https://a.example/x\"", ">https://a.example/x</a>, Whitepaper, <a", "href=\"https://b.example/y\""] {
        assert!(html.contains(part), "{part} in {html}");
    }
    let mut notice = unlock();
    notice.body.source.data_source = Some("javascript:alert(1)".into());
    assert!(!compose_one(notice).html.expect("the template works").contains("href=\"javascript"));
}

#[test]
fn a_welcome_is_an_overview_of_the_ten_largest() {
    let bundle = model::Batch { is_welcome: true, truncated: 83, note: Some("The first".into()), ..Default::default() };
    let delivery = model::DueDelivery { bundle, ..due(1, "desk", crate::samples::group(40)) };
    let external_url = Some("https://cliffwatch.example.com");
    let mail = compose(&Brief { delivery: &delivery, external_url, now: time("2026-03-09T13:00:05Z") }, None).expect("a mail");
    assert!(mail.subject.starts_with("123 alerts to begin with: T01: $33.15M"), "{}", mail.subject);
    assert_eq!(mail.text.lines().filter(|line| line.starts_with("- T")).count(), 10);
    assert!(mail.text.contains("113 more alerts not shown here: see https://cliffwatch.example.com/alerts or"), "{}", mail.text);
    assert!(
        mail.text.starts_with("This is the first that Cliffwatch tells you: 123 alerts. These come first:\n"),
        "{}",
        mail.text
    );
    assert!(!mail.text.contains("in full") && mail.pictures.is_empty());
}

#[test]
fn only_addresses_of_the_web_become_links() {
    assert_eq!(web_address(" https://wiki.example.com/a?b=1 ").as_deref(), Some("https://wiki.example.com/a?b=1"));
    for text in ["javascript:alert(1)", "data:text/html,x", "wiki", "", "https://user:secret@example.com/", "file:///etc/passwd"]
    {
        assert_eq!(web_address(text), None, "{text}");
    }
}

#[test]
fn a_digest_comes_as_tables_and_as_text() {
    let mail = compose_one(digest());
    assert_eq!(mail.subject, "Digest: 2 unlocks ahead worth $94.55M, 1 change since yesterday");
    assert!(mail.text.contains("\n  Ahead until 16 Mar 2026:\n    ARB: $33.15M (2.77%)"), "{}", mail.text);
    let html = mail.html.expect("the template works");
    for fact in [
        "$61.40M, 1.10% of market cap",
        "in March 2026",
        "and 3 more",
        "silenced",
        "Fires now",
        "and 3 more",
        "takes its messages",
    ] {
        assert!(html.contains(fact), "{fact} is missing");
    }
    // What cannot be read as facts is still told as text.
    let mut strange = digest();
    strange.body.record = None;
    assert!(compose_one(strange).html.expect("the template works").contains("Ahead until 16 Mar 2026:"));
}

/// A group as a whole, with the tokens that it consists of.
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

/// Writes mails as browsers open them, with their pictures inside: `CLIFFWATCH_LOOK=DIR`.
#[test]
#[ignore = "writes files for people to look at"]
fn mails_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var_os("CLIFFWATCH_LOOK").expect("CLIFFWATCH_LOOK names a folder"));
    let fold = |count: usize, truncated: u32, is_welcome: bool, note: &str| model::DueDelivery {
        bundle: model::Batch {
            shape: model::BatchKind::Fold,
            truncated,
            is_welcome,
            note: Some(note.into()),
            ..Default::default()
        },
        ..due(1, "desk", crate::samples::group(count))
    };
    for (name, delivery) in [
        ("unlock", due(1, "desk", vec![unlock()])),
        ("resolved", due(1, "desk", vec![resolved()])),
        ("moved", due(1, "desk", vec![moved()])),
        ("several", due(1, "desk", crate::samples::several_rules())),
        ("storm", fold(40, 372, false, "412 alerts at once: the source corrected many schedules")),
        ("welcome", fold(40, 83, true, "This is the first that Cliffwatch tells you: 123 alerts at once")),
        ("digest", due(1, "desk", vec![digest()])),
        ("portfolio", due(1, "desk", vec![portfolio()])),
        ("source", due(1, "desk", vec![crate::samples::source_trouble()])),
        ("hostile", due(1, "desk", vec![hostile()])),
    ] {
        let now = delivery.notifications[0].at;
        let mail = compose(
            &Brief { delivery: &delivery, external_url: Some("https://cliffwatch.example.com"), now },
            (name == "digest").then_some("https://cliffwatch.example.com/unsubscribe/x"),
        )
        .expect("a mail");
        let mut html = mail.html.expect("the template works");
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
