//! The starter rules and their tests, which `init` and `demo` write.

/// Names and texts of the rule files.
pub(super) const RULES: [(&str, &str); 3] = [
    ("unlocks.toml", include_str!("../../rules/unlocks.toml")),
    ("changes.toml", include_str!("../../rules/changes.toml")),
    ("supply.toml", include_str!("../../rules/supply.toml")),
];

/// Names and texts of the test files.
pub(super) const TESTS: [(&str, &str); 3] = [
    ("unlocks.toml", include_str!("../../rules/tests/unlocks.toml")),
    ("changes.toml", include_str!("../../rules/tests/changes.toml")),
    ("supply.toml", include_str!("../../rules/tests/supply.toml")),
];
