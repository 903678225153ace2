//! Amounts as people write them: shares and sizes.

use serde::{Deserialize, Serialize, Serializer};

/// A share, written `"10%"`. Held in percent.
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
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no share: write it like \"10%\", from 0% to 100%")))
    }
}

impl Serialize for Percent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}%", self.0))
    }
}

/// A size, written `"16MiB"`, `"512KiB"` or as bytes. Held in bytes.
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
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no size: write it like \"16MiB\"")))
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{}B", self.0))
    }
}
