//! Routes, inhibitions, and time intervals.

use super::Span;
use super::keys::{DAY, MINUTE, YEAR, settings};

settings! {
    /// The routes from alerts to receivers. `[route]` matches every alert, and each of its `routes` the alerts that its matchers select.
    pub struct Route {
        /// Conditions such as `severity="critical"`, with `=`, `!=`, `=~`, or `!~`. All must match. Not for `[route]` itself.
        matchers: Vec<String> => Matchers;
        /// The receivers. A child route without receivers uses the receivers of its parent.
        receivers: Vec<String> => Names;
        /// The receivers that are notified when a receiver is down. Only for `[route]` itself.
        fallback: Vec<String> => Names;
        /// The labels whose values make up a notification group.
        group_by: Option<Vec<String>> => Texts;
        /// The wait for further alerts before the first message of a group.
        group_wait: Option<Span> => Span(0, 7 * DAY);
        /// The least time between two messages of a group.
        group_interval: Option<Span> => Span(0, 30 * DAY);
        /// The time after which the notification of a firing alert is repeated.
        repeat_interval: Option<Span> => Span(MINUTE, YEAR);
        /// The time intervals in which the route notifies. Outside of them, notifications wait. Not for `[route]` itself.
        active_time_intervals: Vec<String> => Names;
        /// The time intervals in which the route is muted: notifications wait until the end. Not for `[route]` itself.
        mute_time_intervals: Vec<String> => Names;
        /// Whether an alert that matches is also passed to the next sibling route.
        continue_ as "continue": bool => Bool;
        /// Child routes. The first one that matches takes the alert.
        routes: Vec<Route> => Routes;
    }
}

settings! {
    /// An inhibition: while an alert fires that `source_matchers` select, alerts that `target_matchers` select are suppressed, if both
    /// have the same values of the labels in `equal`.
    pub struct InhibitRule {
        /// A name to show.
        name: Option<String> => Text;
        /// Conditions on the alert that must fire.
        source_matchers: Vec<String> => Matchers, required;
        /// Conditions on the alerts that are then suppressed.
        target_matchers: Vec<String> => Matchers, required;
        /// Labels that must have the same value in both alerts. A missing label counts as empty.
        equal: Vec<String> => Texts;
    }
}

settings! {
    /// A named set of time intervals.
    pub struct TimeIntervals {
        /// The unique name, which routes refer to.
        name: String => Text, required;
        /// The set matches while any of these intervals does.
        time_intervals: Vec<TimeInterval> => Tables(TimeInterval::KEYS), required;
    }
}

settings! {
    /// A recurring time. Every key that is given must match.
    pub struct TimeInterval {
        /// Times of the day.
        times: Vec<TimeRange> => Tables(TimeRange::KEYS);
        /// Days of the week, such as `monday`, `sat`, or `mon:fri`.
        weekdays: Vec<String> => Texts;
        /// Days of the month, such as `1`, `1:5`, or `-3:-1`, counted from the end of the month.
        days_of_month: Vec<String> => Texts;
        /// Months, such as `january`, `3`, or `june:august`.
        months: Vec<String> => Texts;
        /// Years, such as `2026` or `2026:2028`.
        years: Vec<String> => Texts;
        /// The time zone. Without it, UTC.
        location: Option<String> => Zone;
    }
}

settings! {
    /// A part of the day.
    pub struct TimeRange {
        /// The start, as `HH:MM`.
        start_time: String => TimeOfDay;
        /// The end (exclusive), as `HH:MM` up to `24:00`.
        end_time: String => TimeOfDay;
    }
}
