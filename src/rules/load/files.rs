//! Reads the files that `[rules] paths` matches. The only module of the rules that reads the disk.

use std::path::{Path, PathBuf};

use globset::{GlobBuilder, GlobMatcher};

use model::{Diagnostic, SourceText};

/// The maximum size of a rule file, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The maximum size of all rule files together, in bytes.
const MAX_TOTAL: usize = 32 << 20;

/// The maximum number of rule files.
const MAX_RULE_FILES: usize = 1_000;

/// The maximum number of directory entries that the search for one pattern reads.
const MAX_ENTRIES: usize = 100_000;

/// The maximum number of folder levels that `**` matches.
const MAX_DEPTH: usize = 8;

/// The texts of the rule files, with the problems of reading them.
#[derive(Debug, Default)]
pub struct RuleFiles {
    /// The files, sorted by path.
    pub files: Vec<SourceText>,
    /// A warning for each pattern that matches no file. An error for each invalid pattern, for each file that cannot be read, and if a
    /// limit is exceeded.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads the files that the patterns of `[rules] paths` match, each file once, sorted by path. A relative pattern starts at
/// `relative_to`, the folder of the configuration file.
pub fn read_files(globs: &[String], relative_to: &Path) -> RuleFiles {
    let mut read = RuleFiles::default();
    let mut paths = Vec::new();
    for pattern in globs {
        match matching(pattern, relative_to) {
            Ok(found) if found.is_empty() => {
                let message = format!("no rule file matches {pattern:?}");
                read.diagnostics.push(
                    Diagnostic::warning(relative_to.join(pattern), None, message)
                        .help("correct `paths` in `[rules]`, or write a rule file there"),
                );
            }
            Ok(found) => paths.extend(found),
            Err(problem) => {
                let message = format!("cannot use the pattern {pattern:?} in `[rules] paths`: {problem}");
                read.diagnostics
                    .push(Diagnostic::error(relative_to.join(pattern), None, message).help("example: \"rules/*.toml\""));
            }
        }
    }
    paths.sort();
    paths.dedup();
    if paths.len() > MAX_RULE_FILES {
        let message = format!("too many rule files: {} found, at most {MAX_RULE_FILES} allowed", paths.len());
        read.diagnostics.push(Diagnostic::error(relative_to, None, message).help("narrow `[rules] paths`"));
        return read;
    }
    let mut total = 0;
    for path in paths {
        match read_text(&path) {
            Ok(text) if total + text.len() > MAX_TOTAL => {
                let message = format!("the rule files up to this one exceed {MAX_TOTAL} bytes in total");
                read.diagnostics.push(Diagnostic::error(path, None, message).help("narrow `[rules] paths`"));
                return read;
            }
            Ok(text) => {
                total += text.len();
                read.files.push(SourceText { file: path, text });
            }
            Err(problem) => {
                read.diagnostics.push(Diagnostic::error(path, None, format!("cannot read this rule file: {problem}")))
            }
        }
    }
    read
}

fn read_text(path: &Path) -> Result<String, String> {
    use std::io::Read;
    let file = model::file_kind::open_regular(path).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it is larger than {MAX_FILE} bytes"));
    }
    model::text::utf8(bytes).map_err(|problem| format!("it is {problem}"))
}

/// Returns whether the patterns of `[rules] paths` match a file, which need not exist.
pub fn is_rule_file(path: &Path, globs: &[String], relative_to: &Path) -> bool {
    let Some(path) = absolute_file(path) else { return false };
    globs.iter().any(|pattern| {
        let Ok((folder, rest)) = split(pattern, relative_to) else { return false };
        let folder = if rest.is_empty() { absolute_file(&folder) } else { absolute(&folder) };
        let Some(folder) = folder else { return false };
        match (path.strip_prefix(&folder), rest.as_slice()) {
            (Ok(below), []) => below.as_os_str().is_empty(),
            (Ok(below), rest) => glob_of(rest).is_ok_and(|glob| glob.is_match(below)),
            (Err(_), _) => false,
        }
    })
}

/// Returns the path of a file in a folder without symbolic links and `..`. The file itself can be a link, as configuration management
/// makes them.
fn absolute_file(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    Some(absolute(path.parent()?)?.join(path.file_name()?))
}

/// Returns the path without symbolic links and `..`. The last components need not exist.
fn absolute(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let existing = path.ancestors().find_map(|ancestor| Some((ancestor, std::fs::canonicalize(ancestor).ok()?)));
    let (ancestor, real) = existing?;
    let rest = path.strip_prefix(ancestor).ok()?;
    let has_parent = rest.components().any(|part| part == std::path::Component::ParentDir);
    (!has_parent).then(|| if rest.as_os_str().is_empty() { real } else { real.join(rest) })
}

/// Returns the files that a pattern matches. The part before the first wildcard is a folder, which is searched.
fn matching(pattern: &str, relative_to: &Path) -> Result<Vec<PathBuf>, String> {
    let (folder, rest) = split(pattern, relative_to)?;
    if rest.is_empty() {
        return Ok(if folder.is_file() { vec![folder] } else { Vec::new() });
    }
    let glob = glob_of(&rest)?;
    let depth = if rest.iter().any(|part| part == "**") { MAX_DEPTH } else { rest.len() };
    let mut found = Vec::new();
    let mut queue = vec![(folder.clone(), 1)];
    let mut checked = 0;
    while let Some((current, level)) = queue.pop() {
        let entries = match std::fs::read_dir(&current) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(format!("cannot read the folder {}: {error}", current.display())),
        };
        for entry in entries {
            let entry = entry.map_err(|error| format!("cannot read the folder {}: {error}", current.display()))?;
            checked += 1;
            if checked > MAX_ENTRIES {
                return Err(format!("more than {MAX_ENTRIES} entries in {}", folder.display()));
            }
            let path = entry.path();
            // Symbolic links to files are followed, because configuration management uses them. Links to folders are not.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if level < depth {
                    queue.push((path, level + 1));
                }
            } else if path.strip_prefix(&folder).is_ok_and(|below| glob.is_match(below)) && path.is_file() {
                found.push(path);
            }
        }
    }
    Ok(found)
}

/// Splits a pattern into the folder before the first wildcard and the components from there on.
fn split(pattern: &str, relative_to: &Path) -> Result<(PathBuf, Vec<String>), String> {
    let is_wild = |part: &str| part.contains(['*', '?', '[', '{']);
    let full = relative_to.join(pattern);
    // Wildcard characters in the path of the configuration folder are literal. Absolute patterns do not include that folder.
    let plain = if Path::new(pattern).is_absolute() { 0 } else { relative_to.components().count() };
    let mut folder = PathBuf::new();
    let mut rest: Vec<String> = Vec::new();
    for part in full.components() {
        let text = part.as_os_str().to_str().ok_or("it is not UTF-8")?;
        if rest.is_empty() && (!is_wild(text) || plain > folder.components().count()) {
            folder.push(part);
        } else {
            rest.push(text.to_owned());
        }
    }
    Ok((folder, rest))
}

fn glob_of(rest: &[String]) -> Result<GlobMatcher, String> {
    let glob = GlobBuilder::new(&rest.join("/")).literal_separator(true).build().map_err(|error| error.kind().to_string())?;
    Ok(glob.compile_matcher())
}
