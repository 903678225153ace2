//! Whether a file is another than when it was last read.

use std::{io::Read as _, path::Path};

use xxhash_rust::xxh3::Xxh3;

use super::Origin;
use model::config::Config;
use tools::ruletest;

/// Bytes of a file that are looked at for a change; more than any that is taken.
const MAX_LOOK: u64 = 8 << 20;

/// A hash over config, rule files and the tests beside them: names and contents. Another one: something was changed.
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
    // A file that can no longer be read is another state too.
    for problem in &files.diagnostics {
        add(&problem.file, problem.message.as_bytes());
    }
    for file in ruletest::files_beside(config, base_dir) {
        add(&file, &bytes(&file));
    }
    hash.digest128()
}

/// What a file holds, as far as it is looked at.
fn bytes(file: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What cannot be read is told by the reload.
    let _ = std::fs::File::open(file).and_then(|file| file.take(MAX_LOOK).read_to_end(&mut bytes));
    bytes
}
