//! Plays the runbooks: runs the commands of each page in its order against the real binary, with the fault that the page is about, and
//! compares the output with the page. Times, ids, and the like may differ. `INSTA_UPDATE=always` writes the output to the page.
//!
//! Each page stands for a machine with the paths of the Debian package. Scripts stand in for `systemctl`, `journalctl`, and `sudo`.
//! `tests/systemd/run` plays pages that need the real ones.

mod delivery;
mod host;
mod machine;
mod servers;
mod source;

use super::*;
use machine::Machine;

/// The folder of the pages.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks")
}

/// The names of the pages that the tests play.
const PLAYED: [&str; 13] = [
    "credits-used-up",
    "dead-letters",
    "disk-full",
    "not-sent",
    "postgresql",
    "receiver-down",
    "restore",
    "rotate-api-key",
    "silence-weekend",
    "token-renamed",
    "two-instances",
    "upgrade",
    "wrong-clock",
];

#[test]
fn every_runbook_is_played_and_listed() {
    let index = fs::read_to_string(folder().join("README.md")).expect("the index");
    let names = fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut names: Vec<String> =
        names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).filter(|name| name != "README").collect();
    names.sort();
    assert_eq!(names, PLAYED);
    for name in names {
        let page = fs::read_to_string(folder().join(format!("{name}.md"))).expect("a page");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["What you see", "What it means", "What to do", "How you know that it is over"], "{name}");
        assert!(index.contains(&format!("({name}.md)")), "{name} is not in the index");
    }
}
