use super::*;
use model::FailureKind;

fn at() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

#[test]
fn every_family_has_the_name_that_dashboards_use() {
    let metrics = Metrics::default();
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
    metrics.oddities(Endpoint::Burn, 2);
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
    metrics.set_source_up(true);
    metrics.set_source_state(SourceState::Up, false);
    metrics.set_credits(&CreditState { used: Some(7), limit: Some(1000), ..CreditState::default() });
    metrics.set_removals_held(2);
    metrics.change(ChangeKind::SeriesShifted);
    metrics.set_alerts(AlertState::Firing, 3);
    metrics.attempt(&ReceiverName::from("ops"), &Outcome::Accepted, Duration::from_millis(20));
    metrics.set_outbox(&[OutboxLevel { receiver: "ops".into(), pending: 4, oldest: Some(Duration::from_secs(9)), dead: 1 }]);
    metrics.set_reload(false);
    metrics.rule_match(&RuleId::from("Big"), at());
    metrics.template_fallback();
    insta::with_settings!({filters => vec![(r#"version="[^"]+""#, r#"version="…""#)]}, {
        // A family tells its labels in the order of a hash map.
        let page = metrics.encode();
        let mut lines: Vec<&str> = page.lines().collect();
        lines.sort_unstable();
        insta::assert_snapshot!(lines.join("\n"));
    });
}

#[test]
fn the_older_format_names_each_family_as_its_samples() {
    let metrics = Metrics::default();
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
    let (_, page) = service::exposition::negotiated(["text/html"], metrics.encode());
    for line in [
        "# TYPE cliffwatch_polls_total counter",
        "# HELP cliffwatch_polls_total Requests to the source by what came of them.",
        "cliffwatch_polls_total{endpoint=\"burn\",outcome=\"fresh\"} 1",
        "# TYPE cliffwatch_build_info gauge",
        "# TYPE cliffwatch_source_up gauge",
        "# TYPE cliffwatch_delivery_latency_seconds histogram",
    ] {
        assert!(page.lines().any(|known| known == line), "{line} is missing in\n{page}");
    }
    assert!(!page.contains("# EOF") && !page.contains(" info\n"), "{page}");
}

#[test]
fn a_receiver_that_left_the_config_leaves_the_metrics() {
    let metrics = Metrics::default();
    let level = |name: &str| OutboxLevel { receiver: name.into(), pending: 1, oldest: None, dead: 0 };
    metrics.set_outbox(&[level("old"), level("ops")]);
    metrics.set_outbox(&[level("ops")]);
    let page = metrics.encode();
    assert!(page.contains("receiver=\"ops\"") && !page.contains("receiver=\"old\""), "{page}");
}

#[test]
fn only_an_answer_counts_as_success() {
    let metrics = Metrics::default();
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
    assert!(!metrics.encode().contains("last_success_timestamp_seconds{"));
}
