//! A backtest for people: tables, and the last messages.

use crate::print::{Cell, Listing};
use crate::terminal::width;
use model::{BatchKind, Timestamp, format, text::harmless};
use tools::backtest::{
    BacktestComparison, BacktestMessage, BacktestNotification, BacktestRun, BacktestSummary, TallyRow, difference, joint_messages,
};

/// Alerts of one message that are printed below it.
const MAX_LINES: usize = 20;
/// What became of what nobody was told: "3 silenced, 1 waiting".
fn untold_in_words(summary: &BacktestSummary) -> String {
    let words = summary.undelivered.iter().map(|(state, count)| match *state {
        "nobody" => format!("{count} that no route takes"),
        "limited" => format!("{count} left out by a rule's limit"),
        "waiting" => format!("{count} still waiting at the end"),
        state => format!("{count} {state}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

/// All of it for people.
pub(crate) fn text(run: &BacktestRun, summary: &BacktestSummary, comparison: Option<&BacktestComparison>, most: usize) -> String {
    let mut text = format!(
        "{} to {}: {}, {}, {}\n",
        format::day(run.from),
        format::day(run.to),
        format::count(run.tokens, "token"),
        format::count(run.rules.len(), "rule"),
        format::count(usize::try_from(run.changes).unwrap_or(usize::MAX), "change"),
    );
    let joined = match summary.joined {
        0 => String::new(),
        joined => format!(", {joined} of them about several"),
    };
    text.push_str(&format!(
        "{} would have been told in {}{joined}\n",
        format::count(summary.alerts as usize, "alert"),
        format::count(summary.messages as usize, "message"),
    ));
    if !summary.undelivered.is_empty() {
        text.push_str(&format!("not told: {}\n", untold_in_words(summary)));
    }
    text.push('\n');
    text.push_str(&listing("Rule", &summary.rules, summary).table(width()));
    if !summary.receivers.is_empty() {
        text.push('\n');
        text.push_str(&listing("Receiver", &summary.receivers, summary).table(width()));
    }
    if let Some((rule, token, count)) = summary.noisiest.first().filter(|(_, _, count)| *count > 1) {
        text.push_str(&format!(
            "\nmost of one token: {} for {}, {}",
            harmless(rule),
            harmless(token),
            format::count(*count as usize, "message")
        ));
        if let Some((rule, token, count)) = summary.noisiest.get(1) {
            text.push_str(&format!("; then {} for {}, {count}", harmless(rule), harmless(token)));
        }
        text.push('\n');
    }
    for (rule, error) in &run.template_errors {
        text.push_str(&format!("\na template of {} fails: {}\n", harmless(rule), harmless(error)));
    }
    if let Some(comparison) = comparison {
        text.push_str(&comparison_text(comparison, most));
    } else if most > 0 && !run.messages.is_empty() {
        text.push('\n');
        let all: Vec<_> = joint_messages(&run.messages).collect();
        let skipped = all.len().saturating_sub(most);
        if skipped > 0 {
            text.push_str(&format!("the last {most} of {}; `cliffwatch backtest --messages N` shows more\n", all.len()));
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
        "\nwith the other rules: {} gained, {} lost, {} changed, {same} the same\n",
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
        // Within a group only what differs is worth reading.
        text.push_str(&format!("~ {}  -> {}\n", time(is.at), harmless(&is.receiver)));
        text.extend(gone.into_iter().map(|notification| format!("  < {}\n", alert(notification))));
        text.extend(new.into_iter().map(|notification| format!("  > {}\n", alert(notification))));
    }
    if changed.len() > most {
        text.push_str(&format!("~ … and {} more\n", changed.len() - most));
    }
    text
}

fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

/// One alert on a line.
fn alert(notification: &BacktestNotification) -> String {
    format!("{} ({})  {}", harmless(&notification.rule), harmless(&notification.reason), harmless(&notification.summary))
}

/// A message: on one line where it tells one alert, else a line for each.
fn message_text(sign: &str, message: &BacktestMessage, receivers: &[&str]) -> String {
    let to = harmless(&receivers.join(", "));
    let at = time(message.at);
    if let ([only], []) = (message.told.as_slice(), message.counted.as_slice()) {
        return match message.shape {
            BatchKind::Digest => format!("{sign}{at}  {}  -> {to}\n", harmless(&only.summary)),
            _ => format!("{sign}{at}  {}  -> {to}\n", alert(only)),
        };
    }
    let all = message.told.len() + message.counted.len();
    let why = match (&message.note, &message.group_key) {
        (Some(note), _) => note.clone(),
        (None, Some(key)) => format!("in group {key}"),
        (None, None) => "together".to_owned(),
    };
    let mut text = format!("{sign}{at}  {}, {}  -> {to}\n", format::count(all, "alert"), harmless(&why));
    text.extend(message.told.iter().take(MAX_LINES).map(|notification| format!("{sign}    {}\n", alert(notification))));
    let more = all.saturating_sub(message.told.len().min(MAX_LINES));
    if more > 0 {
        text.push_str(&format!("{sign}    and {more} more\n"));
    }
    text
}

fn listing<'a>(first: &'static str, rows: &'a [TallyRow], summary: &'a BacktestSummary) -> Listing<'a, TallyRow> {
    let weeks = u32::try_from(summary.weeks.len().max(1)).unwrap_or(u32::MAX);
    let busiest = |row: &TallyRow| row.busiest().and_then(|(week, count)| Some((*summary.weeks.get(week)?, count)));
    Listing::of(rows)
        .words(first, "", |row| Cell::text(&row.name))
        .numbers("Alerts", "", |row| Cell::text(row.alerts))
        .numbers("Messages", "", |row| Cell::text(row.messages))
        .numbers("Untold", "", |row| Cell::text(if row.undelivered > 0 { row.undelivered.to_string() } else { String::new() }))
        .numbers("Tokens", "", |row| Cell::text(row.tokens))
        .numbers("A week", "", move |row| Cell::text(format!("{:.1}", f64::from(row.messages) / f64::from(weeks))))
        .words("Busiest week", "", move |row| {
            Cell::text(busiest(row).map_or_else(String::new, |(week, count)| format!("{count} in {}", week.format("%-d %b %Y"))))
        })
        .words("Over time", "", |row| Cell::text(spark(&row.by_week)))
}

/// Columns of a line that shows a row over time.
const SPARK: usize = 26;

/// A row over time, as text.
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
