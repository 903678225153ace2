//! The systemd unit.

use super::*;

#[test]
fn units_are_valid_and_the_service_is_hardened() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED units_are_valid_and_the_service_is_hardened: systemd-analyze is not installed (Debian: apt-get install systemd)"
        );
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["cliffwatch.service", "cliffwatch-backup.service", "cliffwatch-backup.timer"].map(|name| {
        let unit = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd").join(name)).expect("read");
        // `verify` requires an existing program.
        let unit = unit.replace("/usr/bin/cliffwatch", env!("CARGO_BIN_EXE_cliffwatch"));
        let path = folder.path().join(name);
        fs::write(&path, unit).expect("written");
        path
    });
    let verified = Command::new("systemd-analyze").args(["verify", "--man=no"]).args(&paths).output().expect("runs");
    let said = String::from_utf8_lossy(&verified.stderr);
    let ours: Vec<&str> = said.lines().filter(|line| line.contains("cliffwatch")).collect();
    assert!(verified.status.success() && ours.is_empty(), "{said}");
    let path = &paths[0];
    let rated = Command::new("systemd-analyze").args(["security", "--offline=true"]).arg(path).output().expect("runs");
    let said = String::from_utf8_lossy(&rated.stdout);
    let overall = said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level: f64 = overall.split_whitespace().find_map(|word| word.parse().ok()).expect("a level");
    assert!(level <= 1.5, "{overall}");
}
