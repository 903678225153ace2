//! Points at which a crash test can kill the process, as a power cut would.
//!
//! `CLIFFWATCH_CRASH_AT=commit.inside` aborts at the first pass of that point, `CLIFFWATCH_CRASH_AT=commit.inside:3` at the third.
//! The points are in debug builds and in those with the feature `failpoints`; a release has none, and the variable means nothing
//! to it. Where it is not set, a point costs one relaxed atomic load.

/// The variable that names the point.
pub const VARIABLE: &str = "CLIFFWATCH_CRASH_AT";

/// The points that exist.
pub const POINTS: [&str; 5] = ["commit.before", "commit.inside", "commit.after", "attempt.before", "attempt.after"];

/// Those on the way of a restore.
pub const RESTORE_POINTS: [&str; 4] = ["restore.checked", "restore.marked", "restore.moving", "restore.moved"];

/// Those on the way to another schema.
pub const REBUILD_POINTS: [&str; 4] = ["rebuild.inside", "rebuild.made", "rebuild.kept", "rebuild.done"];

/// Those on the way of a copy into another database.
pub const COPY_POINTS: [&str; 2] = ["copy.filled", "copy.checked"];

/// Dies here, if this build has the points and the environment asks for it.
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

    use super::{COPY_POINTS, POINTS, REBUILD_POINTS, RESTORE_POINTS, VARIABLE};

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
                // A second thread may have been first: both read the same variable.
                let _ = PLAN.set(plan);
            }
            // Only now, so that whoever sees the state finds the plan.
            STATE.store(state, Ordering::Release);
        }
        let Some(plan) = PLAN.get() else { return };
        if plan.point == point && PASSES.fetch_add(1, Ordering::SeqCst) + 1 == plan.pass {
            eprintln!("{VARIABLE}: dying at {point}, pass {}", plan.pass);
            std::process::abort();
        }
    }

    fn points() -> Vec<&'static str> {
        [&POINTS[..], &RESTORE_POINTS, &REBUILD_POINTS, &COPY_POINTS].concat()
    }

    /// Reads `point` or `point:N`; a text that names no point arms nothing, and says so.
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
    fn a_point_may_name_its_pass() {
        assert_eq!(parse("commit.inside"), Some(CrashPlan { point: "commit.inside".into(), pass: 1 }));
        assert_eq!(parse("attempt.after:7"), Some(CrashPlan { point: "attempt.after".into(), pass: 7 }));
    }

    #[test]
    fn nonsense_arms_nothing() {
        for text in ["", "commit", "commit.inside:", "commit.inside:0", "commit.inside:x", "elsewhere:1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
