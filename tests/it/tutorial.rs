//! Replays the tutorial: writes its files, runs its commands in order in one folder, and compares the output with the page.
//! `INSTA_UPDATE=always` writes the output to the page.

use std::{fs, path::Path};

use crate::it::binary::Workdir;

/// The page as replayed so far.
struct Replay {
    workdir: Workdir,
    page: String,
    commands: usize,
}

impl Replay {
    /// Runs the commands of a block: lines that start with `$`.
    fn console(&mut self, block: &[&str]) {
        for line in block.iter().filter_map(|line| line.strip_prefix("$ cliffwatch ")) {
            let ran = self.workdir.run(line);
            let said = format!("{}{}", ran.err, ran.out);
            let said: String = said.lines().map(|line| format!("{}\n", line.trim_end())).collect();
            self.page.push_str(&format!("$ cliffwatch {line}\n{said}"));
            self.commands += 1;
        }
    }

    /// Writes a file of the tutorial.
    fn file(&mut self, name: &str, block: &[&str]) {
        let text: String = block.iter().map(|line| format!("{line}\n")).collect();
        self.workdir.write(name, &text);
        self.page.push_str(&text);
    }
}

#[test]
fn tutorial_steps_work_as_documented() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let written = fs::read_to_string(&path).expect("docs/tutorial.md");
    let mut replay = Replay { workdir: Workdir::new(), page: String::new(), commands: 0 };
    let mut file = None;
    let mut lines = written.lines();
    while let Some(line) = lines.next() {
        replay.page.push_str(&format!("{line}\n"));
        // **name**: the next block is the content of this file.
        if let Some(name) = line.strip_prefix("**").and_then(|line| line.strip_suffix("**")) {
            file = Some(name.to_owned());
        }
        let Some(language) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        match (language, file.take()) {
            ("console", _) => replay.console(&block),
            (_, Some(name)) => replay.file(&name, &block),
            _ => block.iter().for_each(|line| replay.page.push_str(&format!("{line}\n"))),
        }
        replay.page.push_str("```\n");
    }
    if std::env::var("INSTA_UPDATE").is_ok_and(|word| word == "always") {
        fs::write(&path, &replay.page).expect("written");
    } else {
        assert_eq!(written, replay.page, "`INSTA_UPDATE=always cargo test --test it tutorial` updates the page");
    }
    assert!(replay.commands >= 8, "{} commands", replay.commands);
}
