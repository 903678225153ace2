//! A data folder on disk, which an export writes and an import reads.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::ImportError;
use model::file_kind::{check_regular, open_regular};

const MAX_FILE_BYTES: u64 = 256 << 20;
const MAX_FILES: usize = 200_000;
pub const TOKENS: &str = "tokens.json";
/// Prices and market caps.
pub const PRICES: &str = "prices.json";
/// Investors with their funding rounds.
pub const INVESTORS: &str = "investors.json";
/// Data that the folder does not cover: a list of [`DataGap`](crate::import::DataGap)s.
pub const GAPS: &str = "gaps.json";
/// The subfolders with one file per token.
pub const FOLDERS: [&str; 5] = ["unlock-events", "allocations", "daily-emission", "burn", "buyback"];

#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The path within the folder, separated by `/`: `unlock-events/aptos.json`.
    pub path: String,
    pub text: String,
}

/// A data folder on disk. Iterates over its files, with the token list first.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    files: std::vec::IntoIter<String>,
    count: usize,
}

impl DataFolder {
    /// Lists the files of the folder and checks all of them before anything is imported.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be read or has no token list, or if a file is too large or not a regular file.
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
                if files.len() + names.len() > MAX_FILES {
                    let many = io::Error::new(io::ErrorKind::FileTooLarge, format!("more than {MAX_FILES} files"));
                    return Err(failed(&path)(many));
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
        for file in &files {
            let path = root.join(file);
            fs::metadata(&path).and_then(|metadata| readable(&metadata)).map_err(failed(&path))?;
        }
        Ok(Self { root: root.to_owned(), count: files.len(), files: files.into_iter() })
    }

    /// Returns the number of files, for a progress bar.
    pub fn file_count(&self) -> usize {
        self.count
    }

    fn read(&self, file: &str) -> io::Result<SourceFile> {
        let path = self.root.join(file);
        let with_path = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        // The file may have changed since the folder was opened.
        let opened = open_regular(&path).map_err(with_path)?;
        readable(&opened.metadata().map_err(with_path)?).map_err(with_path)?;
        let mut bytes = Vec::new();
        opened.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(with_path)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(with_path(too_large(format_args!("more than {MAX_FILE_BYTES}"))));
        }
        let text = model::text::utf8(bytes).map_err(|problem| with_path(io::Error::new(io::ErrorKind::InvalidData, problem)))?;
        Ok(SourceFile { path: file.to_owned(), text })
    }
}

fn readable(metadata: &fs::Metadata) -> io::Result<()> {
    check_regular(metadata)?;
    if metadata.len() > MAX_FILE_BYTES { Err(too_large(metadata.len())) } else { Ok(()) }
}

fn too_large(bytes: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, format!("{bytes} bytes exceed the limit of {MAX_FILE_BYTES}"))
}

impl Iterator for DataFolder {
    type Item = io::Result<SourceFile>;

    fn next(&mut self) -> Option<Self::Item> {
        let file = self.files.next()?;
        Some(self.read(&file))
    }
}
