use std::os::unix::fs::PermissionsExt;

use super::*;
use daemon::config::{Environment, load};
use model::diagnostic;

/// Writes a secret that only its owner can read.
fn private(path: &Path) {
    fs::write(path, "k").unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn written_config_passes_check() {
    let directory = tempfile::tempdir().unwrap();
    let written = write_all(directory.path()).unwrap();
    assert_eq!(written.len(), 11);
    private(&directory.path().join("api-key"));
    let loaded = load(Some(&directory.path().join("cliffwatch.toml")), &Environment::default());
    assert_eq!(diagnostic::render(&loaded.diagnostics, &loaded.sources, false), "");
    assert!(loaded.config.is_some());
}

#[test]
fn each_file_names_an_existing_schema() {
    let directory = tempfile::tempdir().unwrap();
    let written = write_all(directory.path()).unwrap();
    let mut seen = 0;
    for path in written.iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let text = fs::read_to_string(path).unwrap();
        let named = text.lines().next().and_then(|line| line.strip_prefix("#:schema ")).unwrap();
        let schema = fs::read_to_string(path.parent().unwrap().join(named)).unwrap();
        let title = serde_json::from_str::<serde_json::Value>(&schema).unwrap()["title"].as_str().unwrap().to_owned();
        assert!(title.starts_with("Cliffwatch"), "{title}");
        seen += 1;
    }
    assert_eq!(seen, 7);
}

#[test]
fn commented_examples_pass_check() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cliffwatch.toml");
    // A commented key is written `#key = …`, prose `# …`.
    let text: String = fill(TEMPLATE)
        .replace("@database@", "cliffwatch.db")
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') && !rest.is_empty() => format!("{rest}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    for name in ["api-key", "ops-url", "ops-secret", "desk-password", "http-token"] {
        private(&directory.path().join(name));
    }
    fs::write(&path, &text).unwrap();
    let loaded = load(Some(&path), &Environment::default());
    assert_eq!(diagnostic::render(&loaded.diagnostics, &loaded.sources, false), "");
    assert_eq!(loaded.config.unwrap().receivers.len(), 3);
    insta::assert_snapshot!(fill(TEMPLATE));
}

#[test]
fn each_run_writes_a_new_private_token() {
    let token = || {
        let directory = tempfile::tempdir().unwrap();
        write_all(directory.path()).unwrap();
        let path = directory.path().join("http-token");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let config = load(Some(&directory.path().join("cliffwatch.toml")), &Environment::default()).config.unwrap();
        config.http.bearer().resolve().unwrap().unwrap().expose().to_owned()
    };
    let (one, other) = (token(), token());
    assert!(one.len() >= 32 && one != other, "{one} {other}");
}

#[test]
fn existing_files_are_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("rules")).unwrap();
    fs::write(directory.path().join("rules/changes.toml"), "mine").unwrap();
    let error = write_all(directory.path()).unwrap_err().to_string();
    assert!(error.contains("changes.toml already exists"), "{error}");
    assert_eq!(fs::read_to_string(directory.path().join("rules/changes.toml")).unwrap(), "mine");
    assert!(!directory.path().join("cliffwatch.toml").exists());
}

#[test]
fn system_directory_below_another_root_gets_system_config() {
    let root = tempfile::tempdir().unwrap();
    let directory = root.path().join("etc/cliffwatch");
    write_all(&directory).unwrap();
    let text = fs::read_to_string(directory.join("cliffwatch.toml")).unwrap();
    assert!(text.contains("\npath = \"/var/lib/cliffwatch/cliffwatch.db\"\n"), "{text}");
    assert!(text.contains("\n#api_key_file"), "{text}");
    assert!(!text.contains(root.path().to_str().unwrap()), "{text}");
}
