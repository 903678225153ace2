//! The shape of the code: lengths, predicates, and constants.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::project::{Finding, SourceFile};

const MAX_FILE_LINES: usize = 600;
const MAX_FUNCTION_LINES: usize = 90;
/// Tests and benches may run a scenario from top to bottom.
const MAX_SCENARIO_LINES: usize = 160;

/// Files and functions that are too long to read at once.
pub fn lengths(project: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in project {
        let Some(rust) = &file.rust else { continue };
        let lines = file.text.lines().count();
        if lines > MAX_FILE_LINES {
            let advice = format!("split it: a file has at most {MAX_FILE_LINES} lines");
            findings.push(Finding { path: file.path.clone(), line: 1, text: format!("{lines} lines"), advice });
        }
        let max_lines = if file.is_test() { MAX_SCENARIO_LINES } else { MAX_FUNCTION_LINES };
        for function in rust.functions.iter().filter(|function| function.lines > max_lines) {
            let advice = format!("split it: a function has at most {max_lines} lines");
            let text = format!("{} has {} lines", function.name, function.lines);
            findings.push(Finding { path: file.path.clone(), line: function.line, text, advice });
        }
    }
    findings
}

/// Functions that are named like a predicate and return something else.
pub fn predicates(project: &[SourceFile]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in project {
        let functions = file.rust.iter().flat_map(|rust| &rust.functions);
        for function in
            functions.filter(|function| !function.is_test && !function.returns_bool && function.name.starts_with("is_"))
        {
            let advice = "a function named `is_…` returns `bool`: rename it".to_owned();
            findings.push(Finding { path: file.path.clone(), line: function.line, text: function.name.clone(), advice });
        }
    }
    findings
}

/// Constants of the same name, type, and value in two rooms: one of them will be changed alone one day.
pub fn duplicate_constants(project: &[SourceFile]) -> Vec<Finding> {
    let mut places: BTreeMap<(&str, &str), Vec<(&SourceFile, usize)>> = BTreeMap::new();
    for file in project.iter().filter(|file| file.path.starts_with("src/") && !file.is_test()) {
        for constant in file.rust.iter().flat_map(|rust| &rust.constants) {
            places.entry((&constant.name, &constant.value)).or_default().push((file, constant.line));
        }
    }
    let mut findings = Vec::new();
    for ((name, value), found) in places {
        let rooms: BTreeSet<&str> = found.iter().map(|(file, _)| file.room()).collect();
        if rooms.len() > 1
            && let Some((file, line)) = found.last()
        {
            let others: Vec<String> = found.iter().map(|(file, line)| format!("{}:{line}", file.path)).collect();
            let advice = format!("define it once, below all that use it: {}", others.join(", "));
            findings.push(Finding { path: file.path.clone(), line: *line, text: format!("{name}: {value}"), advice });
        }
    }
    findings
}
