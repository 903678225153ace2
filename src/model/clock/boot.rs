//! The identity of this machine and of its current boot.
//!
//! A time since boot means something only on the machine and in the boot that it was measured in. A database moves between machines: with
//! a takeover, a backup, or a copy.

/// A machine and one of its boots. An id is `None` if the system hides it, and then equals no other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineBoot {
    pub machine: Option<String>,
    pub boot: Option<String>,
}

/// The files with the id of the machine. Containers often lack both.
const MACHINE_ID_FILES: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

const BOOT_ID_FILE: &str = "/proc/sys/kernel/random/boot_id";

/// The environment variable in which the systemd unit passes the id of the boot, because it hides [`BOOT_ID_FILE`].
const BOOT_ID_VARIABLE: &str = "BOOT_ID";

impl MachineBoot {
    /// Reads the ids of this machine.
    pub(super) fn read() -> Self {
        let file = |path: &&str| id(&std::fs::read_to_string(path).ok()?);
        let variable = || id(&std::env::var(BOOT_ID_VARIABLE).ok()?);
        Self { machine: MACHINE_ID_FILES.iter().find_map(file), boot: file(&BOOT_ID_FILE).or_else(variable) }
    }
}

/// Parses a 128-bit id in hexadecimal digits, with or without hyphens. An id of zeros was never set.
fn id(text: &str) -> Option<String> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    let is_id = digits.len() == 32 && digits.chars().all(|c| c.is_ascii_hexdigit()) && digits.chars().any(|c| c != '0');
    is_id.then_some(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_kernel_and_systemd_are_equal() {
        let id = |text: &str| super::id(text);
        assert_eq!(id("BAB2CDBE-5089-42b5-aa6a-9c17bcaea5f7\n"), id("bab2cdbe508942b5aa6a9c17bcaea5f7"));
        for invalid in ["", "uninitialized", "bab2cdbe508942b5aa6a9c17bcaea5f", "00000000000000000000000000000000"] {
            assert_eq!(id(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn this_system_shows_its_boot() {
        assert!(MachineBoot::read().boot.is_some());
    }
}
