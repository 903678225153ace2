//! The rules that `check` and `backtest` use instead of those in the config.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::{UsageError, shown};
use model::SourceText;
use rules::RuleFiles;

/// The path that stands for standard input.
const STDIN: &str = "-";
/// The name of standard input in diagnostics.
const STDIN_NAME: &str = "(standard input)";
/// The maximum size of rules on standard input, in bytes.
const MAX_STDIN_BYTES: u64 = 1 << 20;

/// Reads the rule files of a folder, or one rule file from standard input if the path is `-`.
///
/// # Errors
///
/// Fails if the folder does not exist, or if standard input is too large or not UTF-8.
pub(super) fn read_rules(source: &Path) -> anyhow::Result<RuleFiles> {
    if source == Path::new(STDIN) {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(MAX_STDIN_BYTES + 1)
            .read_to_end(&mut bytes)
            .context("cannot read the rules from standard input")?;
        if bytes.len() as u64 > MAX_STDIN_BYTES {
            return Err(UsageError(format!("the rules on standard input exceed {MAX_STDIN_BYTES} bytes")).into());
        }
        let text = String::from_utf8(bytes).map_err(|_| UsageError("the rules on standard input are not UTF-8".to_owned()))?;
        return Ok(RuleFiles { files: vec![SourceText { file: PathBuf::from(STDIN_NAME), text }], ..RuleFiles::default() });
    }
    if !source.is_dir() {
        return Err(UsageError(format!("{} is not a folder", shown(source))).into());
    }
    Ok(rules::read_files(&["*.toml".to_owned()], source))
}
