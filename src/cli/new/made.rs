//! A rule and its test, in the words of rule files, from what one wants to hear of. Pure.

use std::fmt::Write as _;

use clap::ValueEnum;

use model::format;

/// What one wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum About {
    /// Cliffs ahead that are worth more than an amount
    Cliffs,
    /// Any correction of a schedule that matters
    Corrections,
    /// Burns over an amount
    Burns,
    /// No buyback for so many days
    NoBuyback,
    /// What a group of tokens unlocks in a window, over an amount
    Pressure,
    /// What a token emitted in a window, over an amount
    Emissions,
}

/// The answers to all questions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RuleRequest {
    pub about: About,
    pub name: String,
    /// Slugs, globs, `@groups`; empty: every watched token.
    pub tokens: Vec<String>,
    /// USD.
    pub above: Option<f64>,
    /// Lead times, such as `7d`.
    pub within: Vec<String>,
    pub days: u32,
    /// Such as `7d`.
    pub window: String,
    pub severity: String,
    /// A slug that the rule lets in, for its test.
    pub sample: String,
}

/// A rule and its test, as text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MadeRule {
    pub rule: String,
    pub test: String,
}

impl About {
    pub fn name(self) -> &'static str {
        match self {
            About::Cliffs => "CliffAhead",
            About::Corrections => "ScheduleCorrected",
            About::Burns => "LargeBurn",
            About::NoBuyback => "NoBuyback",
            About::Pressure => "UnlockPressure",
            About::Emissions => "LargeEmission",
        }
    }

    /// USD, where nothing else is said; none where no amount is asked for.
    pub fn above(self) -> Option<f64> {
        match self {
            About::Cliffs => Some(5e6),
            About::Burns | About::Emissions => Some(1e6),
            About::Pressure => Some(25e6),
            About::Corrections | About::NoBuyback => None,
        }
    }
}

/// Makes the rule and its test; `rules_file` is the rule's file as the test names it.
pub(super) fn made(request: &RuleRequest, rules_file: &str) -> MadeRule {
    let above = request.above.or(request.about.above()).unwrap_or_default();
    let parts = match request.about {
        About::Cliffs => cliffs(request, above),
        About::Corrections => corrections(request),
        About::Burns => burns(above),
        About::NoBuyback => no_buyback(request),
        About::Pressure => pressure(request, above),
        About::Emissions => emissions(request, above),
    };
    let mut rule = format!("# {}\n[[rule]]\nalert  = {}\non     = {}\n", parts.comment, quoted(&request.name), quoted(parts.on));
    if request.about == About::Cliffs && !request.within.is_empty() {
        let _ = writeln!(rule, "within = {}", list(&request.within));
    }
    let _ = writeln!(rule, "when   = '{}'", parts.when);
    if !request.tokens.is_empty() {
        let _ = writeln!(rule, "tokens = {}", list(&request.tokens));
    }
    let _ = writeln!(rule, "labels = {{ severity = {} }}", quoted(&request.severity));
    let _ = write!(rule, "\n[rule.annotations]\nsummary = '{}'\n", parts.summary);
    let expected =
        format!("alert = [{{ rule = {}, labels = {{ severity = {} }} }}]", quoted(&request.name), quoted(&request.severity));
    let token = quoted(&request.sample);
    let mut test = format!(
        "# The test of {}; `cliffwatch test` runs it.\nrules = [{}]\n\n[route]\nreceivers = [\"desk\"]\n\n\
         [[test]]\nname  = {}\nstart = 2026-03-01T00:00:00Z\n",
        request.name,
        quoted(rules_file),
        quoted(parts.test)
    );
    for step in parts.steps {
        match step {
            TestStep::Says { at, what } => _ = write!(test, "\n[[test.input]]\nat    = \"{at}\"\ntoken = {token}\n{what}\n"),
            TestStep::Silent { at } => {
                _ = write!(test, "\n[[test.expect]]\nat = \"{at}\"\nrule = {}\nsilence = true\n", quoted(&request.name));
            }
            TestStep::Told { at } => {
                _ = write!(test, "\n[[test.expect]]\nat = \"{at}\"\nrule = {}\n{expected}\n", quoted(&request.name));
            }
        }
    }
    MadeRule { rule, test }
}

struct RuleParts {
    comment: String,
    on: &'static str,
    when: String,
    summary: String,
    /// Its test: the name, and what comes after what.
    test: &'static str,
    steps: Vec<TestStep>,
}

/// A step of a test; times are lengths after its start.
enum TestStep {
    Says { at: String, what: String },
    Silent { at: String },
    Told { at: String },
}

fn says(at: &str, what: String) -> TestStep {
    TestStep::Says { at: at.to_owned(), what }
}

fn silent(at: &str) -> TestStep {
    TestStep::Silent { at: at.to_owned() }
}

fn told(at: &str) -> TestStep {
    TestStep::Told { at: at.to_owned() }
}

/// An unlock three hours after the start: within every usual lead time and window.
fn unlock(value: f64) -> String {
    format!(
        "unlock = [{{ unlockDate = \"2026-03-01T03:00:00Z\", cliffAmount = 1e6, cliffValue = {value}, valueToMarketCap = 1.0 }}]"
    )
}

fn cliffs(request: &RuleRequest, above: f64) -> RuleParts {
    let when = if request.within.is_empty() { String::new() } else { format!(", told {} ahead", request.within.join(", ")) };
    RuleParts {
        comment: format!("Cliffs worth {} or more{when}.", format::usd(above)),
        on: "unlock",
        when: format!("cliffValue >= {above}"),
        summary:
            "{{ token.symbol }}: {{ cliffValue | usd }} ({{ valueToMarketCap | percent }} of market cap) to unlock {{ when }}"
                .to_owned(),
        test: "a cliff of that size is told, a smaller one is not",
        steps: vec![says("0h", unlock(below(above))), silent("1h"), says("2h", unlock(above)), told("150m")],
    }
}

fn corrections(request: &RuleRequest) -> RuleParts {
    let size = request.above.map(|above| format!(" && (!has(cliffValue) || cliffValue >= {above})")).unwrap_or_default();
    let comment = request.above.map(|above| format!(" of unlocks worth {} or more", format::usd(above))).unwrap_or_default();
    let value = request.above.unwrap_or(1e6);
    let unlock =
        format!("{{ unlockDate = \"2026-05-16T13:00:00Z\", cliffAmount = 1e6, cliffValue = {value}, dataSource = \"docs\" }}");
    RuleParts {
        comment: format!("Any correction of a schedule{comment}, but for other names and sources, and moves by less than a day."),
        on: "unlock.*",
        when: format!(
            "!(change.kind in [\"revised\", \"renamed\"]) && (!has(change.shiftDays) || abs(change.shiftDays) >= 1){size}"
        ),
        summary: "{{ token.symbol }}: {{ change.summary }}".to_owned(),
        test: "an unlock that moves by days is told, another source is not",
        steps: vec![
            says("0h", format!("unlock = [{unlock}]")),
            says("1h", "change = [{ unlock = \"2026-05-16\", dataSource = \"forum\" }]".to_owned()),
            silent("90m"),
            says("2h", "change = [{ unlock = \"2026-05-16\", unlockDate = \"2026-05-26T13:00:00Z\" }]".to_owned()),
            told("3h"),
        ],
    }
}

fn burns(above: f64) -> RuleParts {
    RuleParts {
        comment: format!("Burns worth {} or more, as they become known.", format::usd(above)),
        on: "burn",
        when: format!("value >= {above}"),
        summary: "{{ token.symbol }}: {{ amount | amount }} tokens ({{ value | usd }}) burned on {{ burnDate | date }}"
            .to_owned(),
        test: "a burn of that size is told, a smaller one is not",
        steps: vec![
            says("0h", "burn  = []".to_owned()),
            says("1d", format!("add   = [{{ burn = \"2026-03-02\", amount = 1000, value = {} }}]", below(above))),
            silent("36h"),
            says("2d", format!("add   = [{{ burn = \"2026-03-03\", amount = 1000, value = {above} }}]")),
            told("3d"),
        ],
    }
}

fn no_buyback(request: &RuleRequest) -> RuleParts {
    let days = request.days;
    RuleParts {
        comment: format!("Tokens that were bought back before, and not for {days} days."),
        on: "token",
        when: format!("lastBuyback.daysSince > {days}"),
        summary: "{{ token.symbol }}: no buyback since {{ lastBuyback.date | date }}".to_owned(),
        test: "no buyback for so long is told, and not before",
        steps: vec![
            says("0h", "facts = { hasBuyback = true }\nbuyback = [{ buybackDate = \"2026-03-01\", tokenAmount = 1000, value = 500_000 }]".to_owned()),
            TestStep::Silent { at: format!("{days}d") },
            TestStep::Told { at: format!("{}d", days.saturating_add(2)) },
        ],
    }
}

fn pressure(request: &RuleRequest, above: f64) -> RuleParts {
    let window = &request.window;
    RuleParts {
        comment: format!("Groups of which {} or more unlocks in the next {window}.", format::usd(above)),
        on: "portfolio",
        when: format!("ahead(\"{window}\").value >= {above}"),
        summary:
            "{{ group | default(\"all watched tokens\") }}: {{ ahead(\"WINDOW\").value | usd }} to unlock in the next WINDOW"
                .replace("WINDOW", window),
        test: "that much in the window is told, less is not",
        steps: vec![says("0h", unlock(below(above))), silent("1h"), says("2h", unlock(above)), told("150m")],
    }
}

fn emissions(request: &RuleRequest, above: f64) -> RuleParts {
    let window = &request.window;
    let emission = |value: f64| {
        format!(
            "emission = [{{ startDate = \"2026-02-28T00:00:00Z\", endDate = \"2026-02-28T23:59:59Z\", unlockAmount = 1000, unlockValue = {value} }}]"
        )
    };
    RuleParts {
        comment: format!("Tokens that emitted {} or more in the last {window}.", format::usd(above)),
        on: "token",
        when: format!("emitted(\"{window}\").value >= {above}"),
        summary: "{{ token.symbol }}: {{ emitted(\"WINDOW\").value | usd }} emitted in the last WINDOW".replace("WINDOW", window),
        test: "that much in the window is told, less is not",
        steps: vec![says("0h", emission(below(above))), silent("1h"), says("2h", emission(above)), told("150m")],
    }
}

/// A little less than the threshold.
fn below(above: f64) -> f64 {
    (above * 0.9).round()
}

/// A text in quotes. What JSON escapes, TOML reads.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
