//! The questions of `new rule` on a real terminal, which `script` of util-linux lends.

use std::io::Write as _;

use super::*;

/// Answers line by line; what stands on the terminal at the end, and the exit code. Without a last answer the terminal is closed
/// (Ctrl-D).
fn talk(desk: &Desk, columns: u32, answers: &[&str]) -> (String, i32) {
    let program = env!("CARGO_BIN_EXE_cliffwatch");
    let line = format!("stty -echo cols {columns}; exec {program} --color never --now 2026-07-01 new rule");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(desk.path("."));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux has `script`");
    let mut keys = child.stdin.take().expect("piped");
    let text: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    keys.write_all(text.as_bytes()).expect("typed");
    drop(keys);
    let output = child.wait_with_output().expect("it ends");
    (String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"), output.status.code().expect("a code"))
}

fn desk() -> Desk {
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokens = [\"*\"]\ngroups = { portfolio = [\"arbitrum\", \"aptos\"] }\n");
    desk.write("rules/r.toml", "[[rule]]\nalert = \"NoBuyback\"\non = \"token\"\nwhen = \"lastBuyback.daysSince > 90\"\n");
    desk
}

#[test]
fn a_dialogue_with_wrong_answers_ends_with_the_rule_that_was_meant() {
    let desk = desk();
    let answers =
        ["9", "4", "@portfolo", "arbitrum hyperliquid", "hyperliquid", "soon", "40", "lowd", "", "NoBuyback", "", "yes"];
    let (said, code) = talk(&desk, 80, &answers);
    assert_eq!(code, 0, "{said}");
    for problem in [
        "  a number from 1 to 6\n",
        "  there is no group @portfolo: did you mean @portfolio?\n",
        "a slug has no ' '; put commas between several\n",
        "  a number of days, from 1 to 3650\n",
        "  info, warning or critical\n",
        "  there is a rule NoBuyback already\n",
        "What is it called? [NoBuyback2] ",
    ] {
        assert!(said.contains(problem), "{problem:?} is not in\n{said}");
    }
    let (shown, question) = (said.find("alert  = \"NoBuyback2\""), said.find("Write it to rules/mine.toml? [yes] "));
    assert!(
        shown.is_some() && shown < said.find("would have been told") && said.find("would have been told") < question,
        "{said}"
    );
    let rule = fs::read_to_string(desk.path("rules/mine.toml")).expect("written");
    assert!(rule.contains("when   = 'lastBuyback.daysSince > 40'\ntokens = [\"hyperliquid\"]\n"), "{rule}");
    desk.run("check").ok();
    desk.run("test").ok();
}

#[test]
fn each_choice_leads_to_a_rule_on_a_narrow_terminal_too() {
    for (choice, questions) in [("1", 7), ("2", 5), ("3", 6), ("4", 6), ("5", 7), ("6", 7)] {
        let desk = desk();
        // Enter takes what is usual, to the end; one word for "which tokens" has a test made for it.
        let answers: Vec<&str> = std::iter::once(choice).chain(["@portfolio"]).chain(vec![""; questions - 2]).collect();
        let (said, code) = talk(&desk, 30, &answers);
        assert!(code == 0 && desk.path("rules/mine.toml").exists(), "{choice}: {code}\n{said}");
        desk.run("check").ok();
        desk.run("test").ok();
    }
}

#[test]
fn who_stops_answering_has_nothing_written() {
    for answers in [&[][..], &["1", "all"], &["2", "all", "", "", "no"], &["1", "\u{1b}[A", "\u{1b}[A", "@x", "@x", "@x"]] {
        let desk = desk();
        let (said, code) = talk(&desk, 80, answers);
        assert!(said.ends_with("nothing was written\n") || said.contains("and nothing was written"), "{said}");
        assert_eq!(code, if answers.ends_with(&["no"]) { 0 } else { 2 }, "{said}");
        assert!(!desk.path("rules/mine.toml").exists() && !desk.path("rules/tests").exists(), "{said}");
    }
}
