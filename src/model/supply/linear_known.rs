//! How much of a token's coming supply is known.

use serde_json::Value;

use super::ahead::LinearPiece;
use crate::time::Timestamp;

words! {
    /// Which parts of a token's coming supply are known.
    SupplyKnown {
        /// Cliff unlocks and linear unlocks.
        All = "all",
        /// Cliff unlocks only: linear unlocks were not read.
        Cliffs = "cliffs",
        /// Nothing was read yet.
        None = "none",
    }
}

/// The linear supply that the header of a feed of unlock events describes.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearSupply {
    pub known: SupplyKnown,
    /// The end of the known linear supply. `None` if the schedule itself contains all of it.
    pub until: Option<Timestamp>,
    /// Linear unlocks from daily emission ahead, which the schedule lacks.
    pub emission: Vec<LinearPiece>,
}

/// Returns the linear supply of a feed. `is_read` is whether the schedule was ever read.
#[must_use]
pub fn linear_known(is_read: bool, header: Option<&Value>) -> LinearSupply {
    let has = |key: &str| header.and_then(|header| header.get(key)).is_some_and(|value| !value.is_null() && *value != false);
    let has_segments = has("segmentsRead") || has("shownLinear");
    let known = match (is_read, has_segments) {
        (false, _) => SupplyKnown::None,
        (true, false) => SupplyKnown::Cliffs,
        (true, true) => SupplyKnown::All,
    };
    LinearSupply { known, until: None, emission: Vec::new() }
}
