//! Unlock events taken apart into tranches.

use super::index::{List, RowIndex, RowOf, Side, TrancheOf};
use model::{
    is_placeholder,
    supply::{Interval, Precision, Timestamp},
    wire::{CommittedClaim, UnlockEvent},
};

/// The events of one side of a comparison.
pub(super) type Events<'a, S> = List<RowOf<S>, &'a UnlockEvent>;
/// The tranches of one side, in the order of their events.
pub(super) type Tranches<'a, S> = List<TrancheOf<S>, Tranche<'a, S>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TrancheForm {
    Cliff,
    Linear,
}

/// The cliff or the linear segment of one allocation in one event.
#[derive(Clone, Debug)]
pub(super) struct Tranche<'a, S> {
    pub(super) row: RowIndex<S>,
    pub(super) form: TrancheForm,
    /// The allocation as the source names it; empty if it does not.
    pub(super) name: &'a str,
    /// The allocation under its new name, if it was renamed. Tranches of one series share it.
    pub(super) series: &'a str,
    /// The Unix time, in milliseconds, of a cliff or of the start of a linear segment. Zero for an undated tranche, as at the source.
    pub(super) at: i64,
    pub(super) end: Option<i64>,
    pub(super) amount: Option<f64>,
    pub(super) category: Option<&'a str>,
    pub(super) precision: Option<&'a str>,
    pub(super) claim: Option<&'a CommittedClaim>,
}

impl<S> Tranche<'_, S> {
    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_timestamp_millis(self.at).unwrap_or_default()
    }

    /// Returns the date, or `None` if the tranche is undated.
    pub(super) fn dated(&self) -> Option<Timestamp> {
        Some(self.time()).filter(|at| !is_placeholder(*at) && self.precision() != Precision::ToBeDetermined)
    }

    /// Returns the interval that the date stands for, or `None` if the tranche is undated.
    pub(super) fn interval(&self) -> Option<Interval> {
        Interval::of(self.dated()?, self.precision())
    }

    pub(super) fn end_time(&self) -> Option<Timestamp> {
        Timestamp::from_timestamp_millis(self.end?)
    }

    pub(super) fn precision(&self) -> Precision {
        Precision::of(self.precision)
    }
}

/// Takes events apart. An event that gives only totals becomes a tranche without a name.
pub(super) fn take_apart<'a, S: Side>(events: &Events<'a, S>, with_linear: bool) -> Tranches<'a, S> {
    let mut tranches = Vec::new();
    for (row, event) in events.indexed() {
        let date = event.unlock_date.copied();
        if let Some(cliffs) = event.cliff_unlocks.get() {
            let parts = cliffs.allocation_breakdown.items();
            for part in parts {
                let name = part.allocation_name.as_str().unwrap_or_default();
                tranches.push(Tranche {
                    row,
                    form: TrancheForm::Cliff,
                    name,
                    series: name,
                    at: date.or(part.unlock_date.copied()).map_or(0, |at| at.timestamp_millis()),
                    end: None,
                    amount: part.cliff_amount.copied(),
                    category: part.standard_allocation_name.as_str(),
                    precision: part.unlock_precision.as_str(),
                    claim: part.committed_claim.get(),
                });
            }
            if parts.is_empty()
                && let Some(amount) = event.cliff_amount()
                && !is_nothing(cliffs.allocation_breakdown.get(), amount)
            {
                tranches.push(whole_event(row, TrancheForm::Cliff, date, amount));
            }
        }
        if with_linear && let Some(linears) = event.linear_unlocks.get() {
            let parts = linears.allocation_breakdown.items();
            for part in parts {
                let name = part.allocation_name.as_str().unwrap_or_default();
                tranches.push(Tranche {
                    row,
                    form: TrancheForm::Linear,
                    name,
                    series: name,
                    at: part.begin_date.copied().or(date).map_or(0, |at| at.timestamp_millis()),
                    end: part.end_date.copied().map(|at| at.timestamp_millis()),
                    amount: part.linear_amount.copied(),
                    category: part.standard_allocation_name.as_str(),
                    precision: part.unlock_precision.as_str(),
                    claim: None,
                });
            }
            if parts.is_empty()
                && let Some(amount) = linears.linear_amount.copied()
                && !is_nothing(linears.allocation_breakdown.get(), amount)
            {
                tranches.push(whole_event(row, TrancheForm::Linear, date, amount));
            }
        }
    }
    tranches.into()
}

/// Returns whether a total of zero comes with an empty list. Without a list, zero is an amount.
fn is_nothing<T>(list: Option<&Vec<T>>, total: f64) -> bool {
    list.is_some() && total == 0.0
}

fn whole_event<'a, S>(row: RowIndex<S>, form: TrancheForm, date: Option<Timestamp>, amount: f64) -> Tranche<'a, S> {
    Tranche {
        row,
        form,
        name: "",
        series: "",
        at: date.map_or(0, |at| at.timestamp_millis()),
        end: None,
        amount: Some(amount),
        category: None,
        precision: None,
        claim: None,
    }
}
