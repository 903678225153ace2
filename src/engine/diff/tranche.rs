//! Unlock events taken apart: one [`Tranche`] for each recipient's cliff or linear segment.

use model::{
    supply::{Precision, Timestamp},
    wire::{CommittedClaim, UnlockEvent},
};

/// At once, or over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum TrancheForm {
    Cliff,
    Linear,
}

/// One recipient's part of an event.
#[derive(Clone, Debug)]
pub(super) struct Tranche<'a> {
    /// Index of its event.
    pub(super) row: usize,
    pub(super) form: TrancheForm,
    /// Allocation as the source names it; empty where it does not.
    pub(super) name: &'a str,
    /// Allocation under its present name: what series are made of.
    pub(super) series: &'a str,
    /// When it unlocks or begins to, Unix milliseconds; the epoch where undated, which is also what sources put there.
    pub(super) at: i64,
    pub(super) end: Option<i64>,
    pub(super) amount: Option<f64>,
    pub(super) standard: Option<&'a str>,
    pub(super) precision: Option<&'a str>,
    pub(super) claim: Option<&'a CommittedClaim>,
}

impl Tranche<'_> {
    pub(super) fn time(&self) -> Timestamp {
        Timestamp::from_timestamp_millis(self.at).unwrap_or_default()
    }

    /// Its date, where it has one.
    pub(super) fn dated(&self) -> Option<Timestamp> {
        Some(self.time()).filter(|at| at.timestamp() != 0)
    }

    pub(super) fn end_time(&self) -> Option<Timestamp> {
        Timestamp::from_timestamp_millis(self.end?)
    }

    pub(super) fn precision(&self) -> Precision {
        Precision::of(self.precision)
    }
}

/// Takes events apart. An event that only gives totals is one tranche without a name.
pub(super) fn take_apart<'a>(events: &[&'a UnlockEvent], with_linear: bool) -> Vec<Tranche<'a>> {
    let mut tranches = Vec::new();
    for (row, event) in events.iter().enumerate() {
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
                    standard: part.standard_allocation_name.as_str(),
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
                    standard: part.standard_allocation_name.as_str(),
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
    tranches
}

/// A list without parts beside a total of zero says that nothing is there; a total of zero without a list is an amount.
fn is_nothing<T>(list: Option<&Vec<T>>, total: f64) -> bool {
    list.is_some() && total == 0.0
}

fn whole_event<'a>(row: usize, form: TrancheForm, date: Option<Timestamp>, amount: f64) -> Tranche<'a> {
    Tranche {
        row,
        form,
        name: "",
        series: "",
        at: date.map_or(0, |at| at.timestamp_millis()),
        end: None,
        amount: Some(amount),
        standard: None,
        precision: None,
        claim: None,
    }
}
