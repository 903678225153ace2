//! The report of a backtest: one HTML file without anything from elsewhere, with a timeline of every message.

use std::{collections::HashMap, fmt::Write as _};

use chrono::{Datelike, Days, Months, NaiveDate};

use crate::{diagnostic::is_harmful, format, supply::Timestamp};

use super::{Comparison, Message, Row, Run, Summary, Telling, Untold, letters, parts, seconds, summary::monday};
use crate::store::model::Shape;

/// Messages that are listed; all are in the counts, and in the JSON and CSV of the command.
const MAX_LISTED: usize = 2_000;
/// Alerts that are listed of one message.
const MAX_ALERTS: usize = 100;
/// Dots of the timeline.
const MAX_DOTS: usize = 20_000;
/// Rows of each list of a comparison.
const MAX_COMPARED: usize = 300;

/// Of the drawing, in its own units.
const WIDTH: f64 = 1160.0;
const GUTTER: f64 = 190.0;
const RIGHT: f64 = 12.0;
const HISTOGRAM: f64 = 84.0;
const DOT: f64 = 3.0;
const COLUMN: f64 = 7.0;
const LANE_MOST: f64 = 110.0;
/// Classes of dots, the gravest first.
const CLASSES: [&str; 4] = ["critical", "warning", "info", "other"];

/// One thing that the list of messages shows.
enum Entry<'a> {
    /// A message, with all who would have got it.
    Sent(&'a Message, Vec<&'a str>),
    /// What was not told.
    Untold(&'a Untold),
}

impl<'a> Entry<'a> {
    /// All of a run, in the order of time.
    fn all(run: &'a Run) -> Vec<Self> {
        let sent = letters(&run.messages).map(|(message, receivers)| Entry::Sent(message, receivers));
        let mut entries: Vec<Self> = sent.chain(run.untold.iter().map(Entry::Untold)).collect();
        entries.sort_by_key(Entry::at);
        entries
    }

    fn at(&self) -> Timestamp {
        match self {
            Entry::Sent(message, _) => message.at,
            Entry::Untold(untold) => untold.telling.at,
        }
    }

    /// What it tells, or would have told.
    fn tellings(&self) -> Vec<&'a Telling> {
        match self {
            Entry::Sent(message, _) => message.told.iter().chain(&message.counted).map(|telling| &**telling).collect(),
            Entry::Untold(untold) => vec![&untold.telling],
        }
    }
}

/// A self-contained page.
#[must_use]
pub fn page(run: &Run, summary: &Summary, comparison: Option<&Comparison>) -> String {
    let mut page = String::with_capacity(64 << 10);
    let span = format!("{} – {}", format::day(run.from), format::day(run.to));
    let entries = Entry::all(run);
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>Backtest {}</title>\n<style>{STYLE}</style></head>\n<body>\n<main>\n",
        escaped(&span)
    );
    header(&mut page, run, summary, &span);
    timeline(&mut page, run, summary, &entries);
    rules(&mut page, summary);
    receivers(&mut page, summary);
    if let Some(comparison) = comparison {
        compared(&mut page, comparison);
    }
    messages(&mut page, &entries);
    let _ = write!(page, "</main>\n<div id=\"card\" hidden></div>\n<script>{SCRIPT}</script>\n</body></html>\n");
    page
}

fn header(page: &mut String, run: &Run, summary: &Summary, span: &str) {
    let _ = write!(
        page,
        "<header><h1>What these rules would have sent</h1>\n<p class=\"span\">{}</p>\n<p class=\"dim\">{} through {}; {} in what the source said</p></header>\n",
        escaped(span),
        format::count(run.tokens, "token"),
        format::count(run.rules.len(), "rule"),
        format::count(usize::try_from(run.changes).unwrap_or(usize::MAX), "change"),
    );
    let weeks = seconds(run.to - run.from) / (7.0 * 86_400.0);
    let per_week = if weeks > 0.0 { f64::from(summary.messages) / weeks } else { 0.0 };
    let busiest = busiest_week(summary);
    let silent = summary.rules.iter().filter(|row| row.messages == 0).count();
    let s = |count: u32| if count == 1 { "" } else { "s" };
    let joined = if summary.joined > 0 { format!(", {} of them about several", summary.joined) } else { String::new() };
    let cards = [
        (summary.alerts.to_string(), format!("alert{}", s(summary.alerts))),
        (summary.messages.to_string(), format!("message{}{joined}", s(summary.messages))),
        (format!("{per_week:.1}"), "a week on average".to_owned()),
        busiest.map_or_else(
            || ("0".to_owned(), "in the busiest week".to_owned()),
            |(week, count)| (count.to_string(), format!("in the busiest week, of {}", week.format("%-d %b %Y"))),
        ),
        (silent.to_string(), format!("rule{} that sent nothing", if silent == 1 { "" } else { "s" })),
    ];
    page.push_str("<section class=\"cards\">");
    for (number, what) in cards {
        let _ = write!(page, "<div><b>{}</b><span>{}</span></div>", escaped(&number), escaped(&what));
    }
    page.push_str("</section>\n");
    let mut note = |text: String| {
        let _ = writeln!(page, "<p class=\"warn\">{}</p>", escaped(&text));
    };
    let untold = |state: &str| summary.untold.get(state).copied().unwrap_or(0);
    let held: Vec<String> = ["silenced", "inhibited", "acknowledged"]
        .into_iter()
        .filter(|state| untold(state) > 0)
        .map(|state| format!("{} {state}", untold(state)))
        .collect();
    if !held.is_empty() {
        note(format!("Held back and never told: {}.", held.join(", ")));
    }
    if untold("nobody") > 0 {
        let count = untold("nobody");
        let them = if count == 1 { "it" } else { "them" };
        note(format!("{} would have reached nobody: no route takes {them}.", format::count(count as usize, "alert")));
    }
    if untold("waiting") > 0 {
        note(format!(
            "{} still waited for a group, a mute time or room in the hour at the end.",
            format::count(untold("waiting") as usize, "alert")
        ));
    }
    if run.uncounted > 0 {
        note(format!("{} more messages are not shown: that is too much for anyone.", run.uncounted));
    }
    for (rule, error) in &run.template_errors {
        note(format!("A template of {rule} fails, and the built-in text stands in its place: {error}"));
    }
}

fn busiest_week(summary: &Summary) -> Option<(NaiveDate, u32)> {
    let totals = summary
        .weeks
        .iter()
        .enumerate()
        .map(|(index, week)| (*week, summary.rules.iter().filter_map(|row| row.by_week.get(index)).sum::<u32>()));
    totals.rev().max_by_key(|(_, count)| *count).filter(|(_, count)| *count > 0)
}

/// From instants to places.
struct Axis {
    from: Timestamp,
    length: f64,
}

impl Axis {
    fn x(&self, at: Timestamp) -> f64 {
        GUTTER + (seconds(at - self.from) / self.length).clamp(0.0, 1.0) * (WIDTH - GUTTER - RIGHT)
    }
}

fn timeline(page: &mut String, run: &Run, summary: &Summary, entries: &[Entry<'_>]) {
    let axis = Axis { from: run.from, length: seconds(run.to - run.from).max(1.0) };
    let busy: Vec<&Row> = summary.rules.iter().filter(|row| row.messages > 0 || row.untold > 0).collect();
    page.push_str("<section><h2>Timeline</h2>\n");
    if busy.is_empty() {
        page.push_str("<p class=\"dim\">Nothing was sent.</p></section>\n");
        return;
    }
    // Dots of one lane and column are stacked; the tallest stack makes the lane as high as it is.
    let mut stacks: HashMap<(usize, i64), u32> = HashMap::new();
    let lane_of: HashMap<&str, usize> = busy.iter().enumerate().map(|(lane, row)| (row.name.as_str(), lane)).collect();
    let mut tallest = vec![1_u32; busy.len()];
    let mut dots: Vec<Dot> = Vec::new();
    // Within a stack the gravest lie at the bottom, and what ended or was not told on top.
    let mut order: Vec<(usize, bool, &Telling, Timestamp)> = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let is_untold = matches!(entry, Entry::Untold(_));
        order.extend(entry.tellings().into_iter().map(|telling| (index, is_untold, telling, entry.at())));
    }
    order.truncate(MAX_DOTS);
    order.sort_by_key(|(_, is_untold, telling, _)| {
        (*is_untold, telling.is_end(), CLASSES.iter().position(|class| *class == severity(telling)))
    });
    for (index, is_untold, telling, at) in order {
        let Some(lane) = lane_of.get(telling.rule.as_str()).copied() else { continue };
        let column = column_of(axis.x(at));
        let stack = stacks.entry((lane, column)).or_default();
        let more = if is_untold { " not" } else { "" };
        let class = format!("{}{}{more}", severity(telling), if telling.is_end() { " end" } else { "" });
        dots.push(Dot { lane, x: (column as f64).mul_add(COLUMN, COLUMN / 2.0), stack: *stack, class, entry: index });
        *stack += 1;
        if let Some(most) = tallest.get_mut(lane) {
            *most = (*most).max(*stack);
        }
    }
    let steps: Vec<f64> = tallest.iter().map(|most| (LANE_MOST / f64::from(*most)).min(COLUMN)).collect();
    let heights: Vec<f64> =
        tallest.iter().zip(&steps).map(|(most, step)| f64::from(*most).mul_add(*step, 14.0).max(26.0)).collect();
    let top = 26.0 + HISTOGRAM;
    let mut floors = Vec::with_capacity(heights.len());
    let mut y = top;
    for height in &heights {
        y += height;
        floors.push(y);
    }
    let height = y + 8.0;
    let _ = writeln!(
        page,
        "<div class=\"scroll\"><svg viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-label=\"messages over time, a lane for each rule\">"
    );
    months(page, &axis, run, height);
    histogram(page, &axis, run, summary);
    for ((row, floor), height) in busy.iter().zip(&floors).zip(&heights) {
        let _ = writeln!(
            page,
            "<line class=\"floor\" x1=\"0\" x2=\"{WIDTH}\" y1=\"{floor:.1}\" y2=\"{floor:.1}\"/>\
             <g class=\"lane\" data-rule=\"{}\" tabindex=\"0\"><rect x=\"0\" y=\"{:.1}\" width=\"{GUTTER}\" height=\"{height:.1}\"/>\
             <text x=\"4\" y=\"{:.1}\">{}</text><text class=\"n\" x=\"{:.0}\" y=\"{:.1}\">{}</text></g>",
            escaped(&row.name),
            floor - height,
            floor - 8.0,
            escaped(&cut(&row.name, 21)),
            GUTTER - 12.0,
            floor - 8.0,
            row.messages
        );
    }
    for Dot { lane, x, stack, class, entry } in dots {
        let (Some(floor), Some(step)) = (floors.get(lane), steps.get(lane)) else { continue };
        let y = floor - 6.0 - f64::from(stack) * step;
        let _ = write!(page, "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\" data-i=\"{entry}\"/>");
    }
    page.push_str("\n</svg></div>\n<p class=\"legend\"><i class=\"critical\"></i>critical <i class=\"warning\"></i>warning <i class=\"info\"></i>info <i class=\"other\"></i>other <i class=\"info end\"></i>ended <i class=\"not\"></i>not told <span class=\"dim\">· a dot is an alert in a message; bars are messages a week; click a rule or a dot</span></p></section>\n");
}

/// An alert on the timeline.
struct Dot {
    lane: usize,
    x: f64,
    stack: u32,
    class: String,
    /// Which entry of the list it stands for.
    entry: usize,
}

#[expect(clippy::cast_possible_truncation, reason = "the drawing is about a thousand units wide")]
fn column_of(x: f64) -> i64 {
    (x / COLUMN).floor() as i64
}

fn months(page: &mut String, axis: &Axis, run: &Run, height: f64) {
    let (first, last) = (run.from.date_naive(), run.to.date_naive());
    let months =
        (last.year() - first.year()) * 12 + i32::try_from(last.month()).unwrap_or(0) - i32::try_from(first.month()).unwrap_or(0);
    // About a dozen names fit.
    let every = match months {
        ..=1 => return weeks(page, axis, run, height),
        2..=14 => 1,
        15..=40 => 3,
        41..=80 => 6,
        _ => 12,
    };
    let mut month = first.with_day(1).unwrap_or(first);
    while month <= last {
        let at = month.and_time(chrono::NaiveTime::MIN).and_utc();
        let is_named = (month.month0()) % every == 0;
        if at >= run.from && is_named {
            let name = if month.month() == 1 || every == 12 { month.format("%b %Y") } else { month.format("%b") };
            tick(page, axis.x(at), height, &name.to_string());
        }
        let Some(next) = month.checked_add_months(Months::new(1)) else { break };
        month = next;
    }
}

fn weeks(page: &mut String, axis: &Axis, run: &Run, height: f64) {
    let mut day = monday(run.from.date_naive());
    while day <= run.to.date_naive() {
        let at = day.and_time(chrono::NaiveTime::MIN).and_utc();
        if at >= run.from {
            tick(page, axis.x(at), height, &day.format("%-d %b").to_string());
        }
        let Some(next) = day.checked_add_days(Days::new(7)) else { break };
        day = next;
    }
}

fn tick(page: &mut String, x: f64, height: f64, name: &str) {
    let room = x < WIDTH - 40.0;
    let _ = write!(page, "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"20\" y2=\"{height:.0}\"/>");
    if room {
        let _ = writeln!(page, "<text class=\"tick\" x=\"{:.1}\" y=\"14\">{}</text>", x + 3.0, escaped(name));
    }
}

fn histogram(page: &mut String, axis: &Axis, run: &Run, summary: &Summary) {
    let mut weeks = vec![[0_u32; 4]; summary.weeks.len()];
    for message in &run.messages {
        let week = summary.weeks.binary_search(&monday(message.at.date_naive())).ok();
        let gravest = message.all().filter_map(|telling| CLASSES.iter().position(|class| *class == severity(telling))).min();
        let class = gravest.unwrap_or(CLASSES.len() - 1);
        if let Some(count) = week.and_then(|week| weeks.get_mut(week)).and_then(|counts| counts.get_mut(class)) {
            *count += 1;
        }
    }
    let most = weeks.iter().map(|counts| counts.iter().sum::<u32>()).max().unwrap_or(0).max(1);
    let floor = 20.0 + HISTOGRAM;
    for (monday, counts) in summary.weeks.iter().zip(&weeks) {
        let start = monday.and_time(chrono::NaiveTime::MIN).and_utc();
        let x = axis.x(start.max(run.from));
        let width = (axis.x(start + chrono::TimeDelta::days(7)) - x - 1.0).max(0.6);
        let total: u32 = counts.iter().sum();
        if total == 0 {
            continue;
        }
        let mut y = floor;
        let _ = write!(
            page,
            "<g class=\"bar\"><title>week of {}: {}</title>",
            monday.format("%-d %b %Y"),
            format::count(total as usize, "message")
        );
        for (class, count) in CLASSES.iter().zip(counts).rev().filter(|(_, count)| **count > 0) {
            let height = f64::from(*count) / f64::from(most) * (HISTOGRAM - 12.0);
            y -= height;
            let _ =
                write!(page, "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>");
        }
        page.push_str("</g>\n");
    }
    let _ = writeln!(
        page,
        "<line class=\"floor\" x1=\"{GUTTER}\" x2=\"{WIDTH}\" y1=\"{floor}\" y2=\"{floor}\"/>\
         <text class=\"tick\" x=\"4\" y=\"{:.0}\">messages a week</text><text class=\"n tick\" x=\"{:.0}\" y=\"{:.0}\">{most}</text>",
        floor - 6.0,
        GUTTER - 12.0,
        floor - HISTOGRAM + 18.0
    );
}

fn severity(telling: &Telling) -> &'static str {
    match telling.labels.get("severity").map(String::as_str) {
        Some("critical" | "page" | "error") => "critical",
        Some("warning") => "warning",
        Some("info" | "notice") => "info",
        _ => "other",
    }
}

fn rules(page: &mut String, summary: &Summary) {
    page.push_str("<section><h2>Rules</h2>\n<div class=\"scroll\"><table><tr><th>Rule<th class=\"r\">Alerts<th class=\"r\">Messages<th class=\"r\">Untold<th class=\"r\">Tokens<th>To<th>Weeks<th class=\"r\">Busiest</tr>\n");
    for row in &summary.rules {
        let class = if row.messages == 0 { " class=\"silent\"" } else { "" };
        let _ = write!(
            page,
            "<tr{class}><td><a class=\"rule\" href=\"#messages\" data-rule=\"{0}\">{0}</a><td class=\"r\">{1}<td class=\"r\">{2}<td class=\"r\">{3}<td class=\"r\">{4}<td>{5}<td>",
            escaped(&row.name),
            row.alerts,
            row.messages,
            few(row.untold),
            row.tokens,
            shares(row)
        );
        spark(page, row);
        busiest(page, row, summary);
    }
    page.push_str("</table></div>\n");
    if !summary.noisiest.is_empty() {
        let named: Vec<String> =
            summary.noisiest.iter().take(5).map(|(rule, token, count)| format!("{rule} for {token} ({count})")).collect();
        let _ = writeln!(page, "<p class=\"dim\">Most of one token: {}.</p>", escaped(&named.join(", ")));
    }
    page.push_str("</section>\n");
}

fn receivers(page: &mut String, summary: &Summary) {
    if summary.receivers.is_empty() {
        return;
    }
    page.push_str("<section><h2>Receivers</h2>\n<div class=\"scroll\"><table><tr><th>Receiver<th class=\"r\">Alerts<th class=\"r\">Messages<th class=\"r\">Untold<th class=\"r\">Tokens<th>Mostly of<th>Weeks<th class=\"r\">Busiest</tr>\n");
    for row in &summary.receivers {
        let _ = write!(
            page,
            "<tr><td>{}<td class=\"r\">{}<td class=\"r\">{}<td class=\"r\">{}<td class=\"r\">{}<td>{}<td>",
            escaped(&row.name),
            row.alerts,
            row.messages,
            few(row.untold),
            row.tokens,
            shares(row)
        );
        spark(page, row);
        busiest(page, row, summary);
    }
    page.push_str("</table></div></section>\n");
}

/// A number that is mostly nothing.
fn few(count: u32) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn shares(row: &Row) -> String {
    let mut shares: Vec<(&String, &u32)> = row.shares.iter().collect();
    shares.sort_by(|a, b| b.1.cmp(a.1).then_with(|| a.0.cmp(b.0)));
    let named: Vec<String> =
        shares.iter().take(3).map(|(name, count)| format!("{}&nbsp;<span class=\"dim\">{count}</span>", escaped(name))).collect();
    let more =
        if shares.len() > 3 { format!(" <span class=\"dim\">and {} more</span>", shares.len() - 3) } else { String::new() };
    named.join(", ") + &more
}

fn spark(page: &mut String, row: &Row) {
    let most = f64::from(row.by_week.iter().copied().max().unwrap_or(0).max(1));
    let count = row.by_week.len().max(1);
    let width = 200.0 / f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    page.push_str("<svg class=\"spark\" viewBox=\"0 0 200 22\" preserveAspectRatio=\"none\" aria-hidden=\"true\">");
    for (week, count) in row.by_week.iter().enumerate().filter(|(_, count)| **count > 0) {
        let height = (f64::from(*count) / most * 20.0).max(1.5);
        let x = f64::from(u32::try_from(week).unwrap_or(u32::MAX)) * width;
        let _ = write!(
            page,
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{height:.1}\"/>",
            22.0 - height,
            (width - 0.4).max(0.5)
        );
    }
    page.push_str("</svg>");
}

fn busiest(page: &mut String, row: &Row, summary: &Summary) {
    let text = row.busiest().and_then(|(week, count)| {
        let monday = summary.weeks.get(week)?;
        Some(format!("{count}&nbsp;<span class=\"dim\">{}</span>", monday.format("%-d&nbsp;%b&nbsp;%Y")))
    });
    let _ = writeln!(page, "<td class=\"r\">{}</tr>", text.unwrap_or_default());
}

fn compared(page: &mut String, comparison: &Comparison) {
    let Comparison { gained, lost, changed, same } = comparison;
    let _ = write!(
        page,
        "<section><h2>Against the other rules</h2>\n<p><b class=\"gain\">{} gained</b>, <b class=\"loss\">{} lost</b>, {} changed, {same} the same.</p>\n",
        gained.len(),
        lost.len(),
        changed.len()
    );
    let sides = letters(gained).map(|(message, receivers)| ("gain", "+", message, receivers)).take(MAX_COMPARED);
    let sides = sides.chain(letters(lost).map(|(message, receivers)| ("loss", "−", message, receivers)).take(MAX_COMPARED));
    let mut sides: Vec<_> = sides.collect();
    sides.sort_by_key(|(_, _, message, _)| message.at);
    if !sides.is_empty() {
        page.push_str("<div class=\"scroll\"><table>\n");
        for (class, sign, message, receivers) in sides {
            let mut rules: Vec<&str> = message.told.iter().map(|telling| telling.rule.as_str()).collect();
            rules.dedup();
            let _ = writeln!(
                page,
                "<tr class=\"{class}\"><td>{sign}<td class=\"t\">{}<td>{}<td>{}<td>{}</tr>",
                time(message.at),
                escaped(&rules.join(", ")),
                escaped(&message.title()),
                escaped(&receivers.join(", "))
            );
        }
        page.push_str("</table></div>\n");
    }
    if !changed.is_empty() {
        page.push_str("<h3>Changed</h3><div class=\"scroll\"><table>\n");
        for (was, is) in changed.iter().take(MAX_COMPARED) {
            let (gone, new) = parts(was, is);
            let lines = |tag: &str, tellings: &[&Telling]| -> String {
                let line = |telling: &&Telling| {
                    let severity = telling.labels.get("severity").map(|text| format!(" [{text}]")).unwrap_or_default();
                    format!("<{tag}>{}</{tag}>", escaped(&format!("{}: {}{severity}", telling.rule, telling.summary)))
                };
                tellings.iter().take(MAX_ALERTS).map(line).collect::<Vec<_>>().join("<br>")
            };
            let words = [lines("del", &gone), lines("ins", &new)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
            let words = if words.is_empty() { escaped(&is.title()) } else { words.join("<br>") };
            let when =
                if was.at == is.at { time(is.at) } else { format!("<del>{}</del><br><ins>{}</ins>", time(was.at), time(is.at)) };
            let _ = writeln!(page, "<tr><td class=\"t\">{when}<td>{words}<td>{}</tr>", escaped(&is.receiver));
        }
        page.push_str("</table></div>\n");
    }
    page.push_str("</section>\n");
}

fn time(at: Timestamp) -> String {
    at.format("%Y-%m-%d %H:%M").to_string()
}

fn messages(page: &mut String, entries: &[Entry<'_>]) {
    page.push_str(
        "<section id=\"messages\"><h2>Messages</h2>\n<p class=\"tools\"><input id=\"find\" type=\"search\" placeholder=\"token, rule, receiver, words …\" \
         aria-label=\"filter\"> <span id=\"shown\" class=\"dim\"></span></p>\n<table id=\"list\">\n",
    );
    for (index, entry) in entries.iter().enumerate().take(MAX_LISTED) {
        let tellings = entry.tellings();
        let Some(first) = tellings.first() else { continue };
        let mut rules: Vec<&str> = tellings.iter().map(|telling| telling.rule.as_str()).collect();
        rules.sort_unstable();
        rules.dedup();
        let (not, fate) = match entry {
            Entry::Sent(_, receivers) => ("", format!("to {}", receivers.join(", "))),
            Entry::Untold(untold) => (" not", fate(untold)),
        };
        let _ = write!(
            page,
            "<tr id=\"m{index}\" data-rule=\"{}\"><td class=\"t\">{}<td><i class=\"{}{}{not}\"></i><td>",
            escaped(&rules.join("\n")),
            entry.at().format("%Y-%m-%d<br>%H:%M"),
            severity(first),
            if tellings.iter().all(|telling| telling.is_end()) { " end" } else { "" },
        );
        match entry {
            Entry::Sent(message, _) if tellings.len() > 1 => several(page, message, &fate),
            _ => {
                let description = first.description.as_deref().map(str::trim).filter(|text| !text.is_empty());
                let description = description.map(|text| format!("<p>{}</p>", escaped(text))).unwrap_or_default();
                let is_digest = matches!(entry, Entry::Sent(message, _) if message.shape == Shape::Digest);
                let _ = write!(
                    page,
                    "<b>{}</b>{}<p class=\"dim\">{}{}</p>",
                    escaped(&first.summary),
                    if is_digest { format!("<details><summary>its text</summary>{description}</details>") } else { description },
                    if is_digest { String::new() } else { escaped(&format!("{} · {} · ", first.rule, first.reason)) },
                    escaped(&fate)
                );
            }
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
    if entries.len() > MAX_LISTED {
        let _ = writeln!(
            page,
            "<p class=\"dim\">The first {MAX_LISTED} of {} are listed; --format csv gives them all.</p>",
            entries.len()
        );
    }
    page.push_str("</section>\n");
}

/// A message about several alerts.
fn several(page: &mut String, message: &Message, fate: &str) {
    let all = message.told.len() + message.counted.len();
    let _ = write!(page, "<b>{}</b>", format::count(all, "alert"));
    page.push_str("<ul>");
    for telling in message.told.iter().take(MAX_ALERTS) {
        let end = if telling.is_end() { " end" } else { "" };
        let _ = write!(
            page,
            "<li><i class=\"{}{end}\"></i>{} <span class=\"dim\">{} · {}</span>",
            severity(telling),
            escaped(&telling.summary),
            escaped(&telling.rule),
            escaped(&telling.reason)
        );
    }
    let more = all.saturating_sub(message.told.len().min(MAX_ALERTS));
    if more > 0 {
        let _ = write!(page, "<li class=\"dim\">and {more} more");
    }
    let why = match (&message.note, &message.group_key) {
        (Some(note), _) => format!("{note} · "),
        (None, Some(key)) => format!("group {key} · "),
        (None, None) => String::new(),
    };
    let before = match message.told_before {
        0 => String::new(),
        before => format!("{} told before, still firing · ", format::count(before as usize, "alert")),
    };
    let _ = write!(page, "</ul><p class=\"dim\">{}</p>", escaped(&format!("{why}{before}{fate}")));
}

/// What became of what was not told, in words.
fn fate(untold: &Untold) -> String {
    let to = untold.receiver.as_deref().map(|name| format!(", for {name}")).unwrap_or_default();
    match (untold.state, &untold.holder) {
        ("nobody", _) => "not told: no route takes it".to_owned(),
        ("waiting", _) => format!("not told yet: it still waited at the end{to}"),
        ("silenced", Some(id)) => format!("not told: silenced by {id}{to}"),
        ("inhibited", Some(id)) => format!("not told: inhibited by {id}{to}"),
        (state, _) => format!("not told: {state}{to}"),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most { text.to_owned() } else { format!("{}…", text.chars().take(most - 1).collect::<String>()) }
}

/// A text from anywhere, within HTML. Characters that turn the direction of text or cannot be seen are shown as what they are not.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push('\n'),
            c if is_harmful(c) => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
