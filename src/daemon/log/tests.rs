use super::*;

#[test]
fn a_misspelt_level_is_told() {
    assert_eq!(check_filter("inof"), Err("\"inof\" is no level".to_owned()));
    assert_eq!(check_filter("cliffwatch=debgu"), Err("\"debgu\" is no level".to_owned()));
    for good in ["info", "WARN", "off", "info,cliffwatch_daemon::outbox=debug", "warn,cliffwatch_daemon[cycle]=trace"] {
        assert_eq!(check_filter(good), Ok(()), "{good}");
    }
    assert!(check_filter(&"info,".repeat(2000)).is_err());
}

#[test]
fn the_variable_wins_and_the_scheduler_stays_quiet() {
    let said = |level: &str, verbose, rust_log| filter(level, verbose, rust_log).unwrap().to_string();
    assert_eq!(said("info", 0, Some("error")), "error");
    assert!(said("info", 0, None).contains("tokio_cron_scheduler=warn"));
    assert!(said("info", 1, Some(" ")).contains("cliffwatch=debug"));
    assert!(said("warn", 2, None).contains("cliffwatch=trace"));
}
