use clap::CommandFactory;

use super::*;

#[test]
fn every_command_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    run(&ManArgs { dir: Some(folder.path().to_owned()) }, super::super::Cli::command()).expect("written");
    for (name, words) in [
        ("cliffwatch", "cliffwatch\\-outbox(1)"),
        ("cliffwatch-outbox-retry", "keeps the webhook id"),
        ("cliffwatch-plan", "\\-\\-tokens"),
    ] {
        let text = std::fs::read_to_string(folder.path().join(format!("{name}.1"))).expect(name);
        assert!(text.contains(words), "{name}: {text}");
    }
}
