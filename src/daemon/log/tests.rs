use super::*;

#[test]
fn rejects_misspelled_level() {
    for (filter, word) in [("inof", "inof"), ("cliffwatch=debgu", "debgu")] {
        let error = check_filter(filter).expect_err("not a filter");
        assert!(error.starts_with(&format!("{word:?} is not a valid level")), "{error}");
    }
    for good in ["info", "WARN", "off", "info,cliffwatch_daemon::outbox=debug", "warn,cliffwatch_daemon[cycle]=trace"] {
        assert_eq!(check_filter(good), Ok(()), "{good}");
    }
    assert!(check_filter(&"info,".repeat(2000)).is_err());
}

#[test]
fn rust_log_overrides_level_and_scheduler_is_quiet() {
    let filter_text = |level: &str, verbose, rust_log| filter(level, verbose, rust_log).unwrap().to_string();
    assert_eq!(filter_text("info", 0, Some("error")), "error");
    assert!(filter_text("info", 0, None).contains("tokio_cron_scheduler=off"));
    assert!(filter_text("info", 1, Some(" ")).contains("cliffwatch=debug"));
    assert!(filter_text("warn", 2, None).contains("cliffwatch=trace"));
}

#[test]
fn debug_level_shows_this_program_and_not_the_libraries() {
    let logged = |level: &str, verbose: u8| {
        let text = written_with(filter(level, verbose, None).expect("a filter"), || {
            tracing::debug!(target: "cliffwatch_daemon::cycle", "plan");
            tracing::debug!(target: "hyper_util::client::legacy::pool", "pooling");
            tracing::debug!(target: "rustls::client::hs", "handshake");
            tracing::warn!(target: "hyper_util::client::legacy", "broken");
        });
        text.split_whitespace().filter(|word| word.chars().all(char::is_lowercase)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(logged("debug", 0), ["plan", "broken"]);
    assert_eq!(logged("debug,rustls=debug", 0), ["plan", "handshake", "broken"], "the operator names it");
    assert_eq!(logged("debug,hyper_util::client=debug", 0), ["plan", "pooling", "broken"]);
    assert_eq!(logged("info", 1), ["plan", "broken"]);
    assert_eq!(logged("TRACE", 0), ["plan", "broken"]);
    assert_eq!(logged("warn", 0), ["broken"]);
    assert_eq!(logged("error", 0), [] as [&str; 0], "the level is above a warning");
    assert_eq!(logged("off", 0), [] as [&str; 0]);
}

/// Returns the text of the logged events, without the time.
fn written(log: impl FnOnce()) -> String {
    written_with(EnvFilter::new("trace"), log)
}

/// Like [`written`], with a filter.
fn written_with(filter: EnvFilter, log: impl FnOnce()) -> String {
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
    let subscriber = builder.with_env_filter(filter).with_writer(move || writer.clone()).finish();
    tracing::subscriber::with_default(subscriber, log);
    let bytes = memory.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn external_text_cannot_forge_lines_or_control_terminal() {
    let hostile = "x\r\n2026-03-01T00:00:00Z ERROR forged\u{1b}[31m\u{9b}0m\u{202e}\0";
    let error = std::io::Error::other(hostile);
    let text = written(|| {
        tracing::warn!(token = hostile, feed = %hostile, error = &error as &dyn std::error::Error, "received {hostile}");
    });
    assert_eq!(
        text,
        concat!(
            " WARN received x\n",
            "    2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0} ",
            r#"token="x\r\n2026-03-01T00:00:00Z ERROR forged\u{1b}[31m\u{9b}0m\u{202e}\0" "#,
            "feed=x  2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0} ",
            "error=x  2026-03-01T00:00:00Z ERROR forged\\u{1b}[31m\\u{9b}0m\\u{202e}\\u{0}\n",
        )
    );
}

#[test]
fn multi_line_message_is_indented() {
    let text =
        written(|| tracing::error!(count = 2, "the rules have errors\nrules/a.toml:3: no such field\n\n  help: write it so"));
    let message = "ERROR the rules have errors\n    rules/a.toml:3: no such field\n    \n      help: write it so count=2\n";
    assert_eq!(text, message);
}
