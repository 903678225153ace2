//! Passes the commit to the binary, for `--version` and the metrics: `CLIFFWATCH_COMMIT` (twelve digits) and
//! `CLIFFWATCH_COMMIT_DATE` (a day in UTC).
//!
//! The values come from git, else from `src/commit.txt`, which `git archive` fills in, else from the variable `CLIFFWATCH_COMMIT`
//! (for builds without either, such as images). A missing date is taken from `SOURCE_DATE_EPOCH`. If nothing is known, both are
//! empty. The build time is not included, so that the same sources produce the same binary.
//!
//! Also packs relocations where possible, see [`pack_relocations`].

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Enough digits of a commit hash to stay unique.
const DIGITS: usize = 12;

/// A commit hash and its time in seconds since 1970. `None` if unknown.
#[derive(Default)]
struct BuildCommit {
    hash: Option<String>,
    time: Option<i64>,
}

fn main() {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let archived = root.join("src/commit.txt");
    println!("cargo:rerun-if-changed=src/build.rs");
    println!("cargo:rerun-if-changed={}", archived.display());
    for variable in ["CLIFFWATCH_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo:rerun-if-env-changed={variable}");
    }
    let commit = Some(git_commit(&root))
        .filter(|commit| commit.hash.is_some())
        .or_else(|| Some(parse(&fs::read_to_string(&archived).ok()?)).filter(|commit| commit.hash.is_some()))
        .unwrap_or_else(|| parse(&env::var("CLIFFWATCH_COMMIT").unwrap_or_default()));
    let time = commit.time.or_else(|| env::var("SOURCE_DATE_EPOCH").ok()?.trim().parse().ok());
    // Always set both, so that an unknown value is not inherited from the environment of the compiler.
    println!("cargo:rustc-env=CLIFFWATCH_COMMIT={}", commit.hash.unwrap_or_default());
    println!("cargo:rustc-env=CLIFFWATCH_COMMIT_DATE={}", time.and_then(day).unwrap_or_default());
    pack_relocations();
}

/// Packs the relative relocations. Unpacked they take about 3 MB and stay in memory. glibc 2.36 (Debian 12) and
/// later can load packed ones. A linker without the option prints a warning and continues.
fn pack_relocations() {
    let is = |name: &str, wanted: &str| env::var(name).is_ok_and(|value| value == wanted);
    let is_native = env::var("HOST").is_ok_and(|host| is("TARGET", &host));
    if is_native && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") && glibc() >= Some((2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn glibc() -> Option<(u32, u32)> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// Returns the checked-out commit. Sources without a `.git` of their own may lie inside another repository, whose commit must not
/// be used.
fn git_commit(root: &Path) -> BuildCommit {
    if !root.join(".git").exists() {
        return BuildCommit::default();
    }
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // The reflog grows with every commit, even if branches are packed. Only existing paths are watched: a missing one would run
    // this script in every build.
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        rerun_if_changed(git(&["rev-parse", "--git-path", name]).map(|path| root.join(path.trim())));
    }
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        rerun_if_changed(git(&["rev-parse", "--git-path", branch.trim()]).map(|path| root.join(path.trim())));
    }
    parse(&git(&["log", "-1", "--no-show-signature", "--format=%H %ct"]).unwrap_or_default())
}

fn rerun_if_changed(path: Option<PathBuf>) {
    if let Some(path) = path.filter(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

/// Parses `HASH [SECONDS]`. Returns no hash for anything else, such as a placeholder that `git archive` did not fill in.
fn parse(text: &str) -> BuildCommit {
    let mut words = text.split_whitespace();
    let is_hash = |word: &&str| (7..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    match words.next().filter(is_hash) {
        Some(hash) => BuildCommit {
            hash: Some(hash.chars().take(DIGITS).collect::<String>().to_ascii_lowercase()),
            time: words.next().and_then(|seconds| seconds.parse().ok()),
        },
        None => BuildCommit::default(),
    }
}

/// Formats seconds since 1970 as a date like `2026-03-09`, or returns `None` beyond the year 9999. Howard Hinnant's
/// `civil_from_days`: years begin in March, so that a leap day is the last day of its year.
fn day(seconds: i64) -> Option<String> {
    let days = seconds.div_euclid(86_400).checked_add(719_468)?; // since 0000-03-01
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (0..=9999).contains(&year).then(|| format!("{year:04}-{month:02}-{day:02}"))
}
