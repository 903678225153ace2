//! Formats a backtest for people: tables, and the last messages.

use crate::print::{Cell, Listing};
use crate::terminal::width;
use model::{BatchKind, phrase, text::harmless};
use tools::backtest::{
    BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun, BacktestSummary, TallyRow, difference, joint_messages,
};

/// The maximum number of alerts printed for a message.
const MAX_LINES: usize = 20;
/// Formats the number of undelivered notifications by state: "3 silenced, 1 pending at the end".
fn undelivered_text(summary: &BacktestSummary) -> String {
    let words = summary.undelivered.iter().map(|(state, count)| match *state {
        "nobody" => format!("{count} without a matching route"),
        "limited" => format!("{count} above a rule's limit"),
        "waiting" => format!("{count} pending at the end"),
        state => format!("{count} {state}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

pub(crate) fn text(run: &BacktestRun, summary: &BacktestSummary, comparison: Option<&BacktestComparison>, most: usize) -> String {
    let mut text = format!(
        "{} to {}: {}, {}, {}\n",
        phrase::day(run.from),
        phrase::day(run.to),
        phrase::count(run.tokens, "token"),
        phrase::count(run.rules.len(), "rule"),
        phrase::count(run.changes, "change"),
    );
    let joined = match summary.joined {
        0 => String::new(),
        joined => format!(", {joined} of them with several alerts"),
    };
    text.push_str(&format!(
        "{} in {}{joined}\n",
        phrase::count(summary.alerts, "alert"),
        phrase::count(summary.messages, "message"),
    ));
    if !summary.undelivered.is_empty() {
        text.push_str(&format!("not sent: {}\n", undelivered_text(summary)));
    }
    text.push('\n');
    text.push_str(&listing("Rule", &summary.rules, summary).table(width()));
    if !summary.receivers.is_empty() {
        text.push('\n');
        text.push_str(&listing("Receiver", &summary.receivers, summary).table(width()));
    }
    if let Some((rule, token, count)) = summary.noisiest.first().filter(|(_, _, count)| *count > 1) {
        text.push_str(&format!(
            "\nmost messages for one token: {} for {}, {}",
            harmless(rule),
            harmless(token),
            phrase::count(*count, "message")
        ));
        if let Some((rule, token, count)) = summary.noisiest.get(1) {
            text.push_str(&format!("; then {} for {}, {count}", harmless(rule), harmless(token)));
        }
        text.push('\n');
    }
    for (rule, error) in &run.template_errors {
        text.push_str(&format!("\na template of {} failed: {}\n", harmless(rule), harmless(error)));
    }
    if let Some(comparison) = comparison {
        text.push_str(&comparison_text(comparison, most));
    } else if most > 0 && !run.messages.is_empty() {
        text.push('\n');
        let all: Vec<_> = joint_messages(&run.messages).collect();
        let skipped = all.len().saturating_sub(most);
        if skipped > 0 {
            text.push_str(&format!("showing the last {most} of {}; use --messages N for more\n", all.len()));
        }
        for (message, receivers) in all.into_iter().skip(skipped) {
            text.push_str(&message_text("", message, &receivers));
        }
    }
    text
}

fn comparison_text(comparison: &BacktestComparison, most: usize) -> String {
    let BacktestComparison { gained, lost, changed, same } = comparison;
    let mut text = format!(
        "\nwith the other rules: {} gained, {} lost, {} changed, {same} unchanged\n",
        gained.len(),
        lost.len(),
        changed.len()
    );
    for (sign, messages) in [("+ ", gained), ("- ", lost)] {
        let all: Vec<_> = joint_messages(messages).collect();
        text.extend(all.iter().take(most).map(|(message, receivers)| message_text(sign, message, receivers)));
        if all.len() > most {
            text.push_str(&format!("{sign}… and {} more\n", all.len() - most));
        }
    }
    for (was, is) in changed.iter().take(most) {
        let (gone, new) = difference(was, is);
        if was.at != is.at || gone.is_empty() && new.is_empty() {
            text.push_str(&message_text("< ", was, &[&was.receiver]));
            text.push_str(&message_text("> ", is, &[&is.receiver]));
            continue;
        }
        // Of a group, show only the alerts that differ.
        text.push_str(&format!("~ {}  -> {}\n", phrase::instant_iso(is.at), harmless(&is.receiver)));
        text.extend(gone.into_iter().map(|notification| format!("  < {}\n", alert(notification))));
        text.extend(new.into_iter().map(|notification| format!("  > {}\n", alert(notification))));
    }
    if changed.len() > most {
        text.push_str(&format!("~ … and {} more\n", changed.len() - most));
    }
    text
}

/// Formats an alert on one line.
fn alert(notification: &BacktestNotification) -> String {
    format!("{} ({})  {}", harmless(&notification.rule), harmless(&notification.reason), harmless(&notification.summary))
}

/// Formats a message: one line for a single alert, else a line for each alert.
fn message_text(sign: &str, message: &BacktestMessage, receivers: &[&str]) -> String {
    let to = harmless(&receivers.join(", "));
    let at = phrase::instant_iso(message.at);
    if let ([only], []) = (message.notified.as_slice(), message.counted.as_slice()) {
        return match message.shape {
            BatchKind::Digest => format!("{sign}{at}  {}  -> {to}\n", harmless(&only.summary)),
            _ => format!("{sign}{at}  {}  -> {to}\n", alert(only)),
        };
    }
    let all = message.notified.len() + message.counted.len();
    let why = match (&message.note, &message.group_key) {
        (Some(note), _) => note.clone(),
        (None, Some(key)) => format!("in group {key}"),
        (None, None) => "in one message".to_owned(),
    };
    let mut text = format!("{sign}{at}  {}, {}  -> {to}\n", phrase::count(all, "alert"), harmless(&why));
    text.extend(message.notified.iter().take(MAX_LINES).map(|notification| format!("{sign}    {}\n", alert(notification))));
    let more = all.saturating_sub(message.notified.len().min(MAX_LINES));
    if more > 0 {
        text.push_str(&format!("{sign}    and {more} more\n"));
    }
    text
}

fn listing<'a>(first: &'static str, rows: &'a [TallyRow], summary: &'a BacktestSummary) -> Listing<'a, TallyRow> {
    let weeks = u32::try_from(summary.weeks.len().max(1)).unwrap_or(u32::MAX);
    let busiest = |row: &TallyRow| row.busiest().and_then(|(week, count)| Some((*summary.weeks.get(week)?, count)));
    Listing::of(rows)
        .left_column(first, "", |row| Cell::text(&row.name))
        .right_column("Alerts", "", |row| Cell::text(row.alerts))
        .right_column("Messages", "", |row| Cell::text(row.messages))
        .right_column("Undelivered", "", |row| {
            Cell::text(if row.undelivered > 0 { row.undelivered.to_string() } else { String::new() })
        })
        .right_column("Tokens", "", |row| Cell::text(row.tokens))
        .right_column("Per week", "", move |row| Cell::text(format!("{:.1}", f64::from(row.messages) / f64::from(weeks))))
        .left_column("Busiest week", "", move |row| {
            Cell::text(
                busiest(row).map_or_else(String::new, |(week, count)| format!("{count} from {}", week.format("%-d %b %Y"))),
            )
        })
        .left_column("Over time", "", |row| Cell::text(spark(&row.by_week)))
}

/// The maximum width of the bar chart in a row, in characters.
const SPARK: usize = 26;

/// Formats the counts of weeks as a bar chart.
fn spark(weeks: &[u32]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if weeks.iter().all(|count| *count == 0) {
        return String::new();
    }
    let per_column = weeks.len().div_ceil(SPARK).max(1);
    let columns: Vec<u32> = weeks.chunks(per_column).map(|chunk| chunk.iter().sum()).collect();
    let most = columns.iter().copied().max().unwrap_or(1).max(1);
    let bar = |count: u32| {
        let step = (u64::from(count) * 8).div_ceil(u64::from(most));
        let bar = usize::try_from(step).unwrap_or(0).checked_sub(1).and_then(|step| BARS.get(step));
        bar.copied().unwrap_or('·')
    };
    columns.into_iter().map(bar).collect()
}
