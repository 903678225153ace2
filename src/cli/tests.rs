use clap::{CommandFactory, Parser as _};

use super::*;
use model::wire;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("cliffwatch").chain(line.split_whitespace()))
}

#[test]
fn command_line_definition_is_valid() {
    Cli::command().debug_assert();
}

#[test]
fn help_lists_every_command() {
    let mut command = Cli::command().term_width(100);
    let mut golden = command.render_long_help().to_string();
    for name in [
        "check", "plan", "upcoming", "changes", "alerts", "poll", "notify", "init", "backup", "demo", "serve", "man", "token",
        "mcp",
    ] {
        let sub = command.find_subcommand_mut(name).expect("a command");
        golden.push_str(&format!("\n━━ {name}\n{}", sub.clone().term_width(100).render_help()));
    }
    for name in ["outbox", "keys", "routes", "store"] {
        let sub = command.find_subcommand_mut(name).expect("a command");
        let subs: Vec<_> = sub.get_subcommands().cloned().collect();
        for sub in subs {
            golden.push_str(&format!("\n━━ {name} {}\n{}", sub.get_name(), sub.clone().term_width(100).render_help()));
        }
    }
    insta::assert_snapshot!(golden);
}

#[test]
fn global_options_can_follow_the_command() {
    let cli = parse("upcoming arb @portfolio --within 30d --min-value 5M --format json --now 2026-03-09 --config x.toml")
        .expect("good");
    assert_eq!(cli.global.format, OutputFormat::Json);
    assert_eq!(cli.global.now, wire::parse_timestamp("2026-03-09"));
    assert!(matches!(cli.command, Command::Upcoming(_)));
}

#[test]
fn wrong_usage_gets_a_suggestion() {
    for (line, expected) in [
        ("upcomming", "upcoming"),
        ("changes --kind rescheduld", "did you mean rescheduled?"),
        ("changes --resource unlocks", "did you mean unlock?"),
        ("alerts --state firng", "did you mean firing?"),
        ("outbox list --state deda", "did you mean dead?"),
        ("outbox retry", "<IDS|--dead>"),
        ("outbox retry 1 --dead", "cannot be used with"),
        ("upcoming --within 30x", "expected a form like"),
        ("upcoming --min-value lots", "examples: 5000000"),
        ("status --now yesterday", "examples: 2026"),
        ("routes test severity", "example: severity=critical"),
    ] {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        let text = error.to_string();
        assert!(text.contains(expected), "{line}: {text}");
    }
}

#[test]
fn parses_amounts() {
    for (text, value) in [("5000000", 5e6), ("5M", 5e6), ("250k", 250e3), ("1.5B", 1.5e9), ("$1_000", 1000.0)] {
        assert_eq!(parse_money(text), Ok(value), "{text}");
    }
    for bad in ["", "M", "five", "-1", "inf", "nan", "1MM", "5é"] {
        assert!(parse_money(bad).is_err(), "{bad}");
    }
}

#[test]
fn exit_codes_are_stable() {
    for (exit, code) in [(Exit::Done, 0), (Exit::Failed, 1), (Exit::WrongUsage, 2), (Exit::OnlyWarnings, 3)] {
        assert_eq!(ExitCode::from(exit), ExitCode::from(code));
    }
    assert_eq!(print_error(&UsageError("x".into()).into()), Exit::WrongUsage);
    assert_eq!(print_error(&anyhow::anyhow!("x")), Exit::Failed);
    assert_eq!(print_error(&std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()), Exit::Done);
}

/// Splits a command line like a shell, as far as the docs need it: quotes, and comments at the end.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') if !word.is_empty() => words.push(std::mem::take(&mut word)),
            (None, ' ') => {}
            (None, '#') if word.is_empty() => return words,
            (_, c) => word.push(c),
        }
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

#[test]
fn documented_command_lines_are_valid() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = std::fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").path());
    let pages = docs.chain([root.join("README.md")]).filter(|page| page.extension().is_some_and(|ending| ending == "md"));
    let mut valid = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let mut in_shell = false;
        for (number, line) in text.lines().enumerate() {
            in_shell = if line.starts_with("```") { line == "```sh" } else { in_shell };
            let line = line.trim_start_matches("$ ").replace("cargo run -- ", "cliffwatch ").replace("sudo ", "");
            for command in line.split(" && ").filter(|command| in_shell && command.starts_with("cliffwatch ")) {
                if let Err(error) = Cli::try_parse_from(words(command)) {
                    use clap::error::ErrorKind::{DisplayHelp, DisplayVersion};
                    let is_fine = matches!(error.kind(), DisplayHelp | DisplayVersion);
                    assert!(is_fine, "{}:{}: {command}\n{error}", page.display(), number + 1);
                }
                valid += 1;
            }
        }
    }
    assert!(valid >= 40, "{valid} command lines");
}
