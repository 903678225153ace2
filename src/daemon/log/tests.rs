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
    assert!(said("info", 0, None).contains("tokio_cron_scheduler=off"));
    assert!(said("info", 1, Some(" ")).contains("cliffwatch=debug"));
    assert!(said("warn", 2, None).contains("cliffwatch=trace"));
}

/// What is written of an event, for people: without a time, level in front.
fn written(log: impl FnOnce()) -> String {
    #[derive(Clone, Default)]
    struct Memory(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Memory {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let memory = Memory::default();
    let writer = memory.clone();
    let builder = tracing_subscriber::fmt().fmt_fields(HarmlessFields).without_time().with_target(false).with_ansi(false);
    let subscriber = builder.with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, log);
    let bytes = memory.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_text_from_outside_forges_no_line_and_steers_no_terminal() {
    let hostile = "x\r\n2026-03-01T00:00:00Z ERROR forged\u{1b}[31m\u{9b}0m\u{202e}\0";
    let error = std::io::Error::other(hostile);
    let text = written(|| {
        tracing::warn!(token = hostile, feed = %hostile, error = &error as &dyn std::error::Error, "told of {hostile}");
    });
    assert_eq!(
        text,
        concat!(
            " WARN told of x\n",
            "    2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0} ",
            r#"token="x\r\n2026-03-01T00:00:00Z ERROR forged\u{1b}[31m\u{9b}0m\u{202e}\0" "#,
            "feed=x  2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0} ",
            "error=x  2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0}\n",
        )
    );
}

#[test]
fn a_message_of_several_lines_stays_readable() {
    let text =
        written(|| tracing::error!(count = 2, "the rules have errors\nrules/a.toml:3: no such field\n\n  help: write it so"));
    let message = "ERROR the rules have errors\n    rules/a.toml:3: no such field\n    \n      help: write it so count=2\n";
    assert_eq!(text, message);
}
