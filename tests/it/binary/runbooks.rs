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
use machine::{DATABASE, Machine};

/// The folder of the pages.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks")
}

/// The code of the tests, each of which names its page.
const TESTS: [&str; 4] = [
    include_str!("runbooks/delivery.rs"),
    include_str!("runbooks/host.rs"),
    include_str!("runbooks/servers.rs"),
    include_str!("runbooks/source.rs"),
];

#[test]
fn every_runbook_is_played_and_listed() {
    let index = fs::read_to_string(folder().join("README.md")).expect("the index");
    let names = fs::read_dir(folder()).expect("the folder").map(|entry| entry.expect("an entry").path());
    let names: Vec<String> =
        names.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).filter(|name| name != "README").collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(TESTS.iter().any(|text| text.contains(&format!("(\"{name}\")"))), "no test plays {name}");
        let page = fs::read_to_string(folder().join(format!("{name}.md"))).expect("a page");
        let sections: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
        assert_eq!(sections, ["What you see", "What it means", "What to do", "How you know that it is over"], "{name}");
        assert!(index.contains(&format!("({name}.md)")), "{name} is not in the index");
    }
}
