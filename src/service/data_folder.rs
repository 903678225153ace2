//! A data folder on disk, as an import reads it and an export writes it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::ImportError;

/// Largest file that is read, bytes.
const MAX_FILE_BYTES: u64 = 256 << 20;
pub const TOKENS: &str = "tokens.json";
/// Prices and market caps.
pub const PRICES: &str = "prices.json";
/// Investors with their rounds.
pub const INVESTORS: &str = "investors.json";
/// What the folder does not know: a list of [`DataGap`](crate::import::DataGap)s.
pub const GAPS: &str = "gaps.json";
/// Folders with one file a token.
pub const FOLDERS: [&str; 5] = ["unlock-events", "allocations", "daily-emission", "burn", "buyback"];

#[derive(Clone, Debug)]
pub struct SourceFile {
    /// Place in the folder, with `/` between the parts: `unlock-events/aptos.json`.
    pub path: String,
    /// What is in it.
    pub text: Cow<'static, str>,
}

/// A data folder on disk: hands out its files one at a time, the token list first.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    files: std::vec::IntoIter<String>,
    count: usize,
}

impl DataFolder {
    /// Looks what is in the folder. Fails where it is no folder, or has no token list, or cannot be read.
    pub fn open(root: &Path) -> Result<Self, ImportError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| ImportError::Read { path, source }
        };
        fs::metadata(root.join(TOKENS)).map_err(failed(&root.join(TOKENS)))?;
        let mut files = vec![TOKENS.to_owned()];
        if root.join(PRICES).exists() {
            files.push(PRICES.into());
        }
        for folder in FOLDERS {
            let path = root.join(folder);
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(failed(&path)(error)),
            };
            let mut names = Vec::new();
            for entry in entries {
                let name = entry.map_err(failed(&path))?.file_name();
                if let Some(name) = name.to_str().filter(|name| name.ends_with(".json")) {
                    names.push(format!("{folder}/{name}"));
                }
            }
            names.sort_unstable();
            files.append(&mut names);
        }
        for file in [INVESTORS, GAPS] {
            if root.join(file).exists() {
                files.push(file.into());
            }
        }
        Ok(Self { root: root.to_owned(), count: files.len(), files: files.into_iter() })
    }

    /// Files in all, for a progress bar.
    pub fn file_count(&self) -> usize {
        self.count
    }

    fn read(&self, file: &str) -> io::Result<SourceFile> {
        let path = self.root.join(file);
        let told = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let size = fs::metadata(&path).map_err(told)?.len();
        if size > MAX_FILE_BYTES {
            return Err(told(io::Error::new(io::ErrorKind::FileTooLarge, format!("{size} bytes; {MAX_FILE_BYTES} at most"))));
        }
        Ok(SourceFile { path: file.to_owned(), text: fs::read_to_string(&path).map_err(told)?.into() })
    }
}

impl Iterator for DataFolder {
    type Item = io::Result<SourceFile>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.files.next()?;
        Some(self.read(&file))
    }
}
