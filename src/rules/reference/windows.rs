//! The windows of the reference: sums over a time, and the earlier corrections of a schedule.

use std::iter;

use super::{KnownBy, ReferenceEntry, ReferenceKind, endpoints_of};
use crate::aggregate::Flow;
use crate::condition::{CORRECTIONS, CorrectionField, WindowField};
use crate::fields::NumberUnit;
use crate::vocabulary::SHARE;
use model::{Endpoint, Resource};

pub(super) fn entries() -> Vec<ReferenceEntry> {
    let entry = |flow: Flow| ReferenceEntry {
        kind: ReferenceKind::Window,
        known_by: KnownBy::TokenAndPortfolio,
        name: flow.as_str().to_owned(),
        unit: "window",
        example: format!("{}(\"30d\").value >= 1000000", flow.as_str()),
        endpoints: endpoints_of(flow.resource()),
        about: match flow {
            Flow::Ahead => "unlocks in a window that starts now, cliff and linear",
            Flow::Emitted => "tokens released in a window that ends now",
            Flow::Burned => "tokens burned in a window that ends now",
            Flow::BoughtBack => "tokens bought back in a window that ends now",
        },
    };
    let field = |field: WindowField| {
        let about = match field {
            WindowField::Amount => "tokens in the window; missing for a group",
            WindowField::Value => "value of these tokens",
            WindowField::Count => "number of events",
            WindowField::Possible => "only of `ahead`: value of imprecise unlocks that may still happen in the window",
            WindowField::CliffAmount => "only of `ahead`: tokens of the cliff unlocks",
            WindowField::CliffValue => "only of `ahead`: value of the cliff unlocks",
            WindowField::CliffCount => "only of `ahead`: number of cliff unlocks",
            WindowField::LinearAmount => "only of `ahead`: tokens that unlock linearly; missing if only cliff unlocks are known",
            WindowField::LinearValue => "only of `ahead`: value of the tokens that unlock linearly",
        };
        ReferenceEntry {
            kind: ReferenceKind::Window,
            known_by: KnownBy::TokenAndPortfolio,
            name: format!(".{}", field.as_str()),
            unit: field.unit().as_str(),
            example: format!("ahead(\"7d\").{} > 0", field.as_str()),
            endpoints: Vec::new(),
            about,
        }
    };
    let share = ReferenceEntry {
        kind: ReferenceKind::Window,
        known_by: KnownBy::Token,
        name: SHARE.to_owned(),
        unit: NumberUnit::Percent.as_str(),
        example: format!("{SHARE}(\"portfolio\") > 25"),
        endpoints: vec![Endpoint::TokenList],
        about: "the token's percentage of the market cap of a group",
    };
    let of_totals = Flow::ALL.into_iter().map(entry).chain(WindowField::ALL.into_iter().map(field)).chain([share]);
    of_totals.chain(corrections()).collect()
}

fn corrections() -> Vec<ReferenceEntry> {
    let of = |name: String, unit: &'static str, example: String, about: &'static str| ReferenceEntry {
        kind: ReferenceKind::Window,
        known_by: KnownBy::Resource(Resource::Unlock),
        name,
        unit,
        example,
        endpoints: Vec::new(),
        about,
    };
    let whole = of(
        CORRECTIONS.to_owned(),
        "window",
        format!("{CORRECTIONS}(\"365d\").shiftDays > 0"),
        "corrections of the token's schedule that were detected within this time before now; in a rule on changes, those before its change; \
         only in conditions, for as long as changes are stored",
    );
    let field = |field: CorrectionField| {
        let example = match field {
            CorrectionField::Count => format!("{CORRECTIONS}(\"365d\").{} >= 3", field.as_str()),
            CorrectionField::ShiftDays => format!("change.shiftDays < 0 && {CORRECTIONS}(\"365d\").{} > 0", field.as_str()),
        };
        of(format!("{CORRECTIONS}(…).{}", field.as_str()), field.unit().as_str(), example, field.about())
    };
    iter::once(whole).chain(CorrectionField::ALL.into_iter().map(field)).collect()
}
