//! Percentages and sizes as the config writes them.

use serde::{Deserialize, Serialize, Serializer};

/// A percentage, written `"10%"`, from 0 to 100.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Percent(pub f64);

impl Percent {
    pub fn fraction(self) -> f64 {
        self.0 / 100.0
    }
}

impl<'de> Deserialize<'de> for Percent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.trim()
            .strip_suffix('%')
            .and_then(|number| number.trim().parse::<f64>().ok())
            .filter(|number| (0.0..=100.0).contains(number))
            .map(Percent)
            .ok_or_else(|| {
                serde::de::Error::custom(format!(
                    "{text:?} is not a valid percentage: expected a form like \"10%\", from 0% to 100%"
                ))
            })
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0))
    }
}

/// A size in bytes, written `"16MiB"`, `"512KiB"`, or as a number. Never zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digits = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text.trim().get(digits.len()..).unwrap_or_default() {
            "" | "B" => Some(1),
            "KiB" => Some(1 << 10),
            "MiB" => Some(1 << 20),
            "GiB" => Some(1 << 30),
            "kB" | "KB" => Some(1_000),
            "MB" => Some(1_000_000),
            "GB" => Some(1_000_000_000),
            _ => None,
        };
        digits
            .trim()
            .parse::<u64>()
            .ok()
            .zip(unit)
            .and_then(|(number, unit)| number.checked_mul(unit))
            .filter(|bytes| *bytes > 0)
            .map(ByteSize)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is not a valid size: expected a form like \"16MiB\"")))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
        let exact = units.into_iter().find(|(size, _)| self.0.is_multiple_of(*size));
        let (size, unit) = exact.unwrap_or((1, "B"));
        serializer.serialize_str(&format!("{}{unit}", self.0 / size))
    }
}
