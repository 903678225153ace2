//! Taplo, which editors ask about TOML, reads the files that `init` writes and our examples by their `#:schema` lines: right ones
//! pass, and a slip is marked where it is and nowhere else.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outside;

/// Files with the schemas that they name, as `init` lays them.
struct Desk(tempfile::TempDir);

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let made = Command::new(env!("CARGO_BIN_EXE_cliffwatch")).arg("init").arg(folder.path()).output().expect("it runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect(name)
    }

    /// What Taplo says of a file: line and words of each mark.
    fn marks(&self, name: &str) -> Vec<(usize, String)> {
        let ran = Command::new(outside::beside_python("taplo")).args(["lint", "--colors", "never"]).arg(self.path(name)).output();
        let said = String::from_utf8(ran.expect("it runs").stderr).expect("UTF-8");
        let mut marks = Vec::new();
        let mut lines = said.lines();
        while let Some(line) = lines.next() {
            let Some(words) = line.strip_prefix("error: ") else { continue };
            let place = lines.next().and_then(|place| place.rsplit(':').nth(1)).and_then(|line| line.parse().ok());
            marks.push((place.unwrap_or_else(|| panic!("{said}")), words.to_owned()));
        }
        marks
    }
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.chain(folders.iter().flat_map(|folder| toml_files(folder))).collect()
}

#[test]
fn what_init_writes_and_our_examples_pass_by_the_schemas_that_they_name() {
    if outside::lacks_beside_python("taplo") {
        return;
    }
    let desk = Desk::new();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/examples");
    for from in toml_files(&rules) {
        let is_test = from.parent().is_some_and(|folder| folder.ends_with("tests"));
        let (kind, folder) = if is_test { ("tests", "rules/tests") } else { ("rules", "rules") };
        let up = if is_test { "../.." } else { ".." };
        let text = std::fs::read_to_string(&from).expect("read");
        let name = from.file_name().expect("a name").to_string_lossy();
        std::fs::write(desk.path(folder).join(&*name), format!("#:schema {up}/schemas/{kind}.schema.json\n{text}"))
            .expect("written");
    }
    let files = toml_files(desk.0.path());
    assert!(files.len() >= 13, "{files:?}");
    for file in files {
        let name = file.strip_prefix(desk.0.path()).expect("below it").to_string_lossy().into_owned();
        assert!(desk.read(&name).starts_with("#:schema "), "{name} names no schema");
        assert_eq!(desk.marks(&name), [], "{name}");
    }
}

#[test]
fn a_slip_is_marked_where_it_is() {
    if outside::lacks_beside_python("taplo") {
        return;
    }
    let cases = [
        ("rules/unlocks.toml", "within = [", "wihtin = [", "False schema does not allow"),
        ("rules/unlocks.toml", "on     = \"unlock\"", "on     = \"unlok\"", "\"unlok\" is not one of [\"unlock\","),
        ("rules/unlocks.toml", "within = [\"7d\"]", "within = [\"7d\", \"7 parsecs\"]", "\"7 parsecs\" does not match"),
        ("rules/unlocks.toml", "within = [\"7d\"]", "within = 7", "7 is not of types"),
        ("rules/unlocks.toml", "severity = \"info\"", "severity = 3", "3 is not of type \"string\""),
        ("rules/tests/unlocks.toml", "start = ", "strat = ", "False schema does not allow"),
        ("cliffwatch.toml", "tokens = [", "tokns = [", "False schema does not allow"),
        ("cliffwatch.toml", "removal_confirmations = 2", "removal_confirmations = \"2\"", "\"2\" is not of type \"integer\""),
        (
            "cliffwatch.toml",
            "paths = [\"rules/*.toml\"]",
            "paths = \"rules/*.toml\"",
            "\"rules/*.toml\" is not of type \"array\"",
        ),
    ];
    for (file, right, wrong, words) in cases {
        let desk = Desk::new();
        let text = desk.read(file);
        let (before, _) = text.split_once(right).unwrap_or_else(|| panic!("{file} has no {right}"));
        let line = before.lines().count() + usize::from(before.ends_with('\n'));
        std::fs::write(desk.path(file), text.replacen(right, wrong, 1)).expect("written");
        let marks: Vec<_> = desk.marks(file).into_iter().filter(|(_, said)| !said.contains("is a required property")).collect();
        assert!(!marks.is_empty(), "{wrong} passes");
        assert!(marks.iter().all(|(at, said)| *at == line && said.starts_with(words)), "{wrong} in line {line}: {marks:#?}");
    }
}
