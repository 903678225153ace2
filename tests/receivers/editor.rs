//! Taplo, the TOML language server of editors, checks the files of `init` and our examples with their `#:schema` lines: valid files
//! pass, and a mistake is marked only in its line.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::receivers::outside;

/// The files of `init` in a temporary folder.
struct InitFolder(tempfile::TempDir);

impl InitFolder {
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

    /// The errors of Taplo in a file: line and message.
    fn errors(&self, name: &str) -> Vec<(usize, String)> {
        let ran = Command::new(outside::beside_python("taplo")).args(["lint", "--colors", "never"]).arg(self.path(name)).output();
        let said = String::from_utf8(ran.expect("it runs").stderr).expect("UTF-8");
        let mut errors = Vec::new();
        let mut lines = said.lines();
        while let Some(line) = lines.next() {
            let Some(words) = line.strip_prefix("error: ") else { continue };
            let place = lines.next().and_then(|place| place.rsplit(':').nth(1)).and_then(|line| line.parse().ok());
            errors.push((place.unwrap_or_else(|| panic!("{said}")), words.to_owned()));
        }
        errors
    }
}

fn toml_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let (folders, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
    let files = files.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.chain(folders.iter().flat_map(|folder| toml_files(folder))).collect()
}

#[test]
fn init_files_and_examples_match_their_schemas() {
    if outside::lacks_beside_python("taplo") {
        return;
    }
    let folder = InitFolder::new();
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules/examples");
    for from in toml_files(&rules) {
        let is_test = from.parent().is_some_and(|folder| folder.ends_with("tests"));
        let (kind, subfolder) = if is_test { ("tests", "rules/tests") } else { ("rules", "rules") };
        let up = if is_test { "../.." } else { ".." };
        let text = std::fs::read_to_string(&from).expect("read");
        let name = from.file_name().expect("a name").to_string_lossy();
        std::fs::write(folder.path(subfolder).join(&*name), format!("#:schema {up}/schemas/{kind}.schema.json\n{text}"))
            .expect("written");
    }
    let files = toml_files(folder.0.path());
    assert!(files.len() >= 13, "{files:?}");
    for file in files {
        let name = file.strip_prefix(folder.0.path()).expect("a path in the folder").to_string_lossy().into_owned();
        assert!(folder.read(&name).starts_with("#:schema "), "{name} names no schema");
        assert_eq!(folder.errors(&name), [], "{name}");
    }
}

#[test]
fn mistake_is_marked_only_in_its_line() {
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
        let folder = InitFolder::new();
        let text = folder.read(file);
        let (before, _) = text.split_once(right).unwrap_or_else(|| panic!("{file} has no {right}"));
        let line = before.lines().count() + usize::from(before.ends_with('\n'));
        std::fs::write(folder.path(file), text.replacen(right, wrong, 1)).expect("written");
        let errors: Vec<_> =
            folder.errors(file).into_iter().filter(|(_, said)| !said.contains("is a required property")).collect();
        assert!(!errors.is_empty(), "{wrong} passes");
        assert!(errors.iter().all(|(at, said)| *at == line && said.starts_with(words)), "{wrong} in line {line}: {errors:#?}");
    }
}
