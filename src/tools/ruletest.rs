//! Rule tests: files next to the rules that define responses of the source and the expected notifications.
//!
//! `file` parses a test file, `source` makes the responses, [`crate::simulate`] runs the daemon's pipeline on the clock of the
//! test, `compare` compares the results with the expectations, and [`report`] formats the outcome for people and build servers.
//!
//! A test is complete: every notification between two expectations must be expected, so both unexpected and missing notifications
//! fail it. Labels, receivers, and texts are final, as in a message. If a test expects messages, routes, groups, silences,
//! inhibitions, and mute intervals apply. No network, no database, no system clock.

mod compare;
mod file;
pub mod report;
pub mod schema;
mod source;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::TimeDelta;

use crate::simulate::{DeliverySetup, Pace, Sent, Simulation};
use engine::pipeline::DispatchPolicy;
use engine::route::{RouteTree, Sections};
use model::config::{self, Config};
use model::file_kind::open_regular;
use model::{Diagnostic, Notification, Resource, SourceText, Timestamp, TokenId, Watch, diagnostic, phrase};
use rules::{self, RuleSet};

use compare::AlertDifferences;
use file::{Expectation, ExpectedAlert, TestCase, TestFile, TestInput, folder_of, instant, line_of};
use source::{SourceResponse, TestSource};

/// The maximum size of a test file, in bytes.
const MAX_FILE: u64 = 4 << 20;
/// The maximum number of test files in a run.
const MAX_TEST_FILES: usize = 1_000;

/// Returns the timing of the daemon, which evaluates every minute.
fn pace() -> Pace {
    Pace { evaluate_every: TimeDelta::minutes(1), ..Pace::default() }
}

/// The defaults of tests whose file does not define its own.
#[derive(Clone, Copy, Debug)]
pub struct TestSetup<'a> {
    /// The source of rules, receivers, routes, and groups.
    pub config: &'a Config,
    /// The folder of its relative paths.
    pub base_dir: &'a Path,
    /// Runs only tests whose name contains this text.
    pub only: Option<&'a str>,
}

#[derive(Clone, Debug)]
pub struct TestOutcome {
    pub file: PathBuf,
    /// The first line of the test, from 1.
    pub line: usize,
    /// The name of the test, or a fixed text for a problem of the whole file.
    pub name: String,
    pub took: Duration,
    /// Empty if the test passed.
    pub failures: Vec<TestFailure>,
}

/// A difference from an expectation, or an error.
#[derive(Clone, Debug)]
pub struct TestFailure {
    /// The line of the expectation or input, from 1.
    pub line: usize,
    /// A short description of the expectation or input.
    pub place: String,
    /// The differences, ready to print.
    pub lines: Vec<String>,
}

impl TestOutcome {
    pub fn is_passed(&self) -> bool {
        self.failures.is_empty()
    }
}

/// Returns the test files of a config: `tests/*.toml` in each folder that `[rules] paths` names.
pub fn files_beside(config: &Config, base_dir: &Path) -> Vec<PathBuf> {
    let mut patterns: Vec<String> = config
        .rules
        .paths
        .iter()
        .map(|pattern| {
            let folder = Path::new(pattern).parent().unwrap_or_else(|| Path::new(""));
            folder.join("tests/*.toml").to_string_lossy().into_owned()
        })
        .collect();
    patterns.sort();
    patterns.dedup();
    // Tests are optional, so ignore warnings about patterns without matches.
    rules::read_files(&patterns, base_dir).files.into_iter().map(|source| source.file).collect()
}

/// Runs the tests of `files` in order, at most `MAX_TEST_FILES` files. `report` is called with each outcome.
pub fn run(files: &[PathBuf], setup: &TestSetup<'_>, mut report: impl FnMut(&TestOutcome)) -> Vec<TestOutcome> {
    let mut outcomes = Vec::new();
    for path in files.iter().take(MAX_TEST_FILES) {
        for outcome in run_file(path, setup) {
            report(&outcome);
            outcomes.push(outcome);
        }
    }
    outcomes
}

fn run_file(path: &Path, setup: &TestSetup<'_>) -> Vec<TestOutcome> {
    match read(path) {
        Ok(text) => run_text(SourceText { file: path.to_owned(), text }, setup),
        Err(problem) => failed_file(path, vec![format!("cannot read the test file: {problem}")]),
    }
}

/// Runs the tests in the text of a file.
pub fn run_text(source: SourceText, setup: &TestSetup<'_>) -> Vec<TestOutcome> {
    run_against(source, setup, None)
}

/// Runs the tests in a text, with the rules in `rules` instead of the rule files that it names.
pub fn run_against(source: SourceText, setup: &TestSetup<'_>, rules: Option<&[SourceText]>) -> Vec<TestOutcome> {
    let path = source.file.as_path();
    let file = match file::parse(&source) {
        Ok(file) => file,
        Err(problems) => return failed_file(path, problem_lines(&problems, std::slice::from_ref(&source))),
    };
    let context = match TestContext::of(&file, path, setup, rules) {
        Ok(context) => context,
        Err(lines) => return failed_file(path, lines),
    };
    let is_wanted = |test: &&toml::Spanned<TestCase>| setup.only.is_none_or(|only| test.get_ref().name.contains(only));
    file.test.iter().filter(is_wanted).map(|test| context.run(test.get_ref(), test.span(), &source, &file)).collect()
}

/// Returns the outcome of a file with a problem that prevents all of its tests.
fn failed_file(path: &Path, lines: Vec<String>) -> Vec<TestOutcome> {
    let failures = vec![TestFailure { line: 1, place: "the whole file".into(), lines }];
    vec![TestOutcome { file: path.to_owned(), line: 1, name: "the file is valid".into(), took: Duration::ZERO, failures }]
}

fn read(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let file = open_regular(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(format!("it exceeds {MAX_FILE} bytes"));
    }
    model::text::utf8(bytes).map_err(|problem| format!("it is {problem}"))
}

fn problem_lines(problems: &[Diagnostic], sources: &[SourceText]) -> Vec<String> {
    diagnostic::render(problems, sources, false).lines().map(str::to_owned).collect()
}

/// The rules, routes, and groups of the tests in a file.
struct TestContext {
    rules: RuleSet,
    routes: RouteTree,
    policy: DispatchPolicy,
    watch: Watch,
}

impl TestContext {
    fn of(file: &TestFile, path: &Path, setup: &TestSetup<'_>, texts: Option<&[SourceText]>) -> Result<Self, Vec<String>> {
        let config = setup.config;
        let (route, receivers) = match &file.route {
            None => (&config.route, config.receivers.clone()),
            Some(route) => {
                let named = |name: String| config::ReceiverSettings { name, ..config::ReceiverSettings::default() };
                (route, file::receivers_of(route).into_iter().map(named).collect())
            }
        };
        let (inhibit_rules, time_intervals) = match &file.route {
            None => (&config.inhibit_rules, &config.time_intervals),
            Some(_) => (&file.inhibit_rules, &file.time_intervals),
        };
        let policy =
            DispatchPolicy::of(&receivers, &config.delivery, config.source.stale_price).map_err(|problem| vec![problem])?;
        let routes = RouteTree::of(&Sections { route, receivers: &receivers, inhibit_rules, time_intervals })
            .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let groups = file.groups.as_ref().unwrap_or(&config.watch.groups);
        let watch = Watch::build(&config::WatchSettings {
            tokens: vec!["*".into()],
            groups: groups.clone(),
            ..config::WatchSettings::default()
        })
        .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let read = match (texts, &file.rules) {
            (Some(texts), _) => rules::RuleFiles { files: texts.to_vec(), diagnostics: Vec::new() },
            (None, Some(paths)) => rules::read_files(paths, folder_of(path)),
            (None, None) => rules::read_files(&config.rules.paths, setup.base_dir),
        };
        let names: Vec<String> = receivers.iter().map(|receiver| receiver.name.clone()).collect();
        // Use the time of the earliest test, so that rules that expire between then and today are active.
        let earliest = file.test.iter().filter_map(|test| instant(test.get_ref().start.get_ref(), None).ok()).min();
        let around = rules::Surroundings { receivers: &names, groups, now: earliest.unwrap_or_default() };
        let loaded = rules::load(&read.files, &around);
        let is_error = |problem: &&Diagnostic| problem.severity == diagnostic::DiagnosticLevel::Error;
        let errors: Vec<Diagnostic> = read.diagnostics.iter().chain(&loaded.diagnostics).filter(is_error).cloned().collect();
        if !errors.is_empty() {
            return Err(problem_lines(&errors, &loaded.sources));
        }
        if loaded.set.rules.is_empty() {
            return Err(vec!["no rules to test: add their files, for example `rules = [\"../unlocks.toml\"]`".into()]);
        }
        Ok(Self { rules: loaded.set, routes, policy, watch })
    }

    fn run(&self, test: &TestCase, span: Range<usize>, source: &SourceText, file: &TestFile) -> TestOutcome {
        let began = Instant::now();
        let failures = self.failures(test, source, file);
        TestOutcome {
            file: source.file.clone(),
            line: line_of(&source.text, &span),
            name: test.name.clone(),
            took: began.elapsed(),
            failures,
        }
    }

    fn failures(&self, test: &TestCase, source: &SourceText, file: &TestFile) -> Vec<TestFailure> {
        let at = |span: &Range<usize>| line_of(&source.text, span);
        let broken = |span: &Range<usize>, place: &str, problem: String| {
            vec![TestFailure { line: at(span), place: place.to_owned(), lines: vec![problem] }]
        };
        let Ok(start) = instant(test.start.get_ref(), None) else { return Vec::new() };
        let mut failures = Vec::new();
        if let Some(problem) = self.unknown_rule(test) {
            return broken(&test.start.span(), "the test", problem);
        }

        let silences = (1..).zip(&test.silence).filter_map(|(number, quiet)| quiet.get_ref().silence(start, number).ok());
        let setup = DeliverySetup { silences: silences.collect(), ..DeliverySetup::of(self.policy.clone()) };
        let mut simulation = Simulation::new(&self.rules, &self.routes, &self.watch, pace(), start).with_delivery(setup);
        let mut responses = TestSource::default();
        for facts in file.token.iter().chain(&test.token) {
            match source::token_item(facts.get_ref()) {
                Ok(item) => simulation.token(&item),
                Err(problem) => return broken(&facts.span(), "a token", problem),
            }
        }
        let mut last = start;
        let mut inputs = test.input.iter().map(|input| {
            last = input.get_ref().at.as_ref().and_then(|at| instant(at.get_ref(), Some(start)).ok()).unwrap_or(last);
            (last, input)
        });
        let mut next = inputs.next();
        let expectations = test.expect.iter().map(Some).chain([None]);
        for expect in expectations {
            let until = expect.map(|expect| instant(expect.get_ref().at.get_ref(), Some(start)).unwrap_or(start));
            while let Some((when, input)) = next.filter(|(when, _)| until.is_none_or(|until| *when <= until)) {
                simulation.advance_before(when);
                if let Err(problem) = ingest_input(&mut simulation, &mut responses, input.get_ref(), folder_of(&source.file)) {
                    let place = format!("the input at {}", when.format("%Y-%m-%d %H:%M"));
                    failures.extend(broken(&input.span(), &place, problem));
                    return failures;
                }
                next = inputs.next();
            }
            let (Some(expect), Some(until)) = (expect, until) else { break };
            simulation.advance(until);
            let notified = notified_by(&mut simulation);
            let sent = simulation.take_sent();
            let line = at(&expect.span());
            let actual = ActualResults { notified: &notified, sent: &sent, simulation: &simulation };
            failures.extend(check_expectation(expect.get_ref(), line, &actual, until, start));
        }
        // Notifications after the last expectation are unexpected.
        let notified = notified_by(&mut simulation);
        if !notified.is_empty() {
            let lines = compare::differences(&[], &notified, start).lines;
            failures.push(TestFailure { line: at(&test.start.span()), place: "after the last expectation".into(), lines });
        }
        for (rule, error) in simulation.template_errors() {
            failures.push(TestFailure {
                line: at(&test.start.span()),
                place: format!("a template of {rule}"),
                lines: vec![error.clone()],
            });
        }
        failures
    }

    /// Returns a problem if an expectation names an unknown rule, because it would pass or fail for the wrong reason.
    fn unknown_rule(&self, test: &TestCase) -> Option<String> {
        let names = || self.rules.rules.iter().map(|rule| rule.name.as_str());
        let named = test.expect.iter().flat_map(|expect| {
            let expect = expect.get_ref();
            expect.rule.iter().chain(expect.alert.iter().map(|alert| &alert.get_ref().rule))
        });
        let unknown = named.into_iter().find(|name| names().all(|known| known != name.as_str()))?;
        Some(match diagnostic::closest(unknown, names()) {
            Some(near) => format!("unknown rule {unknown:?}: did you mean {near:?}?"),
            None => format!("unknown rule {unknown:?}: expected one of {}", names().collect::<Vec<_>>().join(", ")),
        })
    }
}

fn notified_by(simulation: &mut Simulation<'_>) -> Vec<Notification> {
    simulation.take_notified().into_iter().map(Arc::unwrap_or_clone).collect()
}

/// Ingests an input of a test.
fn ingest_input(
    simulation: &mut Simulation<'_>,
    responses: &mut TestSource,
    input: &TestInput,
    folder: &Path,
) -> Result<(), String> {
    let token = TokenId::from(input.token.as_str());
    if let Some(facts) = &input.facts {
        let mut facts = facts.clone();
        facts.insert("id".into(), toml::Value::String(input.token.clone()));
        simulation.token(&source::token_item(&facts)?);
    }
    let mut touched: BTreeMap<Resource, ()> = BTreeMap::new();
    let lists = [
        (Resource::Unlock, &input.unlock),
        (Resource::Burn, &input.burn),
        (Resource::Buyback, &input.buyback),
        (Resource::Emission, &input.emission),
        (Resource::Allocation, &input.allocation),
        (Resource::Funding, &input.funding),
    ];
    for (resource, given) in lists {
        if let Some(given) = given {
            responses.set(&token, resource, given, folder)?;
            touched.insert(resource, ());
        }
    }
    for entry in &input.add {
        touched.insert(responses.add(&token, entry)?, ());
    }
    for entry in &input.change {
        touched.insert(responses.change(&token, entry)?, ());
    }
    for entry in &input.remove {
        touched.insert(responses.remove(&token, entry)?, ());
    }
    for resource in touched.into_keys() {
        match responses.response(&token, resource)? {
            SourceResponse::Records(endpoint, payload) => simulation.response(&token, endpoint, payload),
            SourceResponse::Rounds(rounds) => simulation.rounds(&token, &rounds),
        }
    }
    Ok(())
}

/// The results of a simulation up to an expectation.
struct ActualResults<'a> {
    notified: &'a [Notification],
    sent: &'a [Sent],
    simulation: &'a Simulation<'a>,
}

fn check_expectation(
    expect: &Expectation,
    line: usize,
    actual: &ActualResults<'_>,
    until: Timestamp,
    start: Timestamp,
) -> Option<TestFailure> {
    let ActualResults { notified, sent, simulation } = actual;
    let is_meant = |notification: &&Notification| expect.rule.as_deref().is_none_or(|rule| notification.body.rule == rule);
    let notified: Vec<Notification> = notified.iter().filter(is_meant).cloned().collect();
    let wanted: Vec<&ExpectedAlert> = expect.alert.iter().map(toml::Spanned::get_ref).collect();
    // If only messages are expected, single alerts are not compared.
    let expects_alerts = expect.silence || !expect.alert.is_empty();
    let AlertDifferences { mut lines, about } =
        if expects_alerts { compare::differences(&wanted, &notified, start) } else { AlertDifferences::default() };
    if let Some(messages) = &expect.message {
        let wanted: Vec<_> = messages.iter().map(toml::Spanned::get_ref).collect();
        let is_meant = |sent: &&Sent| {
            let mut notifications = sent.notified.iter().chain(&sent.counted);
            expect.rule.as_deref().is_none_or(|rule| notifications.any(|notification| notification.body.rule == rule))
        };
        let sent: Vec<&Sent> = sent.iter().filter(is_meant).collect();
        lines.extend(compare::message_differences(&wanted, &sent, start));
    }
    lines.extend(compare::explanations(&about, simulation));
    let place = format!("expected at {}", phrase::instant_iso(until));
    (!lines.is_empty()).then_some(TestFailure { line, place, lines })
}
