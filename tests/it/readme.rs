//! What README and docs show is so: their examples pass the check, their commands exist, the mistake they show looks like that, and
//! their links lead somewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::binary::Desk;

/// The pages that people read, with their paths below the root.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(PathBuf::from).collect();
    for entry in fs::read_dir(root.join("docs")).expect("docs") {
        let page = Path::new("docs").join(entry.expect("an entry").file_name());
        // Beside them lie pictures.
        pages.extend(Some(page).filter(|page| page.extension().is_some_and(|ending| ending == "md")));
    }
    pages.sort();
    pages.into_iter().map(|page| (page.clone(), fs::read_to_string(root.join(&page)).expect("read"))).collect()
}

/// Blocks of code in a language, of README and docs.
fn blocks(language: &str) -> Vec<String> {
    let text: String = pages().into_iter().map(|(_, text)| text).collect();
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line == format!("```{language}") {
            blocks.push(lines.by_ref().take_while(|line| *line != "```").map(|line| format!("{line}\n")).collect());
        }
    }
    blocks
}

#[test]
fn its_rules_and_receivers_pass_the_check() {
    let toml = blocks("toml");
    let rules: Vec<&String> = toml.iter().filter(|text| text.contains("[[rule]]")).collect();
    let configs: Vec<&String> = toml.iter().filter(|text| text.contains("[[receiver]]")).collect();
    assert!(!rules.is_empty() && !configs.is_empty());
    for config in &configs {
        let desk = Desk::new();
        let watch = "[watch]\ntokens = [\"aptos\"]\ngroups = { portfolio = [\"aptos\"] }\n";
        // Programs of receivers lie where the documentation puts them on a real machine; here they are its examples.
        let config = config.replace("/usr/local/lib/cliffwatch/", &format!("{}/", desk.path("").display()));
        for name in ["sns.py", "logbook.py"].iter().filter(|name| config.contains(**name)) {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name);
            fs::copy(from, desk.path(name)).expect("copied with its permissions");
        }
        desk.write("cliffwatch.toml", &format!("{watch}{config}"));
        for (number, text) in rules.iter().enumerate() {
            desk.write(&format!("rules/{number}.toml"), text);
        }
        for word in config.split('"').filter(|word| word.starts_with("ops-") || word.starts_with("desk-")) {
            desk.write(word, "https://example.com/x\n");
        }
        let ran = desk.run("check --strict");
        assert_eq!(ran.code(), 0, "{}", ran.err);
    }
}

#[test]
fn its_commands_exist() {
    let desk = Desk::new();
    let known = crate::binary::commands(&desk.run("--help").ok());
    let mut named = 0;
    for line in blocks("sh").concat().lines() {
        let line = line.split('#').next().unwrap_or_default().trim().trim_start_matches("sudo ");
        let line = line.strip_prefix("cargo run --release -- ").or_else(|| line.strip_prefix("cliffwatch "));
        let Some(command) = line.and_then(|line| line.split_whitespace().next()) else { continue };
        assert!(
            known.iter().any(|name| name == command),
            "README and docs name `cliffwatch {command}`, which is not in {known:?}"
        );
        named += 1;
    }
    assert!(named >= 12, "{named} commands were found");
}

#[test]
fn its_data_service_is_filled_with_the_bundled_schedules_and_given_a_key() {
    let desk = Desk::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let said = desk.run(&format!("import {}", data.display())).ok();
    assert!(said.contains("tokens"), "{said}");
    let added = desk.run("keys add desk --monthly-limit 5000");
    let key = added.out.trim().to_owned();
    assert!(key.len() >= 20 && !key.contains(char::is_whitespace), "the key stands alone on standard output: {:?}", added.out);
    let listed = desk.run("keys list").ok();
    assert!(listed.contains("desk") && listed.contains("5000") && !listed.contains(&key), "{listed}");
    let stored = std::fs::read(desk.path("service.db")).expect("read");
    assert!(!stored.windows(key.len()).any(|part| part == key.as_bytes()), "only its hash is stored");
}

#[test]
fn the_mistake_that_it_shows_looks_like_that() {
    let shown = blocks("text").into_iter().find(|text| text.starts_with("error: unknown key")).expect("a mistake");
    let desk = Desk::new();
    desk.write("cliffwatch.toml", "[watch]\ntokns = \"arbitrum\"\n");
    let ran = desk.run("check");
    assert!(ran.err.starts_with(&shown), "the docs show\n{shown}\nand the program\n{}", ran.err);
}

/// The anchors of a page's headings, as renderers of Markdown name them.
fn anchors(text: &str) -> Vec<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn links_lead_somewhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
            let target = if path.is_empty() { root.join(&page) } else { root.join(&page).parent().expect("a folder").join(path) };
            assert!(target.exists(), "{} links to {link}, which is not there", page.display());
            if let Some(anchor) = anchor {
                let anchors = anchors(&fs::read_to_string(&target).expect("a page"));
                assert!(anchors.iter().any(|known| known == anchor), "{} links to {link}; there are {anchors:?}", page.display());
            }
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen} links were found");
}

#[test]
fn the_front_page_is_short() {
    let (_, text) = pages().into_iter().find(|(page, _)| page == Path::new("README.md")).expect("a README");
    assert!(text.lines().count() < 200);
}

#[test]
fn the_map_names_files_that_are_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (page, text) in pages() {
        for path in
            text.split('`').filter(|word| ["src/", "tests/", "benches/", "migrations/"].iter().any(|top| word.starts_with(top)))
        {
            if path.contains(['<', '*', ' ', '…']) {
                continue;
            }
            assert!(root.join(path).exists(), "{} names {path}, which is not there", page.display());
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen} paths were found");
}

/// The words in code of the first column of a table, from the line that begins with `head` on.
fn column(page: &str, head: &str) -> std::collections::BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect("read");
    let rows = text.lines().skip_while(|line| !line.starts_with(head)).skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.split('|').nth(1).map(str::to_owned)).collect::<Vec<_>>();
    cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn every_key_of_a_rule_and_of_any_receiver_is_in_its_table() {
    let desk = Desk::new();
    let schema =
        |kind: &str| -> serde_json::Value { serde_json::from_str(&desk.run(&format!("schema {kind}")).ok()).expect("JSON") };
    let keys = |schema: &serde_json::Value, path: &str| -> std::collections::BTreeSet<String> {
        schema.pointer(path).and_then(serde_json::Value::as_object).expect(path).keys().cloned().collect()
    };
    assert_eq!(column("docs/rules.md", "| key | what |"), keys(&schema("rules"), "/properties/rule/items/properties"));
    let receiver = keys(&schema("config"), "/properties/receiver/items/properties");
    for (head, least) in [("| key of any receiver |", 6), ("| key of a webhook |", 8)] {
        let named = column("docs/receivers.md", head);
        assert!(named.len() >= least && named.is_subset(&receiver), "{named:?} of {receiver:?}");
    }
}

/// The arguments of a call whose parenthesis was opened just before `text`, up to the one that is a text.
fn arguments(text: &str) -> Vec<String> {
    let (mut all, mut depth, mut is_text) = (vec![String::new()], 0, false);
    for c in text.chars() {
        let last = all.last_mut().expect("one");
        match c {
            '"' if depth == 0 && last.trim().is_empty() => break,
            '"' => is_text = !is_text,
            _ if is_text => {}
            ')' | ']' | '}' if depth == 0 => break,
            ',' if depth == 0 => {
                all.push(String::new());
                continue;
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        last.push(c);
    }
    all
}

#[test]
fn the_log_has_the_fields_of_its_table_and_no_others() {
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("src").map(|entry| entry.expect("an entry").path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut written = std::collections::BTreeSet::new();
    for path in sources(&root.join("src")) {
        let is_code = path.extension().is_some_and(|ending| ending == "rs");
        if !is_code || path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("read");
        for call in text.split("tracing::").skip(1) {
            let Some((level, rest)) = call.split_once("!(") else { continue };
            if !["trace", "debug", "info", "warn", "error"].contains(&level) {
                continue;
            }
            for argument in arguments(rest) {
                let name = argument.split('=').next().unwrap_or_default().trim().trim_start_matches(['%', '?']);
                if !name.is_empty() && !name.starts_with("target:") {
                    written.insert(name.to_owned());
                }
            }
        }
    }
    let page = fs::read_to_string(root.join("docs/operation.md")).expect("read");
    let (_, table) = page.split_once("### The log").expect("a heading");
    let (table, _) = table.split_once("No secret is in any").expect("its end");
    let rows = table.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
    let documented: std::collections::BTreeSet<String> =
        rows.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect();
    assert!(written.len() > 40, "{written:?}");
    assert_eq!(written, documented, "left: in the code; right: in docs/operation.md");
}
