//! No message and no command claims that nothing unlocks where supply comes or is unknown: random schedules, through the real app to all
//! formats, mail, and the real binary. The world decides whether a claim is true, not the supply code of the program.

mod claims;
pub mod texts;
mod world;

use std::process::Command;

use chrono::TimeDelta;
use cliffwatch::model::supply::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::it::{
    hostile::{FORMATS, fields, out::Received},
    support::{Setup, TestApp},
};
use claims::Claims;
use world::{SourceMode, World};

/// The number of random worlds, which take turns with the source modes.
const WORLDS: usize = 4;

/// The days after the start at which messages and commands are checked. Some days later, cliffs have passed.
const DAYS: [i64; 2] = [0, 22];

const RULES: &str = r#"
[[rule]]
alert  = "Ahead"
on     = "unlock"
within = ["30d", "7d"]

[[rule]]
alert = "Changed"
on    = "unlock.*"

[[rule]]
alert = "RateChanges"
on    = "unlock"
within = ["60d"]
when  = "rateChange >= 1.1 || rateChange <= 0.9"

[[rule]]
alert   = "Coming"
on      = "token"
when    = 'ahead("30d").value >= 0 || ahead("30d").amount >= 0'
missing = "fire"

[[rule]]
alert   = "Parts"
on      = "token"
when    = 'ahead("30d").linear.value >= 0 && linearPerDay >= 0'
missing = "fire"
[rule.annotations]
summary     = '{{ token.symbol }}: templated {{ ahead("30d").linear.value | usd }} in 30 days'
description = '{{ token.symbol }}: templated {{ linearPerDayValue | usd }} per day'

[[rule]]
alert   = "Desk"
on      = "portfolio"
tokens  = ["@desk"]
when    = 'ahead("30d").value >= 0'
missing = "fire"

[[rule]]
alert   = "All"
on      = "portfolio"
tokens  = ["*"]
when    = 'ahead("7d").value >= 0'
missing = "fire"

[[rule]]
alert = "Limited"
on    = "unlock"
within = "60d"
limit = 1
"#;

struct Fixture {
    app: TestApp,
    hooks: Received,
    mails: Received,
    /// The number of requests and mails that were checked before.
    seen: (usize, usize),
    _ending: tokio_util::sync::DropGuard,
}

impl Fixture {
    async fn new(world: &World) -> Self {
        let ending = CancellationToken::new();
        let (hooks, hook) = Received::webhooks(ending.clone()).await;
        let (mails, mail) = Received::mails(ending.clone()).await;
        let names = FORMATS.map(|(format, _)| format!("{format:?}")).join(", ");
        let digest = "digest = { at = \"08:00\", ahead = \"7d\" }";
        let formats = FORMATS.map(|(format, keys)| {
            let url = format!("http://{hook}/{format}");
            format!(
                "[[receiver]]\nname = \"{format}\"\ntype = \"webhook\"\nformat = \"{format}\"\nurl = \"{url}\"\n{digest}\n{keys}"
            )
        });
        let slugs: Vec<String> = world.tokens.iter().map(|token| format!("{:?}", token.slug)).collect();
        let config = format!(
            "group_wait = \"0s\"\ngroup_by = [\"token\", \"alertname\"]\n[[route.routes]]\nmatchers = []\nreceivers = [{names}, \"mail\"]\n\
             {}[[receiver]]\nname = \"mail\"\ntype = \"email\"\nsmtp = \"smtp://{mail}\"\nfrom = \"Cliffwatch <a@example.com>\"\n\
             to = [\"b@example.com\"]\n{digest}\n[watch.groups]\ndesk = [{}]\n",
            formats.concat(),
            slugs.join(", "),
        );
        let filled = world.clone();
        let setup = Setup {
            rules: RULES.to_owned(),
            config,
            fill: Box::new(move |edit| filled.fill(edit)),
            is_on_file: true,
            ..Setup::default()
        };
        let app = TestApp::with(setup).await;
        world.set_faults(&app.faults);
        Self { app, hooks, mails, seen: (0, 0), _ending: ending.drop_guard() }
    }

    /// Polls, evaluates, and delivers until nothing is due.
    async fn run_to(&self, now: Timestamp) {
        self.app.clock.set(now);
        self.app.tick().await;
        for _ in 0..3 {
            self.app.deliver().await;
            self.app.clock.set(self.app.clock.now() + TimeDelta::minutes(1));
        }
        self.app.hook.take();
    }

    /// Checks the messages since the last call.
    fn check_messages(&mut self, claims: &Claims<'_>) {
        let (hooks, mails) = (self.hooks.all(), self.mails.all());
        for (path, body) in hooks.iter().skip(self.seen.0) {
            let format = path.trim_matches('/').split('/').next().unwrap_or_default();
            let body = if ["zulip", "twilio"].contains(&format) { fields(body) } else { body.clone() };
            claims.check_json(format, &body);
        }
        for (_, mail) in mails.iter().skip(self.seen.1) {
            for part in texts::parts_of_mail(mail) {
                claims.check_text("a mail", None, &part);
            }
        }
        self.seen = (hooks.len(), mails.len());
    }

    /// Runs a command at the time of the app and returns both of its streams.
    fn command(&self, line: &str) -> (String, String) {
        let now = self.app.clock.now().to_rfc3339();
        let run = Command::new(env!("CARGO_BIN_EXE_cliffwatch"))
            .args(["--now", &now])
            .args(line.split_whitespace())
            .current_dir(self.app.folder.path())
            .env_clear()
            .output()
            .expect("the binary runs");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (text(run.stdout), text(run.stderr))
    }

    fn check_commands(&self, claims: &Claims<'_>, world: &World) {
        let lists = ["upcoming", "upcoming --within 30d", "upcoming --type linear --within 90d", "alerts", "changes"];
        for token in &world.tokens {
            for list in ["upcoming --format json", "upcoming --within 30d", "explain --why-not", "explain Coming"] {
                self.check_command(claims, Some(token.slug), &format!("{list} {}", token.slug));
            }
        }
        for list in lists {
            for format in ["table", "json", "csv"] {
                self.check_command(claims, None, &format!("{list} --format {format}"));
            }
        }
        for line in [
            "explain Ahead",
            "explain Desk @desk",
            "explain All",
            "explain Coming",
            "explain Changed",
            "outbox why",
            "digest list",
        ] {
            self.check_command(claims, None, line);
        }
        for line in ["status", "plan"] {
            let (out, err) = self.command(line);
            claims.check_phrases(line, &format!("{out}\n{err}"));
        }
    }

    fn check_command(&self, claims: &Claims<'_>, token: Option<&str>, line: &str) {
        let (out, err) = self.command(line);
        claims.check_text(line, token, &err);
        match line.split_once("--format ").map(|(_, format)| format.split(' ').next().unwrap_or_default()) {
            Some("json") => claims.check_json_of(line, token, &out),
            Some("csv") => claims.check_csv(line, &out),
            _ => claims.check_text(line, token, &out),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_message_and_no_command_claims_nothing_where_supply_comes_or_is_unknown() {
    let mut random = fastrand::Rng::with_seed(0x0a11);
    let (mut false_claims, mut true_claims) = (Vec::new(), 0);
    for number in 0..WORLDS {
        let mode = SourceMode::ALL[number % SourceMode::ALL.len()];
        let mut world = World::random(mode, &mut random);
        let mut fixture = Fixture::new(&world).await;
        for days in DAYS {
            // The digests are due at 08:00.
            let now = world::start() + TimeDelta::days(days) + TimeDelta::hours(8);
            if days > 0 {
                world.resize_cliffs(&mut random);
                fixture.app.edit(|edit| world.put_events(edit));
            }
            fixture.run_to(now).await;
            let claims = Claims::new(&world, fixture.app.clock.now());
            fixture.check_messages(&claims);
            // Commands are slow, so every other world runs them only later.
            if days > 0 || number.is_multiple_of(2) {
                fixture.check_commands(&claims, &world);
            }
            let found = claims.take();
            eprintln!(
                "world {number}, {mode:?}, day {days}: {} false and {} true claims",
                found.false_claims.len(),
                found.true_claims
            );
            true_claims += found.true_claims;
            false_claims.extend(found.false_claims.into_iter().map(|claim| format!("world {number}, day {days}: {claim}")));
        }
        assert!(fixture.seen.0 > 100 && fixture.seen.1 > 5, "too few messages: {:?}", fixture.seen);
        if number == 0 {
            // Slow: it replays the history of the database.
            let claims = Claims::new(&world, fixture.app.clock.now());
            let (out, err) = fixture.command("check");
            claims.check_phrases("check", &format!("{out}\n{err}"));
            false_claims.extend(claims.take().false_claims);
        }
        fixture.app.desk.take();
    }
    false_claims.sort();
    false_claims.dedup();
    assert!(
        false_claims.is_empty(),
        "{} false claims:\n{}",
        false_claims.len(),
        false_claims[..false_claims.len().min(60)].join("\n")
    );
    assert!(true_claims > 20, "the program uses the phrases: {true_claims} true claims");
}
