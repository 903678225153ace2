//! The files of the project, read once for all checks.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use crate::tidy::{
    prose::{self, Prose},
    rust::RustFile,
};

/// All checked files, in path order.
pub static PROJECT: LazyLock<Vec<SourceFile>> = LazyLock::new(load);

/// Folders and files that are checked.
const ROOTS: [&str; 12] = [
    "src",
    "tests",
    "benches",
    "docs",
    "migrations",
    "rules",
    "packaging",
    "README.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "Cargo.toml",
];
/// Folders that hold other people's files, generated files, or the words that the checks look for.
const SKIPPED: [&str; 5] = ["node_modules", "target", "snapshots", "corpus", "tidy"];

/// One file with what the checks need of it.
pub struct SourceFile {
    /// The path relative to the project root.
    pub path: String,
    pub text: String,
    /// Text written for people: comments, messages, pages, and docs.
    pub prose: Vec<Prose>,
    /// `None` unless the file is Rust.
    pub rust: Option<RustFile>,
}

impl SourceFile {
    /// The crate under `src/`, or the first folder of the path.
    pub fn room(&self) -> &str {
        let path = self.path.strip_prefix("src/").unwrap_or(&self.path);
        path.split('/').next().unwrap_or_default()
    }

    /// Returns whether the file contains only tests or benches.
    pub fn is_test(&self) -> bool {
        let is_test_part = |part: &str| matches!(part, "tests" | "benches" | "testkit" | "tests.rs" | "support.rs");
        self.path.split('/').any(is_test_part)
    }
}

/// One violation of a convention.
pub struct Finding {
    pub path: String,
    pub line: usize,
    /// The offending text.
    pub text: String,
    pub advice: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}\n    {}", self.path, self.line, self.text, self.advice)
    }
}

fn load() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for name in ROOTS {
        collect(&root.join(name), &mut paths);
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap();
        let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let rust = path.ends_with(".rs").then(|| RustFile::parse(&text).unwrap_or_else(|error| panic!("{path}: {error}")));
        let prose = rust.as_ref().map_or_else(|| prose::of_text(&path, &text), |rust| rust.prose.clone());
        SourceFile { path, text, prose, rust }
    };
    paths.into_iter().map(read).collect()
}

fn collect(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        if path.file_name().is_some_and(|name| SKIPPED.iter().any(|skipped| name == *skipped)) {
            return;
        }
        for entry in fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|suffix| ["rs", "html", "md", "toml", "sql"].iter().any(|known| suffix == *known)) {
        found.push(path.to_owned());
    }
}
