//! The tutorial is so: each file that it shows is written, each command that it shows is run, in their order and in one folder, and what
//! was said is compared. `INSTA_UPDATE=always` writes what was said into the page.

use std::{fs, path::Path};

use crate::binary::Desk;

/// A page, as far as it was replayed.
struct Replay {
    desk: Desk,
    page: String,
    commands: usize,
}

impl Replay {
    /// A block of commands: lines that begin with `$`, and what each says.
    fn console(&mut self, block: &[&str]) {
        for line in block.iter().filter_map(|line| line.strip_prefix("$ cliffwatch ")) {
            let ran = self.desk.run(line);
            let said = format!("{}{}", ran.err, ran.out);
            let said: String = said.lines().map(|line| format!("{}\n", line.trim_end())).collect();
            self.page.push_str(&format!("$ cliffwatch {line}\n{said}"));
            self.commands += 1;
        }
    }

    /// A file that the reader is asked to write.
    fn file(&mut self, name: &str, block: &[&str]) {
        let text: String = block.iter().map(|line| format!("{line}\n")).collect();
        self.desk.write(name, &text);
        self.page.push_str(&text);
    }
}

#[test]
fn every_step_of_the_tutorial_is_as_it_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorial.md");
    let written = fs::read_to_string(&path).expect("docs/tutorial.md");
    let mut replay = Replay { desk: Desk::new(), page: String::new(), commands: 0 };
    let mut file = None;
    let mut lines = written.lines();
    while let Some(line) = lines.next() {
        replay.page.push_str(&format!("{line}\n"));
        // **name**: the block that follows is that file.
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
        assert_eq!(written, replay.page, "`INSTA_UPDATE=always cargo test --test it tutorial` writes it anew");
    }
    assert!(replay.commands >= 8, "{} commands", replay.commands);
}
