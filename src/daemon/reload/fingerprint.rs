//! Detects changed files.

use std::{io::Read as _, path::Path};

use xxhash_rust::xxh3::Xxh3;

use super::Origin;
use model::config::Config;
use tools::ruletest;

/// The number of bytes of a file that are hashed. Larger files are rejected anyway.
const MAX_HASHED_BYTES: u64 = 8 << 20;

/// Returns a hash over the names and contents of the config file, the file with positions, the rule files, and their
/// tests.
pub fn fingerprint(config: &Config, origin: Option<&Origin>, base_dir: &Path) -> u128 {
    let mut hash = Xxh3::new();
    let mut add = |file: &Path, text: &[u8]| {
        let name = file.as_os_str().as_encoded_bytes();
        for part in [name, text] {
            hash.update(&(part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    };
    if let Some(origin) = origin {
        add(&origin.path, &bytes(&origin.path));
    }
    let files = rules::read_files(&config.rules.paths, base_dir);
    for source in &files.files {
        add(&source.file, source.text.as_bytes());
    }
    // A file that becomes unreadable changes the fingerprint too.
    for problem in &files.diagnostics {
        add(&problem.file, problem.message.as_bytes());
    }
    for file in ruletest::files_beside(config, base_dir) {
        add(&file, &bytes(&file));
    }
    if let Some(file) = &config.watch.positions_file {
        add(file, &bytes(file));
    }
    hash.digest128()
}

fn bytes(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // The reload reports read errors.
    let _ = std::fs::File::open(file).and_then(|file| file.take(MAX_HASHED_BYTES).read_to_end(&mut bytes));
    bytes
}
