//! Points at which a crash test kills the process.
//!
//! `CLIFFWATCH_CRASH_AT=commit.inside` aborts when that point is first reached, `CLIFFWATCH_CRASH_AT=commit.inside:3`
//! the third time. The points exist in debug builds and with the feature `failpoints`; release builds ignore the
//! variable. Without the variable, a point costs one relaxed atomic load.

/// The environment variable that names the point.
pub const VARIABLE: &str = "CLIFFWATCH_CRASH_AT";

/// The points of commits and delivery attempts.
pub const POINTS: [&str; 5] = ["commit.before", "commit.inside", "commit.after", "attempt.before", "attempt.after"];

/// The points of a user action with a key.
pub const ACTION_POINTS: [&str; 2] = ["action.inside", "action.after"];

/// The points of a restore.
pub const RESTORE_POINTS: [&str; 4] = ["restore.checked", "restore.marked", "restore.moving", "restore.moved"];

/// The points of a copy.
pub const COPY_POINTS: [&str; 2] = ["copy.filled", "copy.checked"];

/// Aborts the process if the environment variable selects this point.
#[inline]
pub(crate) fn pass(point: &str) {
    #[cfg(any(debug_assertions, feature = "failpoints"))]
    armed::pass(point);
    #[cfg(not(any(debug_assertions, feature = "failpoints")))]
    let _ = point;
}

#[cfg(any(debug_assertions, feature = "failpoints"))]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    use super::{ACTION_POINTS, COPY_POINTS, POINTS, RESTORE_POINTS, VARIABLE};

    const UNREAD: u8 = 0;
    const OFF: u8 = 1;
    const ON: u8 = 2;

    static STATE: AtomicU8 = AtomicU8::new(UNREAD);
    static PLAN: OnceLock<CrashPlan> = OnceLock::new();

    #[derive(Debug, PartialEq, Eq)]
    pub(super) struct CrashPlan {
        pub(super) point: String,
        pub(super) pass: u64,
    }

    pub(super) fn pass(point: &str) {
        if STATE.load(Ordering::Relaxed) != OFF {
            pass_armed(point);
        }
    }

    #[cold]
    fn pass_armed(point: &str) {
        static PASSES: AtomicU64 = AtomicU64::new(0);
        if STATE.load(Ordering::Relaxed) == UNREAD {
            let plan = std::env::var(VARIABLE).ok().and_then(|text| parse(&text));
            let state = if plan.is_some() { ON } else { OFF };
            if let Some(plan) = plan {
                // Another thread may have set the same value first.
                let _ = PLAN.set(plan);
            }
            // Last, so that a thread that sees the state also sees the plan.
            STATE.store(state, Ordering::Release);
        }
        let Some(plan) = PLAN.get() else { return };
        if plan.point == point && PASSES.fetch_add(1, Ordering::SeqCst) + 1 == plan.pass {
            eprintln!("{VARIABLE}: dying at {point}, pass {}", plan.pass);
            std::process::abort();
        }
    }

    fn points() -> Vec<&'static str> {
        [&POINTS[..], &ACTION_POINTS, &RESTORE_POINTS, &COPY_POINTS].concat()
    }

    /// Parses `point` or `point:N`. Prints a warning and returns `None` for other text.
    pub(super) fn parse(text: &str) -> Option<CrashPlan> {
        let (point, pass) = match text.split_once(':') {
            Some((point, pass)) => (point, pass.parse().ok().filter(|pass| *pass > 0)),
            None => (text, Some(1)),
        };
        match pass {
            Some(pass) if points().contains(&point) => Some(CrashPlan { point: point.to_owned(), pass }),
            _ => {
                eprintln!("{VARIABLE} is ignored: expected one of {}, optionally with `:N`", points().join(", "));
                None
            }
        }
    }
}

#[cfg(all(test, any(debug_assertions, feature = "failpoints")))]
mod tests {
    use super::armed::{CrashPlan, parse};

    #[test]
    fn parses_point_with_optional_pass() {
        assert_eq!(parse("commit.inside"), Some(CrashPlan { point: "commit.inside".into(), pass: 1 }));
        assert_eq!(parse("attempt.after:7"), Some(CrashPlan { point: "attempt.after".into(), pass: 7 }));
    }

    #[test]
    fn invalid_text_is_ignored() {
        for text in ["", "commit", "commit.inside:", "commit.inside:0", "commit.inside:x", "elsewhere:1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
