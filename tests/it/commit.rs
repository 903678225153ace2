//! `--version` prints the commit of the build, which needs no repository.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::it::binary::Workdir;

const HASH: &str = "0123456789abcdef0123456789abcdef01234567";

/// Returns the output of git in this repository. `None` outside a repository.
fn git(arguments: &[&str]) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    root.join(".git").exists().then_some(())?;
    let output = Command::new("git").arg("-C").arg(root).args(arguments).env("TZ", "UTC").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[test]
fn version_contains_the_commit_and_its_date() {
    let workdir = Workdir::new();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(workdir.run("-V").ok(), format!("cliffwatch {version}\n"));
    let said = workdir.run("--version").ok();
    if git(&["log", "-1"]).is_none() {
        assert!(said.starts_with(&format!("cliffwatch {version}")), "{said}");
        return;
    }
    // Compare with the commit in the output, not with HEAD, which may be newer than the build.
    let hash = said.split(['(', ' ']).nth(3).unwrap_or_default();
    let day = git(&["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%cd", hash]);
    assert_eq!(hash.len(), 12, "{said}");
    assert_eq!(Some(said.clone()), day.map(|day| format!("cliffwatch {version} ({hash} {day})\n")));
}

/// The build script, compiled alone in a temporary folder.
struct Script {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Script {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("script");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/build.rs");
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let built = Command::new(compiler).args(["--edition", "2024", "-o"]).arg(&program).arg(source).status().expect("rustc");
        assert!(built.success());
        fs::create_dir(folder.path().join("src")).expect("a folder");
        Self { folder, program }
    }

    /// Runs the script and returns the commit and the date that it passes to the compiler.
    fn run(&self, environment: &[(&str, &str)]) -> (String, String) {
        let mut command = Command::new(&self.program);
        for variable in ["CLIFFWATCH_COMMIT", "SOURCE_DATE_EPOCH"] {
            command.env_remove(variable);
        }
        let output =
            command.env("CARGO_MANIFEST_DIR", self.folder.path()).envs(environment.iter().copied()).output().expect("runs");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let value = |name: &str| {
            let begin = format!("cargo:rustc-env={name}=");
            text.lines().find_map(|line| line.strip_prefix(&begin)).expect(name).to_owned()
        };
        (value("CLIFFWATCH_COMMIT"), value("CLIFFWATCH_COMMIT_DATE"))
    }

    fn write_archive_info(&self, text: &str) {
        fs::write(self.folder.path().join("src/commit.txt"), text).expect("written");
    }
}

#[test]
fn commit_comes_from_the_archive_or_the_environment_without_a_repository() {
    let script = Script::new();
    let pair = |hash: &str, day: &str| (hash.to_owned(), day.to_owned());
    assert_eq!(script.run(&[]), pair("", ""));
    // A placeholder that `git archive` did not expand is ignored.
    script.write_archive_info("$Format:%H %ct$\n");
    assert_eq!(script.run(&[]), pair("", ""));
    assert_eq!(script.run(&[("SOURCE_DATE_EPOCH", "1773057600")]), pair("", "2026-03-09"));
    assert_eq!(script.run(&[("CLIFFWATCH_COMMIT", HASH)]), pair("0123456789ab", ""));
    assert_eq!(script.run(&[("CLIFFWATCH_COMMIT", "not; a hash")]), pair("", ""));
    let both = [("CLIFFWATCH_COMMIT", HASH), ("SOURCE_DATE_EPOCH", "1709164799")];
    assert_eq!(script.run(&both), pair("0123456789ab", "2024-02-28"));
    // The date of the archive takes precedence over `SOURCE_DATE_EPOCH`.
    script.write_archive_info(&format!("{HASH} 1709164800\n"));
    assert_eq!(script.run(&[("SOURCE_DATE_EPOCH", "0")]), pair("0123456789ab", "2024-02-29"));
    for (seconds, day) in [
        ("0", "1970-01-01"),
        ("-1", "1969-12-31"),
        ("951782400", "2000-02-29"),
        ("4107542400", "2100-03-01"),
        ("253402300799", "9999-12-31"),
        ("253402300800", ""),
        ("9223372036854775807", ""),
        ("soon", ""),
    ] {
        script.write_archive_info(&format!("{HASH} {seconds}\n"));
        assert_eq!(script.run(&[]).1, day, "{seconds}");
    }
}
