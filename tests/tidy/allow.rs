//! Exceptions from the conventions, each with its reason.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::tidy::project::Finding;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Allowed {
    allow: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    /// The name of the check.
    check: String,
    /// The start of the covered paths. Empty covers all.
    #[serde(default)]
    path: String,
    /// A part of the text of the covered findings. Empty covers all.
    #[serde(default)]
    text: String,
    reason: String,
}

static EXCEPTIONS: LazyLock<Vec<Exception>> =
    LazyLock::new(|| toml::from_str::<Allowed>(include_str!("allow.toml")).unwrap().allow);

/// Fails with all findings that no exception covers, and with all exceptions that cover none.
pub fn assert_none(check: &str, findings: Vec<Finding>) {
    let exceptions: Vec<&Exception> = EXCEPTIONS.iter().filter(|exception| exception.check == check).collect();
    let covers = |exception: &&Exception, finding: &Finding| {
        finding.path.starts_with(&exception.path) && finding.text.contains(&exception.text)
    };
    let unused = exceptions.iter().filter(|exception| !findings.iter().any(|finding| covers(exception, finding)));
    let mut problems: Vec<String> = unused
        .map(|Exception { path, text, .. }| format!("tests/tidy/allow.toml: {check} {path:?} {text:?} covers nothing: delete it"))
        .collect();
    let unexplained = exceptions.iter().filter(|exception| exception.reason.split_whitespace().count() < 3);
    problems.extend(unexplained.map(|exception| format!("tests/tidy/allow.toml: {:?} has no reason", exception.text)));
    let open = findings.iter().filter(|finding| !exceptions.iter().any(|exception| covers(exception, finding)));
    problems.extend(open.map(ToString::to_string));
    assert!(problems.is_empty(), "{} problems ({check}):\n{}", problems.len(), problems.join("\n"));
}
