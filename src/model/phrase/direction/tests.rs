use super::*;
use crate::{Resource, TokenId};

fn change(kind: ChangeKind, edit: impl FnOnce(&mut Change)) -> Option<String> {
    let mut change = Change::of(kind, Resource::Unlock, &TokenId::from("arbitrum"));
    edit(&mut change);
    direction(&change)
}

#[test]
fn direction_has_a_sign_and_a_word() {
    let moved = |days: f64| change(ChangeKind::Rescheduled, |change| change.shift_days = Some(days));
    assert_eq!(moved(5.0).as_deref(), Some("→ +5 days, later"));
    assert_eq!(moved(-19.0).as_deref(), Some("← -19 days, earlier"));
    let series = |least, most| {
        change(ChangeKind::SeriesShifted, |change| {
            (change.shift_days, change.shift_days_min, change.shift_days_max) = (Some(30.0), Some(least), Some(most));
        })
    };
    assert_eq!(series(28.0, 31.0).as_deref(), Some("→ +28 to +31 days, later"));
    assert_eq!(series(-3.0, 2.0).as_deref(), Some("↔ -3 to +2 days, earlier and later"));
    let resized = |by| change(ChangeKind::Resized, |change| change.ratio = Some(by));
    assert_eq!(resized(1.5).as_deref(), Some("↑ ×1.5, more"));
    assert_eq!(resized(0.5).as_deref(), Some("↓ ×0.5, less"));
    assert_eq!(change(ChangeKind::Added, |_| {}).as_deref(), Some("+ added"));
    assert_eq!(change(ChangeKind::Removed, |_| {}).as_deref(), Some("− removed"));
}

#[test]
fn change_without_direction_has_no_text() {
    assert_eq!(change(ChangeKind::Revised, |_| {}), None);
    for nothing in [0.0, f64::NAN] {
        assert_eq!(change(ChangeKind::Rescheduled, |change| change.shift_days = Some(nothing)), None);
    }
    for nothing in [1.0, f64::NAN] {
        assert_eq!(change(ChangeKind::Resized, |change| change.ratio = Some(nothing)), None);
    }
    let unbounded = change(ChangeKind::Rescheduled, |change| change.shift_days = Some(f64::INFINITY));
    assert_eq!(unbounded, None);
}
