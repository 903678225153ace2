use super::*;
use std::collections::BTreeMap;

use model::digest::JOB_PREFIX;
use model::{FailureKind, OptOut, OptOutSource, Severity, SupplyAhead, SupplyTotals};

fn at() -> Timestamp {
    chrono::DateTime::from_timestamp(1_790_000_000, 0).unwrap()
}

/// Returns metrics with a value in every family.
fn full() -> Metrics {
    let metrics = Metrics::default();
    let ops = ReceiverName::from("ops");
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
    metrics.parse_warnings(Endpoint::Burn, 2);
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
    metrics.set_source_up(true);
    metrics.set_source_state(SourceState::Up);
    let credit = CreditState { used: Some(7), limit: Some(1000), ..CreditState::default() };
    metrics.set_credits(&credit, Some(893), at());
    metrics.set_removals_held(2);
    metrics.set_alerts(AlertState::Firing, 3);
    metrics.attempt(&ops, &Outcome::Accepted, Duration::from_millis(20));
    metrics.set_outbox(&[OutboxLevel { receiver: "ops".into(), pending: 4, oldest: Some(Duration::from_secs(9)), dead: 1 }]);
    let held = SuppressedCount { receiver: ops.clone(), waiting: 1, silenced: 0, inhibited: 0, lately: 1 };
    metrics.set_notifications(
        &NotificationOverview {
            held: vec![held],
            digests: vec![(format!("{JOB_PREFIX}ops"), at())],
            opt_outs: vec![OptOut { receiver: ops, address: "ann@example.com".into(), at: at(), via: OptOutSource::Hand }],
            ..NotificationOverview::default()
        },
        at(),
    );
    metrics.set_reload(false);
    metrics.template_fallback();
    let notified = NotificationMetric { rule: RuleId::from("Big"), severity: Severity::Critical, kind: "firing" };
    metrics.committed([ChangeKind::SeriesShifted], &[notified], &[(RuleId::from("Big"), at())]);
    let mut sum = SupplyAhead::default();
    sum.cliff.add(Some(1.0), Some(2.5e6));
    sum.linear.add(Some(1.0), Some(0.5e6));
    let totals = SupplyTotals { windows: vec![sum, sum], ..SupplyTotals::default() };
    let gauges = DomainGauges {
        firing: vec![(RuleId::from("Big"), Severity::Critical, 3)],
        next_critical: vec![(RuleId::from("Big"), at() + chrono::TimeDelta::hours(1))],
        groups: [("desk".to_owned(), totals.clone())].into(),
        watched: totals,
    };
    metrics.set_domain(&gauges, at());
    metrics.set_incidents(&[]);
    metrics.set_started(at());
    metrics
}

#[test]
fn family_names_are_stable() {
    let metrics = full();
    insta::with_settings!({filters => vec![(r#"version="[^"]+""#, r#"version="…""#), (r"(?m)^(process_\S+) \S+$", "$1 …")]}, {
        // The order of lines within a family is random.
        let page = metrics.encode();
        let mut lines: Vec<&str> = page.lines().collect();
        lines.sort_unstable();
        insta::assert_snapshot!(lines.join("\n"));
    });
}

/// Returns the type and the sorted labels of each family on a page in the Prometheus text format.
fn families(page: &str) -> BTreeMap<String, (String, String)> {
    let kinds = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let labels = |family: &str| {
        let sample = page.lines().find_map(|line| line.strip_prefix(family)?.strip_prefix('{')?.split_once('}'));
        let mut names: Vec<&str> =
            sample.iter().flat_map(|(labels, _)| labels.split("\",")).filter_map(|l| Some(l.split_once('=')?.0)).collect();
        names.sort_unstable();
        names.join(", ")
    };
    kinds.map(|(family, kind)| (family.to_owned(), (kind.to_owned(), labels(family)))).collect()
}

#[test]
fn docs_list_all_metrics() {
    let (_, page) = service::exposition::negotiated(["text/html"], full().encode());
    let docs = include_str!("../../../docs/operation.md");
    let (_, section) = docs.split_once("\n### Metrics\n").expect("a section");
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
        let name = cells.next()?.trim_end_matches('`').to_owned();
        Some((name, (cells.next()?.to_owned(), cells.next()?.replace('`', ""))))
    });
    let documented: BTreeMap<String, (String, String)> = rows.collect();
    let table = |families: &BTreeMap<String, (String, String)>| {
        families.iter().map(|(name, (kind, labels))| format!("{name} | {kind} | {labels}\n")).collect::<String>()
    };
    assert_eq!(table(&documented), table(&families(&page)), "docs (left) and exported metrics (right)");
}

#[test]
fn text_format_names_families_like_their_samples() {
    let metrics = Metrics::default();
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Fresh, at());
    let (_, page) = service::exposition::negotiated(["text/html"], metrics.encode());
    for line in [
        "# TYPE cliffwatch_polls_total counter",
        "# HELP cliffwatch_polls_total Polls of the source by outcome.",
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
fn removed_receiver_is_removed_from_metrics() {
    let metrics = Metrics::default();
    let level = |name: &str| OutboxLevel { receiver: name.into(), pending: 1, oldest: None, dead: 0 };
    metrics.set_outbox(&[level("old"), level("ops")]);
    metrics.set_outbox(&[level("ops")]);
    let page = metrics.encode();
    assert!(page.contains("receiver=\"ops\"") && !page.contains("receiver=\"old\""), "{page}");
}

#[test]
fn failed_poll_is_not_a_success() {
    let metrics = Metrics::default();
    metrics.poll(Endpoint::Burn, PollEntryOutcome::Failed(FailureKind::Timeout), at());
    assert!(!metrics.encode().contains("last_success_timestamp_seconds{"));
}

#[test]
fn standby_exports_only_its_own_state() {
    let metrics = full();
    metrics.set_active(false);
    let page = metrics.encode();
    let families: std::collections::BTreeSet<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next())
        .filter(|of| of.starts_with("cliff"))
        .collect();
    assert_eq!(
        families.into_iter().collect::<Vec<_>>(),
        [
            "cliffwatch_active",
            "cliffwatch_build",
            "cliffwatch_config_last_reload_successful",
            "cliffwatch_database_up",
            "cliffwatch_ready",
            "cliffwatch_standby"
        ]
    );
    assert!(
        page.contains("cliffwatch_active 0\n") && page.contains("cliffwatch_standby 1\n") && page.ends_with("# EOF\n"),
        "{page}"
    );
}
