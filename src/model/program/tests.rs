use super::*;

#[test]
fn version_line_leaves_out_unknown_parts() {
    let commit = |hash, date| Some(ProgramCommit { hash, date });
    assert_eq!(line_of(commit("84c9a7b1d2e3", "2026-11-23")), format!("{VERSION} (84c9a7b1d2e3 2026-11-23)"));
    assert_eq!(line_of(commit("84c9a7b1d2e3", "")), format!("{VERSION} (84c9a7b1d2e3)"));
    assert_eq!(line_of(None), VERSION);
    // No test is a build of a commit.
    assert_eq!(labels(), [("version", VERSION)]);
}
