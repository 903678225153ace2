//! Measures rules: native predicates compared with the interpreter, and an evaluation of ten thousand tokens with two hundred rules.
//!
//! `cargo bench --bench rules` prints ratios and rates. The interpreter is the `cel` crate with a compiled program. It runs once
//! with variables bound in advance, which a daemon cannot do, and once with the used variables bound for each record. A full evaluation
//! applies every rule to every record; an incremental one only to changed tokens.

use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::ensure;
use cliffwatch::{
    daemon::config::{Environment, load_text},
    engine::{
        evaluate::{self, EvaluationContext, Limits, TokenFacts, TokenTotals},
        route::RouteTree,
    },
    model::{
        diagnostic::SourceText,
        supply::{Record, RecordKey, Resource, Timestamp, Token, TokenId, Tracked},
    },
    rules::{
        self, RuleSet, Scope, Surroundings, Truth,
        aggregate::{AggregateCache, FlowEntries, Recheck},
    },
};

const TOKENS: usize = 10_000;
const UNLOCKS: usize = 20;
/// The number of changed tokens per evaluation.
const MOVED: usize = 50;
/// The number of tokens evaluated together, as in a cycle.
const BATCH: usize = 256;
const ROUNDS: u32 = 5;
/// The number of rounds of a predicate. They are short, because other programs interrupt long ones.
const PREDICATE_ROUNDS: u32 = 100;

fn best(rounds: u32, mut run: impl FnMut()) -> Duration {
    (0..rounds)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .min()
        .unwrap_or_default()
}

fn load(text: String, now: Timestamp) -> anyhow::Result<RuleSet> {
    let (names, groups) = (["ops".to_owned()], BTreeMap::new());
    let loaded =
        rules::load(&[SourceText { file: "bench.toml".into(), text }], &Surroundings { receivers: &names, groups: &groups, now });
    ensure!(loaded.is_usable(), "{:?}", loaded.diagnostics);
    Ok(loaded.set)
}

const CONDITIONS: [&str; 5] = [
    "cliffValue >= 5000000.0 || valueToMarketCap >= 2.0",
    "cliffValue >= 1e9 && valueToMarketCap >= 0.5 && cliffAmount > 0.0",
    "(cliffValue > 25000000.0 ? 2.0 : 5.0) <= valueToMarketCap",
    "cliffValue / 1000000.0 * 2.0 - 3.0 > valueToMarketCap + 60.0 || cliffAmount == 7.0",
    "tokenSymbol in [\"ARB\", \"APT\", \"OP\"] && !tokenSymbol.startsWith(\"A\")",
];

fn compare_with_interpreter(now: Timestamp) -> anyhow::Result<()> {
    let token = Token::unknown(TokenId::from("arbitrum"));
    let record = Tracked {
        key: RecordKey::from("k"),
        record: Record::from_json(
            Resource::Unlock,
            r#"{"unlockDate":"2026-03-16T00:00:00Z","tokenSymbol":"ARB","cliffUnlocks":{"cliffAmount":92650000,"cliffValue":33150000,"valueToMarketCap":2.77}}"#,
        )?,
    };
    let scope = Scope { token: Some(&token), record: Some(&record), ..Scope::at(now) };
    let mut bound = cel::Context::default();
    for (name, value) in [("cliffAmount", 92_650_000.0), ("cliffValue", 33_150_000.0), ("valueToMarketCap", 2.77)] {
        bound.add_variable(name, value).map_err(|error| anyhow::anyhow!("{error}"))?;
    }
    bound.add_variable("tokenSymbol", "ARB").map_err(|error| anyhow::anyhow!("{error}"))?;
    println!("native predicates compared with the interpreter: variables bound per record, and (in brackets) in advance");
    let (mut native_all, mut interpreted_all, mut bound_all) = (0.0, 0.0, 0.0);
    let numbers = [("cliffAmount", 92_650_000.0), ("cliffValue", 33_150_000.0), ("valueToMarketCap", 2.77)];
    let library = cel::Context::default();
    for when in CONDITIONS {
        let set = load(format!("[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = '''{when}'''\n"), now)?;
        let Some(rule) = set.rules.first() else { anyhow::bail!("no rule") };
        let program = cel::Env::stdlib().compile(when).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let ours = rule.evaluate(&scope) == Truth::True;
        let theirs = program.execute(&bound).map_err(|error| anyhow::anyhow!("{error}"))?;
        ensure!(theirs == cel::Value::Bool(ours), "{when}: {ours} natively, {theirs:?} in the interpreter");
        let (many, few) = (20_000_u32, 500_u32);
        let native = best(PREDICATE_ROUNDS, || {
            (0..many).for_each(|_| drop(black_box(rule.evaluate(black_box(&scope)))));
        });
        let interpreted = best(PREDICATE_ROUNDS, || {
            (0..few).for_each(|_| drop(black_box(program.execute(black_box(&bound)))));
        });
        let binding = best(PREDICATE_ROUNDS, || {
            for _ in 0..few {
                let mut context = library.new_inner_scope();
                for (name, value) in numbers.iter().filter(|(name, _)| when.contains(name)) {
                    context.add_variable_from_value(*name, *value);
                }
                if when.contains("tokenSymbol") {
                    context.add_variable_from_value("tokenSymbol", "ARB");
                }
                drop(black_box(program.execute(black_box(&context))));
            }
        });
        // A predicate takes few nanoseconds, so fractions count.
        let each = |took: Duration, runs: u32| took.as_secs_f64() * 1e9 / f64::from(runs);
        let (native, interpreted, binding) = (each(native, many), each(interpreted, few), each(binding, few));
        println!(
            "  {:>5.0}× ({:.0}×)  {native:>4.1} ns, {binding:>5.0} ns ({interpreted:.0} ns)  {when}",
            binding / native,
            interpreted / native
        );
        native_all += native;
        interpreted_all += interpreted;
        bound_all += binding;
    }
    println!("  {:>5.0}× ({:.0}×)  all conditions", bound_all / native_all, interpreted_all / native_all);
    Ok(())
}

/// Two hundred rules: most on unlocks, some on changes, some on tokens. None fires, so that only the evaluation is measured.
fn two_hundred_rules() -> String {
    let mut text = String::new();
    for number in 0..200 {
        let (on, when) = match number % 10 {
            0..=4 => ("unlock", format!("cliffValue >= {}e15 || valueToMarketCap >= {}", number + 1, 9000 + number)),
            5 => ("unlock", format!("cliffAmount >= token.circulatingSupply * {}.0 && daysUntil <= 30", 100 + number)),
            6 => ("burn", format!("value >= {}e15", number + 1)),
            7 => ("unlock.*", format!("change.ratio >= {}", 900 + number)),
            8 => ("token", format!("ahead(\"30d\").value > 1e15 + {number}.0 * burned(\"30d\").value")),
            _ => ("token", format!("lastBurn.daysSince >= {} || ahead(\"7d\").value > 1e15", 3000 + number)),
        };
        text.push_str(&format!("[[rule]]\nalert = \"Rule{number}\"\non = \"{on}\"\nwhen = '''{when}'''\n"));
    }
    text
}

struct TokenRecords {
    token: Token,
    unlocks: Vec<Tracked>,
    burns: Vec<Tracked>,
}

fn make_tokens(now: Timestamp) -> anyhow::Result<Vec<TokenRecords>> {
    let day = |days: i64| (now + chrono::TimeDelta::days(days)).to_rfc3339();
    (0..TOKENS)
        .map(|number| {
            let id = format!("token-{number}");
            let mut token = Token::unknown(TokenId::from(id.as_str()));
            token.item = serde_json::from_str(&format!(
                r#"{{"id":"{id}","symbol":"T{number}","marketCap":1e8,"circulatingSupply":1e9,"maxSupply":2e9}}"#
            ))?;
            let unlocks = (0..UNLOCKS).map(|index| {
                let at = day(index as i64 * 30 - 90 + (number % 30) as i64);
                let json = format!(
                    r#"{{"unlockDate":"{at}","cliffUnlocks":{{"cliffAmount":{},"cliffValue":{},"valueToMarketCap":1.5}}}}"#,
                    1_000_000 + index,
                    500_000 + number
                );
                let record = Record::from_json(Resource::Unlock, &json)?;
                Ok(Tracked { key: RecordKey::from(at), record })
            });
            let unlocks = unlocks.collect::<anyhow::Result<Vec<_>>>()?;
            let burn = format!(r#"{{"burnDate":"{}","amount":1000,"value":500}}"#, day(-((number % 40) as i64)));
            let burns = vec![Tracked { key: RecordKey::from("b"), record: Record::from_json(Resource::Burn, &burn)? }];
            Ok(TokenRecords { token, unlocks, burns })
        })
        .collect()
}

/// Evaluates tokens like a cycle: with rules on records and rules on tokens. Returns the number of new alerts.
fn evaluate_tokens(known: &[&TokenRecords], cache: &mut AggregateCache, context: &EvaluationContext<'_>) -> usize {
    let mut notified = 0;
    for batch in known.chunks(BATCH) {
        let facts: Vec<TokenFacts<'_>> = batch
            .iter()
            .map(|known| TokenFacts {
                token: &known.token,
                is_watched: true,
                records: &known.unlocks,
                linear: None,
                resources: &[Resource::Unlock],
                changes: &[],
                corrections: &[],
                added: &[],
                late: &[],
                alerts: &[],
                polled_at: &[],
            })
            .collect();
        let computed: Vec<_> = batch
            .iter()
            .map(|known| {
                let entries = FlowEntries::of(known.unlocks.iter().chain(&known.burns), |_| true);
                cache.compute(&known.token, &entries, Recheck::UntilChange, context.now)
            })
            .collect();
        let wholes: Vec<TokenTotals<'_>> = batch
            .iter()
            .zip(&computed)
            .map(|(known, computed)| TokenTotals {
                token: &known.token,
                is_watched: true,
                totals: computed.totals(),
                alerts: &[],
                polled_at: &[],
            })
            .collect();
        let mut limits = Limits::default();
        notified += evaluate::evaluate(&facts, context, &mut limits).openings().len();
        notified += evaluate::tokens(&wholes, context, &mut limits).openings().len();
        computed.into_iter().for_each(|computed| cache.keep(computed));
    }
    notified
}

fn measure_evaluation(now: Timestamp) -> anyhow::Result<()> {
    let set = load(two_hundred_rules(), now)?;
    let environment = Environment::default();
    let loaded = load_text(None, include_str!("speed/quiet.toml"), &environment);
    let config = loaded.config.ok_or_else(|| anyhow::anyhow!("{:?}", loaded.diagnostics))?;
    let routes = RouteTree::build(&config.route, &config.receivers).map_err(|problems| anyhow::anyhow!("{problems:?}"))?;
    let context =
        EvaluationContext { rules: &set, routes: &routes, now, keeps_removed: false, stale_price: chrono::TimeDelta::MAX };
    let known = make_tokens(now)?;
    let mut cache = AggregateCache::default();
    cache.reset(set.reads.clone());
    let all: Vec<&TokenRecords> = known.iter().collect();
    let moved: Vec<&TokenRecords> = known.iter().step_by(TOKENS / MOVED).collect();
    let pairs = TOKENS * (UNLOCKS * 120 + 40);
    ensure!(evaluate_tokens(&all, &mut cache, &context) == 0, "a rule fired unexpectedly");
    let full = best(ROUNDS, || _ = black_box(evaluate_tokens(&all, &mut cache, &context)));
    let part = best(ROUNDS, || _ = black_box(evaluate_tokens(&moved, &mut cache, &context)));
    let idle = best(ROUNDS, || drop(black_box(cache.due(now))));
    println!("\n{TOKENS} tokens of {UNLOCKS} unlocks, {} rules", set.rules.len());
    println!("  everything         {:>9.2} ms, {:.1} M pairs/s", ms(full), pairs as f64 / full.as_secs_f64() / 1e6);
    println!("  {MOVED} tokens changed    {:>9.2} ms, {:.0}× less", ms(part), full.as_secs_f64() / part.as_secs_f64());
    println!("  nothing changed    {:>9.4} ms", ms(idle));
    Ok(())
}

fn ms(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

fn main() -> anyhow::Result<()> {
    let now: Timestamp = "2026-03-09T00:00:00Z".parse()?;
    compare_with_interpreter(now)?;
    measure_evaluation(now)
}
