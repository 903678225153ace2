//! Reads `[watch] positions_file`, and locates the positions of the config file. No problem, and no line shown with it, has an amount.

use std::collections::HashSet;
use std::io::Read as _;
use std::ops::Range;
use std::path::Path;

use super::tree::{ConfigNode, Location};
use model::config::WatchSettings;
use model::{Diagnostic, Position, PositionTable, SourceText, StatedPosition};

/// The size limit of the file.
const MAX_BYTES: u64 = 1024 * 1024;

/// Adds the locations of the positions in the config file, and the positions of the file that it names. If that has errors, no position of
/// it counts.
pub(super) fn complete(watch: &mut WatchSettings, file: &Path, tree: &ConfigNode) {
    let table = &mut watch.positions;
    for stated in &mut table.stated {
        let entries = tree.get("watch").and_then(|watch| watch.node.get("positions"));
        let entry = entries.and_then(|entries| entries.node.get(&stated.name));
        if let Some(Location::File(span)) = entry.map(|entry| &entry.key_location) {
            stated.location = Some((file.to_owned(), span.clone()));
        }
    }
    if let Some(path) = &watch.positions_file {
        match read(path) {
            Ok(text) => add_text(table, path, &text),
            Err(problem) => {
                table.problems.push(Diagnostic::error(path, None, problem).help("correct `positions_file` in [watch]"))
            }
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(super::missing_file(path)),
        Err(error) => Err(format!("cannot read the positions: {error}")),
        Ok(_) if bytes.len() as u64 > MAX_BYTES => Err("the file with positions is larger than the limit of 1 MiB".to_owned()),
        Ok(_) => model::text::utf8(bytes).map_err(|problem| format!("the file with positions is {problem}")),
    }
}

fn add_text(table: &mut PositionTable, path: &Path, text: &str) {
    table.sources.push(SourceText { file: path.to_owned(), text: without_amounts(text) });
    let mut names: HashSet<String> = table.stated.iter().map(|stated| stated.name.to_lowercase()).collect();
    let (mut stated, mut problems) = (Vec::new(), Vec::new());
    for (span, line) in rows(text) {
        match row(line) {
            Ok((name, _)) if !names.insert(name.to_lowercase()) => {
                problems.push(Diagnostic::error(path, Some(span), format!("the position of {name:?} is given twice")));
            }
            Ok((name, position)) => stated.push(StatedPosition { name, position, location: Some((path.to_owned(), span)) }),
            Err((problem, help)) => problems.push(Diagnostic::error(path, Some(span), problem).help(help)),
        }
    }
    if problems.is_empty() {
        table.stated.extend(stated);
    }
    table.problems.extend(problems);
}

/// Returns the lines with a position, and the location of the token in each. Leaves out empty lines, comments, and the header.
fn rows(text: &str) -> Vec<(Range<usize>, &str)> {
    let mut rows = Vec::new();
    let mut start = 0;
    let mut is_first = true;
    for full in text.split_inclusive('\n') {
        let line = full.trim_start_matches('\u{feff}').trim();
        let at = start + full.find(line).unwrap_or(0);
        start += full.len();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_header = std::mem::take(&mut is_first) && cells(line).map(str::to_lowercase).eq(["token", "amount"]);
        if !is_header {
            rows.push((at..at + line.find(',').unwrap_or(line.len()), line));
        }
    }
    rows
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split(',').map(|cell| cell.trim().trim_matches('"').trim())
}

/// Returns the token and the position of a line, or a problem with its remedy.
fn row(line: &str) -> Result<(String, Position), (&'static str, &'static str)> {
    const FORM: &str = "write each line like `arbitrum,250000.5`";
    let cells: Vec<&str> = cells(line).collect();
    let [name, amount] = cells.as_slice() else {
        return Err(match cells.len() {
            1 => ("this line has one column: expected a token and an amount", FORM),
            _ => ("this line has more than two columns", "write the amount without thousands separators: `arbitrum,250000.5`"),
        });
    };
    if name.is_empty() {
        return Err(("this line names no token", FORM));
    }
    let position = amount.replace('_', "").parse().ok().and_then(Position::of);
    let position = position.ok_or(("the amount of this line is not a number from 0", FORM))?;
    Ok(((*name).to_owned(), position))
}

/// Replaces all columns but the first.
fn without_amounts(text: &str) -> String {
    let line = |line: &str| match line.split_once(',') {
        Some((name, rest)) => {
            let end = if rest.ends_with('\n') { "\n" } else { "" };
            // The length stays, so that locations in later lines stay correct.
            format!("{name},{:*<1$}{end}", "", rest.len() - end.len())
        }
        None => line.to_owned(),
    };
    text.split_inclusive('\n').map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> PositionTable {
        let mut table = PositionTable::default();
        add_text(&mut table, Path::new("book.csv"), text);
        table
    }

    #[test]
    fn file_has_a_header_comments_quotes_and_windows_line_ends() {
        let table = table("\u{feff}Token,Amount\r\n# my book\r\n\r\narbitrum,250000.5\r\n\"APT\", \"1_200\"\r\nsui,0");
        let read: Vec<(&str, f64)> = table.stated.iter().map(|stated| (stated.name.as_str(), stated.position.amount())).collect();
        assert_eq!(read, [("arbitrum", 250_000.5), ("APT", 1200.0), ("sui", 0.0)]);
        assert!(table.problems.is_empty(), "{:?}", table.problems);
    }

    #[test]
    fn each_bad_line_is_a_problem_at_its_token_and_no_position_counts() {
        let text = "arbitrum,77123\naptos\n,77123\nsui,77x123\nsei,77,123\ntia,-77123\nARBITRUM,1\n";
        let table = table(text);
        let found: Vec<(usize, &str)> = table
            .problems
            .iter()
            .map(|problem| {
                let span = problem.span.clone().expect("a location");
                (text[..span.start].matches('\n').count() + 1, problem.message.as_str())
            })
            .collect();
        assert_eq!(
            found,
            [
                (2, "this line has one column: expected a token and an amount"),
                (3, "this line names no token"),
                (4, "the amount of this line is not a number from 0"),
                (5, "this line has more than two columns"),
                (6, "the amount of this line is not a number from 0"),
                (7, "the position of \"ARBITRUM\" is given twice"),
            ]
        );
        assert!(table.stated.is_empty());
        let shown = model::diagnostic::render(&table.problems, &table.sources, false);
        assert!(shown.contains("book.csv:4") && !shown.contains("77"), "{shown}");
    }
}
