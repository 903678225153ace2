//! The starter rules and their tests, which `init` and the demo write: those of the repository.

/// Rule files by name.
pub(super) const RULES: [(&str, &str); 3] = [
    ("unlocks.toml", include_str!("../../rules/unlocks.toml")),
    ("changes.toml", include_str!("../../rules/changes.toml")),
    ("supply.toml", include_str!("../../rules/supply.toml")),
];

/// Their tests, by the same names.
pub(super) const TESTS: [(&str, &str); 3] = [
    ("unlocks.toml", include_str!("../../rules/tests/unlocks.toml")),
    ("changes.toml", include_str!("../../rules/tests/changes.toml")),
    ("supply.toml", include_str!("../../rules/tests/supply.toml")),
];
