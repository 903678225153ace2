//! The prompts of `new rule` on a real terminal, which `script` of util-linux provides.

use std::io::Write as _;

use super::*;

/// Types the responses line by line, then closes the terminal (Ctrl-D). Returns the terminal output and the exit code.
fn run_dialogue(workdir: &Workdir, columns: u32, responses: &[&str]) -> (String, i32) {
    let program = env!("CARGO_BIN_EXE_cliffwatch");
    let line = format!("stty -echo cols {columns}; exec {program} --color never --now 2026-07-01 new rule");
    let mut command = Command::new("script");
    command.args(["--quiet", "--return", "--command", &line, "/dev/null"]).current_dir(workdir.path("."));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("util-linux has `script`");
    let mut keys = child.stdin.take().expect("piped");
    let text: String = responses.iter().map(|response| format!("{response}\n")).collect();
    keys.write_all(text.as_bytes()).expect("typed");
    drop(keys);
    let output = child.wait_with_output().expect("it exits");
    (String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n"), output.status.code().expect("a code"))
}

fn workdir() -> Workdir {
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", "[watch]\ntokens = [\"*\"]\ngroups = { portfolio = [\"arbitrum\", \"aptos\"] }\n");
    workdir.write("rules/r.toml", "[[rule]]\nalert = \"NoBuyback\"\non = \"token\"\nwhen = \"lastBuyback.daysSince > 90\"\n");
    workdir
}

#[test]
fn dialogue_with_invalid_input_ends_with_a_valid_rule() {
    let workdir = workdir();
    let responses =
        ["9", "4", "@portfolo", "arbitrum hyperliquid", "hyperliquid", "soon", "40", "lowd", "", "NoBuyback", "", "yes"];
    let (said, code) = run_dialogue(&workdir, 80, &responses);
    assert_eq!(code, 0, "{said}");
    for problem in [
        "  enter a number from 1 to 6\n",
        "  unknown group @portfolo: did you mean @portfolio?\n",
        "a slug cannot contain ' '; separate slugs by commas\n",
        "  enter a number of days from 1 to 3650\n",
        "  enter info, warning, or critical\n",
        "  a rule with the name NoBuyback already exists\n",
        "Name of the alert [NoBuyback2] ",
    ] {
        assert!(said.contains(problem), "{problem:?} is not in\n{said}");
    }
    let (shown, prompt) = (said.find("alert  = \"NoBuyback2\""), said.find("Write the rule to rules/mine.toml? [yes] "));
    assert!(
        shown.is_some() && shown < said.find("Messages over the last year") && said.find("Messages over the last year") < prompt,
        "{said}"
    );
    let rule = fs::read_to_string(workdir.path("rules/mine.toml")).expect("written");
    assert!(rule.contains("when   = 'lastBuyback.daysSince > 40'\ntokens = [\"hyperliquid\"]\n"), "{rule}");
    workdir.run("check").ok();
    workdir.run("test").ok();
}

#[test]
fn every_choice_writes_a_rule_on_a_narrow_terminal() {
    for (choice, prompts) in [("1", 7), ("2", 5), ("3", 6), ("4", 6), ("5", 7), ("6", 7)] {
        let workdir = workdir();
        // Empty input accepts the default. A token selection makes the command write a rule test too.
        let responses: Vec<&str> = std::iter::once(choice).chain(["@portfolio"]).chain(vec![""; prompts - 2]).collect();
        let (said, code) = run_dialogue(&workdir, 30, &responses);
        assert!(code == 0 && workdir.path("rules/mine.toml").exists(), "{choice}: {code}\n{said}");
        workdir.run("check").ok();
        workdir.run("test").ok();
    }
}

#[test]
fn aborted_dialogue_writes_no_file() {
    for responses in [&[][..], &["1", "all"], &["2", "all", "", "", "no"], &["1", "\u{1b}[A", "\u{1b}[A", "@x", "@x", "@x"]] {
        let workdir = workdir();
        let (said, code) = run_dialogue(&workdir, 80, responses);
        assert!(said.contains("no files were written"), "{said}");
        assert_eq!(code, if responses.ends_with(&["no"]) { 0 } else { 2 }, "{said}");
        assert!(!workdir.path("rules/mine.toml").exists() && !workdir.path("rules/tests").exists(), "{said}");
    }
}
