//! Compresses the bundled data, which then takes a twenty-fourth of its size in the program: the folder `data/` into `data.gz`, and the dated
//! versions in `data/revisions` into `versions.gz`.
//!
//! Both contain a line with path and size in bytes before the text of each file. The same files give the same bytes.

use std::{
    env, fs,
    fs::File,
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

/// The folders of `data/` with one file per token, in the order of an import. A test compares them with those of a data folder on disk.
const TOKEN_FOLDERS: [&str; 5] = ["unlock-events", "allocations", "daily-emission", "burn", "buyback"];

fn main() -> io::Result<()> {
    let variable = |name| env::var_os(name).map(PathBuf::from).unwrap_or_default();
    let (root, output) = (variable("CARGO_MANIFEST_DIR").join("../../data"), variable("OUT_DIR"));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed={}", root.display());
    let mut files = vec!["tokens.json".to_owned(), "prices.json".to_owned()];
    for folder in TOKEN_FOLDERS {
        files.extend(names(&root.join(folder), ".json")?.into_iter().map(|name| format!("{folder}/{name}")));
    }
    files.push("investors.json".to_owned());
    pack(&root, &files, &output.join("data.gz"))?;
    let versions = root.join("revisions");
    pack(&versions, &names(&versions, ".jsonl")?, &output.join("versions.gz"))
}

/// Returns the names with this ending in a folder, sorted.
fn names(folder: &Path, ending: &str) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(ending) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn pack(root: &Path, files: &[String], packed: &Path) -> io::Result<()> {
    let mut packed = GzEncoder::new(File::create(packed)?, Compression::best());
    for path in files {
        let text = fs::read(root.join(path))?;
        writeln!(packed, "{path} {}", text.len())?;
        packed.write_all(&text)?;
    }
    packed.finish()?.flush()
}
