//! README and docs match the program: examples pass `check`, commands exist, shown diagnostics are real, and links resolve.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::it::binary::Workdir;

/// All documentation pages: path from the root, and text.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages: Vec<PathBuf> = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].iter().map(PathBuf::from).collect();
    for folder in ["docs", "docs/runbooks"] {
        for entry in fs::read_dir(root.join(folder)).expect("docs") {
            let page = Path::new(folder).join(entry.expect("an entry").file_name());
            // The folder also contains images.
            pages.extend(Some(page).filter(|page| page.extension().is_some_and(|extension| extension == "md")));
        }
    }
    pages.sort();
    pages.into_iter().map(|page| (page.clone(), fs::read_to_string(root.join(&page)).expect("read"))).collect()
}

/// The code blocks of a language in all pages.
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
fn documented_rules_and_receivers_pass_check() {
    let toml = blocks("toml");
    let rules: Vec<&String> = toml.iter().filter(|text| text.contains("[[rule]]")).collect();
    let configs: Vec<&String> = toml.iter().filter(|text| text.contains("[[receiver]]")).collect();
    assert!(!rules.is_empty() && !configs.is_empty());
    for config in &configs {
        let workdir = Workdir::new();
        let watch = "[watch]\ntokens = [\"aptos\"]\ngroups = { portfolio = [\"aptos\"] }\n";
        // The docs install receiver programs in a system folder. Use the example programs instead.
        let config = config.replace("/usr/local/lib/cliffwatch/", &format!("{}/", workdir.path("").display()));
        for name in ["sns.py", "logbook.py"].iter().filter(|name| config.contains(**name)) {
            let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name);
            fs::copy(from, workdir.path(name)).expect("copied with its permissions");
        }
        workdir.write("cliffwatch.toml", &format!("{watch}{config}"));
        for (number, text) in rules.iter().enumerate() {
            workdir.write(&format!("rules/{number}.toml"), text);
        }
        for word in config.split('"').filter(|word| word.starts_with("ops-") || word.starts_with("desk-")) {
            workdir.write(word, "https://example.com/x\n");
        }
        let ran = workdir.run("check --strict");
        assert_eq!(ran.code(), 0, "{}", ran.err);
    }
}

#[test]
fn documented_commands_exist() {
    let workdir = Workdir::new();
    let known = crate::it::binary::commands(&workdir.run("--help").ok());
    let mut named = 0;
    for line in blocks("sh").concat().lines() {
        let line = line.split('#').next().unwrap_or_default().trim().trim_start_matches("sudo ");
        let line = line.strip_prefix("cargo run -- ").or_else(|| line.strip_prefix("cliffwatch "));
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
fn documented_data_service_setup_works() {
    let workdir = Workdir::new();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let said = workdir.run(&format!("import {}", data.display())).ok();
    assert!(said.contains("tokens"), "{said}");
    let added = workdir.run("keys add desk --monthly-limit 5000");
    let key = added.out.trim().to_owned();
    assert!(key.len() >= 20 && !key.contains(char::is_whitespace), "standard output contains more than the key: {:?}", added.out);
    let listed = workdir.run("keys list").ok();
    assert!(listed.contains("desk") && listed.contains("5000") && !listed.contains(&key), "{listed}");
    let stored = std::fs::read(workdir.path("service.db")).expect("read");
    assert!(!stored.windows(key.len()).any(|part| part == key.as_bytes()), "only its hash is stored");
}

#[test]
fn documented_diagnostic_matches_the_program() {
    let shown = blocks("text").into_iter().find(|text| text.starts_with("error: unknown key")).expect("a diagnostic");
    let workdir = Workdir::new();
    workdir.write("cliffwatch.toml", "[watch]\ntokns = \"arbitrum\"\n");
    let ran = workdir.run("check");
    assert!(ran.err.starts_with(&shown), "the docs show\n{shown}\nand the program\n{}", ran.err);
}

/// The anchors that Markdown renderers generate for the headings of a page.
fn anchors(text: &str) -> Vec<String> {
    let headings =
        text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
    headings.map(|heading| heading.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn links_resolve() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (page, text) in pages() {
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.trim_start_matches('<').starts_with("http") {
                continue;
            }
            let (path, anchor) = link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)));
            let target = if path.is_empty() { root.join(&page) } else { root.join(&page).parent().expect("a folder").join(path) };
            assert!(target.exists(), "{} links to {link}, which does not exist", page.display());
            if let Some(anchor) = anchor {
                let anchors = anchors(&fs::read_to_string(&target).expect("a page"));
                assert!(
                    anchors.iter().any(|known| known == anchor),
                    "{} links to {link}, but has the anchors {anchors:?}",
                    page.display()
                );
            }
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen} links were found");
}

#[test]
fn readme_is_short() {
    let (_, text) = pages().into_iter().find(|(page, _)| page == Path::new("README.md")).expect("a README");
    assert!(text.lines().count() < 200);
}

#[test]
fn mentioned_files_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut seen = 0;
    for (page, text) in pages() {
        for path in
            text.split('`').filter(|word| ["src/", "tests/", "benches/", "migrations/"].iter().any(|top| word.starts_with(top)))
        {
            if path.contains(['<', '*', ' ', '…']) {
                continue;
            }
            assert!(root.join(path).exists(), "{} mentions {path}, which does not exist", page.display());
            seen += 1;
        }
    }
    assert!(seen >= 30, "{seen} paths were found");
}

/// The code words in the first column of the table whose first line starts with `first_line`.
fn column(page: &str, first_line: &str) -> std::collections::BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(page)).expect("read");
    let rows = text.lines().skip_while(|line| !line.starts_with(first_line)).skip(2).take_while(|line| line.starts_with('|'));
    let cells = rows.filter_map(|line| line.split('|').nth(1).map(str::to_owned)).collect::<Vec<_>>();
    cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

#[test]
fn rule_and_receiver_keys_are_documented() {
    let workdir = Workdir::new();
    let schema =
        |kind: &str| -> serde_json::Value { serde_json::from_str(&workdir.run(&format!("schema {kind}")).ok()).expect("JSON") };
    let keys = |schema: &serde_json::Value, path: &str| -> std::collections::BTreeSet<String> {
        schema.pointer(path).and_then(serde_json::Value::as_object).expect(path).keys().cloned().collect()
    };
    assert_eq!(column("docs/rules.md", "| Key | Description |"), keys(&schema("rules"), "/properties/rule/items/properties"));
    let receiver = keys(&schema("config"), "/properties/receiver/items/properties");
    for (first_line, least) in [("| Key of every receiver |", 6), ("| Key of a webhook |", 8)] {
        let named = column("docs/receivers.md", first_line);
        assert!(named.len() >= least && named.is_subset(&receiver), "{named:?} of {receiver:?}");
    }
}

/// The arguments of a call up to its first string literal. `text` starts after the opening parenthesis.
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
fn log_fields_match_the_documented_table() {
    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).expect("src").map(|entry| entry.expect("an entry").path());
        let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        files.into_iter().chain(folders.iter().flat_map(|folder| sources(folder))).collect()
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut written = std::collections::BTreeSet::new();
    for path in sources(&root.join("src")) {
        let is_code = path.extension().is_some_and(|extension| extension == "rs");
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
