//! Tests of fields of linear supply, prices, and recipients.

use super::*;
use crate::aggregate::{FlowEntries, Member};
use model::{KnownSupply, LinearSupply, SupplyCoverage};

/// Returns an unlock that begins a linear unlock of 10 days.
fn linear(date: &str, per_day: f64) -> Tracked {
    let amount = per_day * 10.0;
    let json = format!(
        r#"{{"unlockDate":"{date}T00:00:00Z","linearUnlocks":{{"allocationBreakdown":[{{"standardAllocationName":"Reserve",
        "linearAmount":{amount},"durationOfRate":10,"referencePrice":2,"referencePriceUpdatedTime":"2026-03-05T00:00:00Z"}}]}}}}"#
    );
    record(Resource::Unlock, &json)
}

/// From 1 to 11 March 100 tokens per day, from 6 to 16 March 50 more, from 16 to 26 March 25.
fn schedule() -> [Tracked; 4] {
    let cliff = r#"{"unlockDate":"2026-03-08T00:00:00Z","cliffUnlocks":{"cliffAmount":7,"cliffValue":14}}"#;
    [linear("2026-03-01", 100.0), linear("2026-03-06", 50.0), linear("2026-03-16", 25.0), record(Resource::Unlock, cliff)]
}

fn supply_until(until: Option<&str>, known: KnownSupply) -> LinearSupply {
    LinearSupply { coverage: SupplyCoverage { known, linear_until: until.map(at) }, emission: Vec::new() }
}

fn totals_on(day: &str, supply: &LinearSupply) -> Totals {
    let entries = FlowEntries::of(&schedule(), |_| true).with_supply(supply, None);
    Totals::of(&arb(), &entries, &AggregateReads { has_supply: true, ..AggregateReads::default() }, at(day))
}

fn truth_on(day: &str, when: &str, supply: &LinearSupply) -> Truth {
    let (token, totals) = (arb(), totals_on(day, supply));
    rule_when("token", when).evaluate(&Scope { token: Some(&token), totals: Some(&totals), ..Scope::at(at(day)) })
}

#[test]
fn token_rule_reads_the_daily_release_and_its_next_change() {
    let all = supply_until(None, KnownSupply::All);
    for when in [
        "linearPerDay == 150 && linearPerDayValue == 300 && has(linearPerDay)",
        "nextRate.date == timestamp('2026-03-11') && nextRate.perDay == 50 && nextRate.change < 0.34",
        "nextRate.daysUntil == 2 && has(nextRate.daysUntil) && nextRate.daysUntil <= 7",
        "priceAge == 4 && has(priceAge)",
    ] {
        assert_eq!(truth_on("2026-03-09", when, &all), Truth::True, "{when}");
    }
    assert_eq!(truth_on("2026-03-20", "linearPerDay == 25 && nextRate.change == 0", &all), Truth::True, "a mere end is a change");
    let begins = "linearPerDay == 0 && nextRate.perDay == 100 && nextRate.change > 1e300 && !(nextRate.change <= 0.5)";
    assert_eq!(truth_on("2026-02-27", begins, &all), Truth::True, "nothing unlocks before the first linear unlock");
    assert_eq!(truth_on("2026-03-27", "linearPerDay == 0 && linearPerDayValue == 0", &all), Truth::True);
    assert_eq!(truth_on("2026-03-27", "nextRate.change > 1", &all), Truth::Missing(vec!["nextRate.change"]));
    assert_eq!(truth_on("2026-03-27", "nextRate.daysUntil < 7", &all), Truth::Missing(vec!["nextRate.daysUntil"]));
}

#[test]
fn unknown_linear_supply_is_missing() {
    let cliffs = supply_until(None, KnownSupply::Cliffs);
    assert_eq!(truth_on("2026-03-09", "linearPerDay >= 0", &cliffs), Truth::Missing(vec!["linearPerDay"]));
    assert_eq!(truth_on("2026-03-09", "linearPerDayValue >= 0", &cliffs), Truth::Missing(vec!["linearPerDayValue"]));
    // What ends with the known supply is not a change of the release.
    let short = supply_until(Some("2026-03-11"), KnownSupply::All);
    assert_eq!(truth_on("2026-03-09", "linearPerDay == 150 && !has(nextRate.date)", &short), Truth::True);
}

#[test]
fn group_rule_reads_the_value_of_the_daily_release() {
    let member = |id: &str, totals: Totals| Member {
        id: TokenId::from(id),
        symbol: id.to_uppercase().into(),
        name: id.into(),
        totals: totals.into(),
        share: None,
    };
    let reads = AggregateReads { has_supply: true, ..AggregateReads::default() };
    let known = || totals_on("2026-03-09", &supply_until(None, KnownSupply::All));
    let truth = |when: &str, second: Totals| {
        let members = vec![member("arb", known()), member("op", second)];
        let totals = Totals::of_group(Some("portfolio"), members, &reads);
        rule_when("portfolio", when).evaluate(&Scope { totals: Some(&totals), ..Scope::at(at("2026-03-09")) })
    };
    for when in [
        "linearPerDayValue == 600",
        "tokens.exists(t, t.linearPerDay == 150 && t.nextRate.daysUntil == 2 && t.priceAge == 4 && t.nextRate.perDay == 50)",
    ] {
        assert_eq!(truth(when, known()), Truth::True, "{when}");
    }
    assert_eq!(truth("linearPerDayValue == 600", Totals::default()), Truth::Missing(vec!["linearPerDayValue"]));
    let (_, message, help) = condition_problem("portfolio", "linearPerDay > 5");
    assert_eq!(message, "`linearPerDay` is not available here");
    assert!(help.contains("amounts of different tokens cannot be added"), "{help}");
}

#[test]
fn unlock_rule_reads_the_change_of_the_daily_release() {
    let (token, records) = (arb(), schedule());
    let truth = |when: &str, place: usize, linear: Option<&LinearSupply>| {
        let schedule = ScheduleScope { records: &records, linear, corrections: None };
        let scope = Scope { token: Some(&token), record: Some(&records[place]), schedule, ..Scope::at(at("2026-02-25")) };
        rule_when("unlock", when).evaluate(&scope)
    };
    for (place, when) in [
        (0, "rateBefore == 0 && rateAfter == 100 && rateChange >= 2 && rateChange > 1e300"),
        (1, "rateBefore == 100 && rateAfter == 150 && rateChange == 1.5 && has(rateChange)"),
        (2, "rateBefore == 50 && rateAfter == 25 && rateChange <= 0.5"),
        (3, "!has(rateBefore) && !has(rateChange)"),
    ] {
        assert_eq!(truth(when, place, None), Truth::True, "{when}");
    }
    assert_eq!(truth("rateChange >= 2 || rateChange <= 0.5", 3, None), Truth::Missing(vec!["rateChange"]), "only a cliff");
    let known = supply_until(Some("2026-03-16"), KnownSupply::All);
    assert_eq!(truth("rateChange > 0", 2, Some(&known)), Truth::Missing(vec!["rateChange"]));
    assert_eq!(truth("rateChange > 0", 1, Some(&known)), Truth::True);
    // Daily emission ahead has linear unlocks that the records lack.
    let day = |text: &str| at(text).timestamp_millis();
    let emission = model::LinearPiece::new(day("2026-03-06"), day("2026-03-11"), Some(250.0)).into_iter().collect();
    let ahead = LinearSupply { emission, ..supply_until(Some("2026-06-01"), KnownSupply::All) };
    assert_eq!(truth("rateBefore == 100 && rateAfter == 200 && rateChange == 2", 1, Some(&ahead)), Truth::True);
    let rule = rule_when("unlock", "rateChange >= 2");
    assert!(!rule.is_clock_dependent && !rule.reads_supply());
    let text = "[[rule]]\nalert = \"A\"\non = \"unlock\"\nwhen = \"rateChange >= 2\"\n[rule.annotations]\n\
                summary = \"{{ rateBefore | amount }} to {{ rateAfter | amount }} per day ({{ rateChange | number }})\"\n";
    let loaded = load_text(text);
    assert!(loaded.set.reads_rate_steps);
    let schedule = ScheduleScope { records: &records, ..ScheduleScope::default() };
    let scope = Scope { token: Some(&token), record: Some(&records[1]), schedule, ..Scope::at(at("2026-02-25")) };
    assert_eq!(loaded.set.rules[0].render(&scope, None).annotations["summary"], "100 to 150 per day (1.5)");
}

#[test]
fn age_of_a_price_makes_only_rules_on_records_depend_on_the_clock() {
    assert!(rule_when("unlock", "priceAge < 3").is_clock_dependent);
    let loaded = load_text("[[rule]]\nalert = \"A\"\non = \"token\"\nwhen = \"priceAge > 3 && nextRate.daysUntil <= 7\"\n");
    let reads = &loaded.set.reads;
    assert!(!loaded.set.rules[0].is_clock_dependent && reads.has_supply);
    assert_eq!((&reads.price_ages[..], &reads.rate_leads[..]), (&[TimeDelta::days(3)][..], &[TimeDelta::days(7)][..]));
    let text = "[[rule]]\nalert = \"A\"\non = \"token\"\nwhen = \"marketCap > 1\"\n[rule.annotations]\nsummary = \"{{ linearPerDay | amount }}\"\n";
    assert!(load_text(text).set.reads.has_supply, "the release is computed before a text is rendered");
    let event = r#"{"unlockDate":"2026-03-16T00:00:00Z","referencePriceUpdatedTime":"2026-03-01T00:00:00Z"}"#;
    assert_eq!(truth("priceAge == 8", event), Truth::True);
    assert_eq!(truth("priceAge == 8", CLIFF), Truth::Missing(vec!["priceAge"]));
}

#[test]
fn daily_release_is_computed_again_when_it_or_a_threshold_changes() {
    let entries = FlowEntries::of(&schedule(), |_| true);
    let reads = AggregateReads {
        has_supply: true,
        price_ages: vec![TimeDelta::days(3)],
        rate_leads: vec![TimeDelta::days(1)],
        ..AggregateReads::default()
    };
    let next = |now: &str| entries.next_change(&reads, at(now)).map(|at| at.to_rfc3339());
    for (now, then) in [
        ("2026-03-04", "2026-03-05T00:00:00+00:00"),
        ("2026-03-06", "2026-03-08T00:00:00+00:00"),
        ("2026-03-08", "2026-03-08T00:00:01+00:00"),
        ("2026-03-09", "2026-03-10T00:00:00+00:00"),
        ("2026-03-10T00:00:01Z", "2026-03-11T00:00:00+00:00"),
        ("2026-03-25T00:00:01Z", "2026-03-26T00:00:00+00:00"),
    ] {
        assert_eq!(next(now).as_deref(), Some(then), "after {now}");
    }
    assert_eq!(next("2026-03-26"), None);
}

#[test]
fn parts_of_a_window_work_in_conditions_and_templates() {
    let text = |summary: &str| {
        format!(
            "[[rule]]\nalert = \"A\"\non = \"token\"\nwhen = 'has(ahead(\"30d\").linear.value) && ahead(\"30d\").cliff.count >= 0'\n\
             [rule.annotations]\nsummary = '''{summary}'''\n"
        )
    };
    let loaded = load_text(&text(r#"{{ ahead("30d").linear.value | usd }} and {{ ahead("30d").cliff.value | usd }}"#));
    let rule = &loaded.set.rules[0];
    let reads = AggregateReads { windows: rule.windows().into(), ..AggregateReads::default() };
    let totals = Totals::of(&arb(), &FlowEntries::of(&schedule(), |_| true), &reads, at("2026-03-07"));
    let token = arb();
    let scope = Scope { token: Some(&token), totals: Some(&totals), ..Scope::at(at("2026-03-07")) };
    assert_eq!(rule.evaluate(&scope), Truth::True);
    assert_eq!(rule.render(&scope, None).annotations["summary"], "$2.20K and $14");
    let (_, message, _) = only_problem(&text(r#"{{ ahead("30d").liner.value | usd }}"#));
    assert!(message.contains("fails"), "{message}");
    let (_, message, help) = condition_problem("token", "ahead('30d').liner.value > 5");
    assert_eq!((message.as_str(), help.as_str()), ("a window has no field `liner.value`", "did you mean `linear.value`?"));
}

#[test]
fn shares_of_recipients_are_fractions() {
    assert!(holds("insiderShare == 1 && teamShare > 0.6 && teamShare + investorShare == insiderShare && has(teamShare)"));
    let event = r#"{"unlockDate":"2026-03-16T00:00:00Z","cliffUnlocks":{"cliffAmount":5}}"#;
    assert_eq!(truth("insiderShare >= 0", event), Truth::Missing(vec!["insiderShare"]));
    let expected = ("`insiderShare` is a fraction from 0 to 1, never 50".to_owned(), "for 50 % write 0.5".to_owned());
    assert_eq!(warnings_of("insiderShare > 50"), [expected]);
    assert_eq!(warnings_of("teamShare >= 0.5 || teamShare == 1"), []);
    assert_eq!(warnings_of("priceAge > 80000")[0].0, "`priceAge` is in days: 80000 means 219 years");
}

/// Returns the messages and suggestions of the warnings about a condition on unlocks.
fn warnings_of(when: &str) -> Vec<(String, String)> {
    let (condition, findings) = Condition::compile(when, On::Record(Resource::Unlock));
    assert!(condition.is_some(), "{when}: {findings:?}");
    findings.into_iter().map(|finding| (finding.message, finding.help.unwrap_or_default())).collect()
}

#[test]
fn warns_about_categories_that_the_source_does_not_have() {
    let of = |test: &str| warnings_of(&format!("allocations.exists(a, {test})"));
    let help = |test: &str| of(test).first().map(|(_, help)| help.clone());
    assert_eq!(of("a.standardAllocationName == \"Insiders\"")[0].0, "the source has no recipient category \"Insiders\"");
    for (test, expected) in [
        (
            "a.standardAllocationName == 'Insiders'",
            "compare the part for founders, team, and private investors: `insiderShare >= 0.5`",
        ),
        ("'founder / team' == a.standardAllocationName", "did you mean \"Founder / Team\"?"),
        ("a.standardAllocationName in ['Team', 'Private Investors']", "did you mean \"Founder / Team\"?"),
        ("a.standardAllocationName != 'Treasury'", "did you mean \"Reserve\"?"),
        ("a.standardAllocationName.startsWith('Private investors')", "did you mean \"Private Investors\"?"),
        ("a.standardAllocationName == 'Comunity'", "did you mean \"Community\"?"),
    ] {
        assert_eq!(help(test).as_deref(), Some(expected), "{test}");
    }
    let unknown = help("a.standardAllocationName == 'Quux'").unwrap_or_default();
    assert!(unknown.starts_with("categories are \"Founder / Team\", "), "{unknown}");
    for fine in [
        "a.standardAllocationName in ['Founder / Team', 'Reserved']",
        "a.standardAllocationName.contains('Investor')",
        "a.allocationName == 'Insiders'",
    ] {
        assert_eq!(of(fine), [], "{fine}");
    }
    let (_, findings) = Condition::compile("'Team' in standardAllocations", On::Record(Resource::Emission));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let (_, findings) = Condition::compile("standardAllocationName == 'Investors'", On::Record(Resource::Allocation));
    assert_eq!(findings[0].help.as_deref(), Some("did you mean \"Private Investors\"?"));
}

#[test]
fn suggests_the_field_that_is_meant() {
    for (on, when, expected) in [
        ("token", "linearPerDays > 5", "did you mean `linearPerDay`?"),
        ("token", "dailyValue > 5", "did you mean `linearPerDayValue`?"),
        ("token", "rateChange > 2", "did you mean `nextRate.change`?"),
        ("unlock", "insiders > 0.5", "did you mean `insiderShare`?"),
        ("unlock", "ratechange > 2", "did you mean `rateChange`?"),
        ("unlock", "priceAges > 2", "did you mean `priceAge`?"),
    ] {
        assert_eq!(condition_problem(on, when).2, expected, "{when}");
    }
}
