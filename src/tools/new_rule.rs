//! Makes the texts of a new rule and its test, from the answers of the command `new rule` or of the form on the pages. Pure.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use model::{Recipient, SourceText, phrase};

/// The kind of alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RuleTopic {
    #[default]
    Cliffs,
    Corrections,
    Burns,
    NoBuyback,
    /// Unlocks of a group in a window.
    Pressure,
    /// Emissions of a token in a window.
    Emissions,
}

/// The values of all prompts or options.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleRequest {
    pub about: RuleTopic,
    pub name: String,
    /// Slugs, globs, or `@groups`. Empty for all watched tokens.
    pub tokens: Vec<String>,
    /// The minimum value, in USD.
    pub above: Option<f64>,
    /// The minimum share of market cap of a cliff, in percent. With a minimum value, one of them is enough.
    pub percent: Option<f64>,
    /// The recipients of a cliff, of which one is enough. Empty for all.
    pub recipients: Vec<Recipient>,
    /// Lead times, such as `7d`.
    pub within: Vec<String>,
    pub days: u32,
    /// The window length, such as `7d`.
    pub window: String,
    pub severity: String,
    /// A slug that the rule selects, for its test.
    pub sample: String,
}

/// The texts of a rule and its test.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedRule {
    pub rule: String,
    pub test: String,
}

/// An option that only some kinds of alert have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOption {
    Above,
    Within,
    Days,
    Window,
}

impl RuleOption {
    pub fn flag(self) -> &'static str {
        match self {
            RuleOption::Above => "--above",
            RuleOption::Within => "--within",
            RuleOption::Days => "--days",
            RuleOption::Window => "--window",
        }
    }
}

impl RuleTopic {
    /// Returns whether an option changes rules of this kind.
    pub fn has(self, option: RuleOption) -> bool {
        match option {
            RuleOption::Above => self != RuleTopic::NoBuyback,
            RuleOption::Within => self == RuleTopic::Cliffs,
            RuleOption::Days => self == RuleTopic::NoBuyback,
            RuleOption::Window => matches!(self, RuleTopic::Pressure | RuleTopic::Emissions),
        }
    }

    /// All kinds, in the order of menus.
    pub const ALL: [RuleTopic; 6] = [
        RuleTopic::Cliffs,
        RuleTopic::Corrections,
        RuleTopic::Burns,
        RuleTopic::NoBuyback,
        RuleTopic::Pressure,
        RuleTopic::Emissions,
    ];

    /// Returns the kinds that have an option.
    pub fn all_with(option: RuleOption) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |topic| topic.has(option))
    }

    /// Returns the word in commands and addresses.
    pub fn word(self) -> &'static str {
        match self {
            RuleTopic::Cliffs => "cliffs",
            RuleTopic::Corrections => "corrections",
            RuleTopic::Burns => "burns",
            RuleTopic::NoBuyback => "no-buyback",
            RuleTopic::Pressure => "pressure",
            RuleTopic::Emissions => "emissions",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|topic| topic.word() == word)
    }

    /// Returns what the alerts are about, as the start of a sentence.
    pub fn about(self) -> &'static str {
        match self {
            RuleTopic::Cliffs => "Upcoming cliffs above a value",
            RuleTopic::Corrections => "Significant schedule corrections",
            RuleTopic::Burns => "Burns above a value",
            RuleTopic::NoBuyback => "No buyback for a number of days",
            RuleTopic::Pressure => "Unlocks of a group in a window, above a value",
            RuleTopic::Emissions => "Emissions of a token in a window, above a value",
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            RuleTopic::Cliffs => "CliffAhead",
            RuleTopic::Corrections => "ScheduleCorrected",
            RuleTopic::Burns => "LargeBurn",
            RuleTopic::NoBuyback => "NoBuyback",
            RuleTopic::Pressure => "UnlockPressure",
            RuleTopic::Emissions => "LargeEmission",
        }
    }

    /// Returns the default minimum value in USD. `None` if the kind has no minimum value.
    pub fn default_value(self) -> Option<f64> {
        match self {
            RuleTopic::Cliffs => Some(5e6),
            RuleTopic::Burns | RuleTopic::Emissions => Some(1e6),
            RuleTopic::Pressure => Some(25e6),
            RuleTopic::Corrections | RuleTopic::NoBuyback => None,
        }
    }
}

/// Makes the rule and its test. `rules_file` is the path of the rule file relative to the test.
pub fn generate(request: &RuleRequest, rules_file: &str) -> GeneratedRule {
    let above = request.above.or(request.about.default_value()).unwrap_or_default();
    let parts = match request.about {
        RuleTopic::Cliffs => cliff_rule(request, above),
        RuleTopic::Corrections => corrections(request),
        RuleTopic::Burns => burns(above),
        RuleTopic::NoBuyback => no_buyback(request),
        RuleTopic::Pressure => pressure(request, above),
        RuleTopic::Emissions => emissions(request, above),
    };
    let mut rule = format!("# {}\n[[rule]]\nalert  = {}\non     = {}\n", parts.comment, quoted(&request.name), quoted(parts.on));
    if request.about == RuleTopic::Cliffs && !request.within.is_empty() {
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
        "# The test of {}. Run it with `cliffwatch test`.\nrules = [{}]\n\n[route]\nreceivers = [\"desk\"]\n\n\
         [[test]]\nname  = {}\nstart = 2026-03-01T00:00:00Z\n",
        request.name,
        quoted(rules_file),
        quoted(parts.test)
    );
    for step in parts.steps {
        match step {
            TestStep::Input { at, what } => _ = write!(test, "\n[[test.input]]\nat    = \"{at}\"\ntoken = {token}\n{what}\n"),
            TestStep::ExpectSilence { at } => {
                _ = write!(test, "\n[[test.expect]]\nat = \"{at}\"\nrule = {}\nsilence = true\n", quoted(&request.name));
            }
            TestStep::ExpectAlert { at } => {
                _ = write!(test, "\n[[test.expect]]\nat = \"{at}\"\nrule = {}\n{expected}\n", quoted(&request.name));
            }
        }
    }
    GeneratedRule { rule, test }
}

/// Returns the folder of new rule files: that of the first pattern of `[rules] paths`.
pub fn folder_of(paths: &[String]) -> &Path {
    paths.first().and_then(|pattern| Path::new(pattern).parent()).unwrap_or_else(|| Path::new("rules"))
}

/// Returns whether a text can be the name of a new rule. Its file and its test are named after it.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

/// Returns the default name of a rule, with a number if the name is taken.
pub fn free_name(about: RuleTopic, rules: &[SourceText]) -> String {
    let first = std::iter::once(about.name().to_owned());
    let mut names = first.chain((2..1_000).map(|number| format!("{}{number}", about.name())));
    names.find(|name| !is_taken(name, rules)).unwrap_or_else(|| about.name().to_owned())
}

/// Returns whether a rule file contains a rule with this name.
pub fn is_taken(name: &str, rules: &[SourceText]) -> bool {
    rules.iter().any(|file| file.text.contains(&format!("{name:?}")))
}

/// Parses an amount such as `5M`, `250k`, `1.5B`, or `5000000`.
///
/// # Errors
///
/// Gives examples of amounts.
pub fn parse_money(text: &str) -> Result<f64, String> {
    let text = text.trim().trim_start_matches('$').replace('_', "");
    let (number, factor) = match text.chars().last().map(|c| c.to_ascii_lowercase()) {
        Some('k') => (text.get(..text.len() - 1), 1e3),
        Some('m') => (text.get(..text.len() - 1), 1e6),
        Some('b') => (text.get(..text.len() - 1), 1e9),
        _ => (Some(text.as_str()), 1.0),
    };
    let number =
        number.and_then(|number| number.trim().parse::<f64>().ok()).filter(|number| number.is_finite() && *number >= 0.0);
    number.map(|number| number * factor).ok_or_else(|| "examples: 5000000, 250k, 5M, 1.5B".to_owned())
}

/// Returns a slug that the tokens of a rule select, for its test.
///
/// # Errors
///
/// Names a group that the config lacks, or that has no tokens.
pub fn sample(tokens: &[String], groups: &BTreeMap<String, Vec<String>>) -> Result<String, String> {
    let slug_of = |pattern: &str| pattern.replace(['*', '?'], "x");
    let Some(first) = tokens.first().map(|token| token.trim()) else {
        // A rule on groups only evaluates their tokens.
        let grouped = groups.values().flatten().next();
        return Ok(grouped.map_or_else(|| "example".to_owned(), |pattern| slug_of(pattern)));
    };
    let Some(group) = first.strip_prefix('@') else { return Ok(slug_of(first)) };
    let Some(patterns) = groups.get(group) else {
        let known = groups.keys().map(|name| format!("@{name}")).collect::<Vec<_>>().join(", ");
        let known =
            if known.is_empty() { "the config defines no [watch.groups]".to_owned() } else { format!("expected one of {known}") };
        return Err(format!("unknown group {first}: {known}"));
    };
    let Some(pattern) = patterns.first() else { return Err(format!("the group {first} has no tokens")) };
    Ok(slug_of(pattern))
}

struct RuleParts {
    comment: String,
    on: &'static str,
    when: String,
    summary: String,
    /// The name of the test.
    test: &'static str,
    steps: Vec<TestStep>,
}

/// A step of a test. Times are durations after its start.
enum TestStep {
    Input { at: String, what: String },
    ExpectSilence { at: String },
    ExpectAlert { at: String },
}

fn input(at: &str, what: String) -> TestStep {
    TestStep::Input { at: at.to_owned(), what }
}

fn expect_silence(at: &str) -> TestStep {
    TestStep::ExpectSilence { at: at.to_owned() }
}

fn expect_alert(at: &str) -> TestStep {
    TestStep::ExpectAlert { at: at.to_owned() }
}

/// Returns an unlock three hours after the start, which is within every common lead time and window.
fn unlock(value: f64) -> String {
    format!(
        "unlock = [{{ unlockDate = \"2026-03-01T03:00:00Z\", cliffAmount = 1e6, cliffValue = {value}, valueToMarketCap = 1.0 }}]"
    )
}

/// Returns the parts of a rule for cliff unlocks whose value is at least `above` USD, or whose share of market cap is at least the
/// one of the request, with a test of the rule.
fn cliff_rule(request: &RuleRequest, above: f64) -> RuleParts {
    let lead = if request.within.is_empty() { String::new() } else { format!(" at lead times {}", request.within.join(", ")) };
    let above = (request.above.is_some() || request.percent.is_none()).then_some(above);
    let size = [above.map(phrase::usd), request.percent.map(|percent| format!("{percent}% of market cap"))];
    let size = size.into_iter().flatten().collect::<Vec<_>>().join(" or of ");
    let tests =
        [above.map(|above| format!("cliffValue >= {above}")), request.percent.map(|of| format!("valueToMarketCap >= {of}"))];
    let tests: Vec<String> = tests.into_iter().flatten().collect();
    let mut when = tests.join(" || ");
    let categories: Vec<String> =
        request.recipients.iter().flat_map(|of| of.categories()).map(|category| (*category).to_owned()).collect();
    if !categories.is_empty() {
        let sizes = if tests.len() > 1 { format!("({when})") } else { when };
        when = format!("{sizes} && allocations.exists(a, a.standardAllocationName in {})", list(&categories));
    }
    let names: Vec<String> = request.recipients.iter().map(|of| of.name().to_owned()).collect();
    let to = if names.is_empty() { String::new() } else { format!(" for {}", phrase::list(&names)) };
    let (value, percent) = (above.unwrap_or(1e6), request.percent.unwrap_or(1.0));
    let unlock = |share: f64| {
        let category = categories.first().map_or("Community", String::as_str);
        format!(
            "unlock = [{{ unlockDate = \"2026-03-01T03:00:00Z\", cliffValue = {}, valueToMarketCap = {}, allocations = [{{ allocationName = \"Part\", standardAllocationName = {}, cliffAmount = 1_000_000 }}] }}]",
            value * share,
            percent * share,
            quoted(category)
        )
    };
    RuleParts {
        comment: format!("Cliffs{to} with a value of {size} or more{lead}."),
        on: "unlock",
        when,
        summary:
            "{{ token.symbol }}: {{ cliffValue | usd }} ({{ valueToMarketCap | percent }} of market cap) to unlock {{ when }}"
                .to_owned(),
        test: "fires for a large cliff, not for a smaller one",
        steps: vec![input("0h", unlock(0.9)), expect_silence("1h"), input("2h", unlock(1.0)), expect_alert("150m")],
    }
}

fn corrections(request: &RuleRequest) -> RuleParts {
    let size = request.above.map(|above| format!(" && (!has(cliffValue) || cliffValue >= {above})")).unwrap_or_default();
    let comment =
        request.above.map(|above| format!(" of unlocks with a value of {} or more", phrase::usd(above))).unwrap_or_default();
    let value = request.above.unwrap_or(1e6);
    let unlock =
        format!("{{ unlockDate = \"2026-05-16T13:00:00Z\", cliffAmount = 1e6, cliffValue = {value}, dataSource = \"docs\" }}");
    RuleParts {
        comment: format!("Schedule corrections{comment}, except renames, revisions, and moves by less than a day."),
        on: "unlock.*",
        when: format!(
            "!(change.kind in [\"revised\", \"renamed\"]) && (!has(change.shiftDays) || abs(change.shiftDays) >= 1){size}"
        ),
        summary: "{{ token.symbol }}: {{ change.summary }}".to_owned(),
        test: "fires for a move by several days, not for another data source",
        steps: vec![
            input("0h", format!("unlock = [{unlock}]")),
            input("1h", "change = [{ unlock = \"2026-05-16\", dataSource = \"forum\" }]".to_owned()),
            expect_silence("90m"),
            input("2h", "change = [{ unlock = \"2026-05-16\", unlockDate = \"2026-05-26T13:00:00Z\" }]".to_owned()),
            expect_alert("3h"),
        ],
    }
}

fn burns(above: f64) -> RuleParts {
    RuleParts {
        comment: format!("Burns with a value of {} or more.", phrase::usd(above)),
        on: "burn",
        when: format!("value >= {above}"),
        summary: "{{ token.symbol }}: {{ amount | amount }} tokens ({{ value | usd }}) burned on {{ burnDate | date }}"
            .to_owned(),
        test: "fires for a large burn, not for a smaller one",
        steps: vec![
            input("0h", "burn  = []".to_owned()),
            input("1d", format!("add   = [{{ burn = \"2026-03-02\", amount = 1000, value = {} }}]", below(above))),
            expect_silence("36h"),
            input("2d", format!("add   = [{{ burn = \"2026-03-03\", amount = 1000, value = {above} }}]")),
            expect_alert("3d"),
        ],
    }
}

fn no_buyback(request: &RuleRequest) -> RuleParts {
    let days = request.days;
    RuleParts {
        comment: format!("Tokens whose last buyback is more than {days} days ago."),
        on: "token",
        when: format!("lastBuyback.daysSince > {days}"),
        summary: "{{ token.symbol }}: no buyback since {{ lastBuyback.date | date }}".to_owned(),
        test: "fires after the days without a buyback, not before",
        steps: vec![
            input("0h", "facts = { hasBuyback = true }\nbuyback = [{ buybackDate = \"2026-03-01\", tokenAmount = 1000, value = 500_000 }]".to_owned()),
            TestStep::ExpectSilence { at: format!("{days}d") },
            TestStep::ExpectAlert { at: format!("{}d", days.saturating_add(2)) },
        ],
    }
}

fn pressure(request: &RuleRequest, above: f64) -> RuleParts {
    let window = &request.window;
    RuleParts {
        comment: format!("Groups with unlocks of {} or more in the next {window}.", phrase::usd(above)),
        on: "portfolio",
        when: format!("ahead(\"{window}\").value >= {above}"),
        summary:
            "{{ group | default(\"all watched tokens\") }}: {{ ahead(\"WINDOW\").value | usd }} to unlock in the next WINDOW"
                .replace("WINDOW", window),
        test: "fires for a large sum in the window, not for a smaller one",
        steps: vec![input("0h", unlock(below(above))), expect_silence("1h"), input("2h", unlock(above)), expect_alert("150m")],
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
        comment: format!("Tokens with emissions of {} or more in the last {window}.", phrase::usd(above)),
        on: "token",
        when: format!("emitted(\"{window}\").value >= {above}"),
        summary: "{{ token.symbol }}: {{ emitted(\"WINDOW\").value | usd }} emitted in the last WINDOW".replace("WINDOW", window),
        test: "fires for a large sum in the window, not for a smaller one",
        steps: vec![
            input("0h", emission(below(above))),
            expect_silence("1h"),
            input("2h", emission(above)),
            expect_alert("150m"),
        ],
    }
}

/// Returns a value slightly below the threshold.
fn below(above: f64) -> f64 {
    (above * 0.9).round()
}

/// Quotes a string. JSON escapes are valid in TOML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests;
