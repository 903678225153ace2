//! Numbers with their units: USD, tokens, percent, factors, bytes.

/// US dollars: `$5.25M`, `$950`, `-$1.20K`.
pub fn usd(value: f64) -> String {
    if value < 0.0 { format!("-${}", short(-value)) } else { format!("${}", short(value)) }
}

/// A number without its unit: `1.00B`, `92.65M`, `0.35`.
pub fn amount(value: f64) -> String {
    if value < 0.0 { format!("-{}", short(-value)) } else { short(value) }
}

/// An amount of tokens: `92.65M ARB`; `92.65M tokens` without a symbol.
pub fn tokens(value: f64, symbol: Option<&str>) -> String {
    let number = amount(value);
    match symbol.map(str::trim).filter(|symbol| !symbol.is_empty()) {
        Some(symbol) => format!("{number} {}", super::name(symbol)),
        None if number == "1" => "1 token".to_owned(),
        None => format!("{number} tokens"),
    }
}

/// The size of an event: its value in USD if known, else its tokens.
pub fn size(value_usd: Option<f64>, tokens: Option<f64>, symbol: Option<&str>) -> String {
    match (value_usd, tokens) {
        (Some(value), _) => usd(value),
        (None, Some(tokens)) => self::tokens(tokens, symbol),
        (None, None) => UNKNOWN_AMOUNT.to_owned(),
    }
}

/// Stands for an amount that the source does not give.
pub const UNKNOWN_AMOUNT: &str = "an unknown amount";

/// A percentage: `2.77%`. Name its base in the text around it, or use [`share`].
pub fn percent(value: f64) -> String {
    if value != 0.0 && value.abs() < 0.005 {
        return format!("{}%", significant(value));
    }
    format!("{:.2}%", without_error(value))
}

/// A percentage with its base: `2.77% of market cap`.
pub fn share(percent: f64, base: &str) -> String {
    format!("{} of {base}", self::percent(percent))
}

/// The base of a share of market cap, for [`share`].
pub const MARKET_CAP: &str = "market cap";

/// The base of a share of the maximum supply, for [`share`].
pub const MAX_SUPPLY: &str = "max supply";

/// A factor: `×20`, `×0.5`, `×1.2`. Within 5% of one, the change in percent, which a factor would hide: `+0.22%`.
pub fn ratio(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    if value >= 1e6 {
        return format!("×{}", short(value));
    }
    let percent = (value - 1.0) * 100.0;
    if percent != 0.0 && percent.abs() < 5.0 {
        // Two digits distinguish the values and hide rounding errors of doubles.
        let decimals = if percent.abs() < 0.005 { 4 } else { 2 };
        let text = format!("{percent:+.decimals$}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        if !matches!(text, "+" | "-" | "+0" | "-0") {
            return format!("{text}%");
        }
    }
    format!("×{}", significant(value))
}

/// A multiple of something: `24×`, `0.35×`, `12.50K×`.
pub fn multiple(value: f64) -> String {
    format!("{}×", if value >= 1e4 { short(value) } else { significant(value) })
}

/// A size in bytes: `512 B`, `12.3 MiB`.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub fn bytes(count: u64) -> String {
    let mut size = count as f64;
    for unit in ["B", "KiB", "MiB"] {
        if size < 1024.0 {
            return if unit == "B" { format!("{count} B") } else { format!("{size:.1} {unit}") };
        }
        size /= 1024.0;
    }
    format!("{size:.1} GiB")
}

/// A number in full, its digits in groups of three: `5,250,000.5`.
pub fn grouped(number: impl std::fmt::Display) -> String {
    let number = number.to_string();
    let (sign, digits) = number.strip_prefix('-').map_or(("", number.as_str()), |digits| ("-", digits));
    let (whole, fraction) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text.push_str(fraction);
    text
}

/// Returns a number without the rounding error of a sum, so that a sum reads the same whatever the order of its terms is.
fn without_error(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// A number that is not negative, in thousands, millions, billions, or trillions.
fn short(value: f64) -> String {
    const UNITS: [(f64, &str); 4] = [(1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "K")];
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let value = without_error(value);
    // Covers -0.0 too, the sum of no numbers.
    if value == 0.0 {
        return "0".to_owned();
    }
    for (scale, unit) in UNITS {
        // 1000.00K would be 1.00M.
        if value >= scale * 0.999_995 && value >= 999.995 {
            let scaled = value / scale;
            return if scaled >= 1e6 { format!("{scaled:.2e}{unit}") } else { format!("{scaled:.2}{unit}") };
        }
    }
    if value >= 1.0 {
        let text = format!("{value:.2}");
        text.strip_suffix(".00").map_or_else(|| text.clone(), str::to_owned)
    } else {
        significant(value)
    }
}

/// Three significant digits, without trailing zeros.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if magnitude >= 2.0 {
        return format!("{value:.0}");
    }
    if magnitude < -9.0 {
        return format!("{value:.2e}");
    }
    let decimals = (0_u8..=12).find(|d| f64::from(*d) >= 2.0 - magnitude).unwrap_or(12);
    let text = format!("{value:.*}", usize::from(decimals));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}
