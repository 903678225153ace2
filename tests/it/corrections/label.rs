//! The labels of `labels.toml`.

use serde::Deserialize;

use super::schedule::CorrectionStep;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LabelFile {
    correction: Vec<LabeledCorrection>,
}

/// A correction with what a person would say about it. `tests/it/corrections/README.md` describes the fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabeledCorrection {
    pub id: String,
    pub token: String,
    pub operations: Vec<String>,
    pub sentence: String,
    #[serde(default)]
    pub setup: Vec<CorrectionStep>,
    pub steps: Vec<CorrectionStep>,
    pub max_changes: usize,
    pub silent: Silence,
    pub hold: Delay,
    #[serde(default)]
    pub together: Vec<String>,
    #[serde(default)]
    pub may_remove: Vec<Removable>,
    pub total: (f64, f64),
    #[serde(default)]
    pub books: Vec<AllocationBook>,
    #[serde(default)]
    pub story: Vec<Story>,
}

/// Whether a correction may stay unreported.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Silence {
    Must,
    May,
    No,
}

/// Whether a report may wait for confirmations of a removal.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Delay {
    Never,
    Proof,
}

/// An allocation and the amount of it that may be called removed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removable {
    pub allocation: String,
    pub amount: f64,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllocationBook {
    pub allocation: String,
    pub before: f64,
    pub after: f64,
}

/// One thing that happened.
#[allow(dead_code, reason = "some fields are for readers of the file")]
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Story {
    pub operation: String,
    /// The part of the sentence. `None` if the correction is this story alone.
    pub sentence: Option<String>,
    pub kinds: Vec<String>,
    pub tolerated: Vec<String>,
    pub allocations: Vec<String>,
    #[serde(default)]
    pub was: Vec<String>,
    #[serde(default)]
    pub no_shift: bool,
    pub shift: Option<(f64, f64)>,
    pub ratio: Option<f64>,
    pub moved: Option<f64>,
    pub gained: Option<f64>,
    pub lost: Option<f64>,
    pub affected: Option<f64>,
    pub from_amount: Option<f64>,
    pub to_amount: Option<f64>,
    pub each: Option<f64>,
    pub claim: Option<f64>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub at: Option<String>,
    pub begin: Option<String>,
    pub end: Option<String>,
    pub scope: Option<String>,
    pub total: Option<String>,
    pub count: Option<usize>,
}

pub fn load(text: &str) -> Vec<LabeledCorrection> {
    toml::from_str::<LabelFile>(text).expect("labels").correction
}
