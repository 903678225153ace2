//! The report of a backtest: one HTML file without anything from elsewhere, with a timeline of every message.

use std::{collections::HashMap, fmt::Write as _};

use chrono::{Datelike, Days, Months, NaiveDate};

use crate::{diagnostic::is_harmful, format, supply::Timestamp};

use super::{Comparison, Message, NOBODY, Row, Run, Summary, seconds};

/// Messages that are listed; all are in the counts, and in the JSON and CSV of the command.
const MAX_LISTED: usize = 2_000;
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

/// A self-contained page.
#[must_use]
pub fn page(run: &Run, summary: &Summary, comparison: Option<&Comparison>) -> String {
    let mut page = String::with_capacity(64 << 10);
    let span = format!("{} – {}", format::day(run.from), format::day(run.to));
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n\
         <title>Backtest {}</title>\n<style>{STYLE}</style></head>\n<body>\n<main>\n",
        escaped(&span)
    );
    header(&mut page, run, summary, &span);
    timeline(&mut page, run, summary);
    rules(&mut page, summary);
    receivers(&mut page, summary);
    if let Some(comparison) = comparison {
        compared(&mut page, comparison);
    }
    messages(&mut page, run);
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
    let per_week = if weeks > 0.0 { f64::from(summary.deliveries) / weeks } else { 0.0 };
    let busiest = busiest_week(summary);
    let silent = summary.rules.iter().filter(|row| row.messages == 0).count();
    let cards = [
        (summary.deliveries.to_string(), format!("message{} sent", if summary.deliveries == 1 { "" } else { "s" })),
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
    if summary.to_nobody > 0 {
        note(format!(
            "{} would have reached nobody: no route takes {}.",
            format::count(summary.to_nobody as usize, "message"),
            if summary.to_nobody == 1 { "it" } else { "them" }
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

fn timeline(page: &mut String, run: &Run, summary: &Summary) {
    let axis = Axis { from: run.from, length: seconds(run.to - run.from).max(1.0) };
    let busy: Vec<&Row> = summary.rules.iter().filter(|row| row.messages > 0).collect();
    page.push_str("<section><h2>Timeline</h2>\n");
    if busy.is_empty() {
        page.push_str("<p class=\"dim\">Nothing was sent.</p></section>\n");
        return;
    }
    // Dots of one lane and column are stacked; the tallest stack makes the lane as high as it is.
    let mut stacks: HashMap<(usize, i64), u32> = HashMap::new();
    let lane_of: HashMap<&str, usize> = busy.iter().enumerate().map(|(lane, row)| (row.name.as_str(), lane)).collect();
    let mut tallest = vec![1_u32; busy.len()];
    let mut dots: Vec<(usize, f64, u32, usize)> = Vec::new();
    // Within a stack the gravest lie at the bottom, and what ended on top.
    let mut order: Vec<(usize, &Message)> = run.messages.iter().enumerate().take(MAX_DOTS).collect();
    order.sort_by_key(|(_, message)| {
        (message.kind == "alert.resolved", CLASSES.iter().position(|class| *class == severity(message)))
    });
    for (index, message) in order {
        let Some(lane) = lane_of.get(message.rule.as_str()).copied() else { continue };
        let x = axis.x(message.at);
        let column = column_of(x);
        let stack = stacks.entry((lane, column)).or_default();
        dots.push((lane, (column as f64).mul_add(COLUMN, COLUMN / 2.0), *stack, index));
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
    for (lane, x, stack, index) in dots {
        let (Some(message), Some(floor), Some(step)) = (run.messages.get(index), floors.get(lane), steps.get(lane)) else {
            continue;
        };
        let y = floor - 6.0 - f64::from(stack) * step;
        let ended = if message.kind == "alert.resolved" { " end" } else { "" };
        let _ = write!(
            page,
            "<circle class=\"{}{ended}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{DOT}\" data-i=\"{index}\"/>",
            severity(message)
        );
    }
    page.push_str("\n</svg></div>\n<p class=\"legend\"><i class=\"critical\"></i>critical <i class=\"warning\"></i>warning <i class=\"info\"></i>info <i class=\"other\"></i>other <i class=\"info end\"></i>ended <span class=\"dim\">· a dot is a message; bars are messages a week; click a rule or a dot</span></p></section>\n");
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
    let mut day = super::monday(run.from.date_naive());
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
        let week = summary.weeks.binary_search(&super::monday(message.at.date_naive())).ok();
        let class = CLASSES.iter().position(|class| *class == severity(message)).unwrap_or(3);
        if let Some(count) = week.and_then(|week| weeks.get_mut(week)).and_then(|counts| counts.get_mut(class)) {
            *count += u32::try_from(message.receivers.len().max(1)).unwrap_or(1);
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

fn severity(message: &Message) -> &'static str {
    match message.labels.get("severity").map(String::as_str) {
        Some("critical" | "page" | "error") => "critical",
        Some("warning") => "warning",
        Some("info" | "notice") => "info",
        _ => "other",
    }
}

fn rules(page: &mut String, summary: &Summary) {
    page.push_str("<section><h2>Rules</h2>\n<div class=\"scroll\"><table><tr><th>Rule<th class=\"r\">Alerts<th class=\"r\">Messages<th class=\"r\">Tokens<th>To<th>Weeks<th class=\"r\">Busiest</tr>\n");
    for row in &summary.rules {
        let class = if row.messages == 0 { " class=\"silent\"" } else { "" };
        let _ = write!(
            page,
            "<tr{class}><td><a class=\"rule\" href=\"#messages\" data-rule=\"{0}\">{0}</a><td class=\"r\">{1}<td class=\"r\">{2}<td class=\"r\">{3}<td>{4}<td>",
            escaped(&row.name),
            row.alerts,
            row.messages,
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
    page.push_str("<section><h2>Receivers</h2>\n<div class=\"scroll\"><table><tr><th>Receiver<th class=\"r\">Alerts<th class=\"r\">Messages<th class=\"r\">Tokens<th>Mostly of<th>Weeks<th class=\"r\">Busiest</tr>\n");
    for row in &summary.receivers {
        let _ = write!(
            page,
            "<tr><td>{}<td class=\"r\">{}<td class=\"r\">{}<td class=\"r\">{}<td>{}<td>",
            escaped(&row.name),
            row.alerts,
            row.messages,
            row.tokens,
            shares(row)
        );
        spark(page, row);
        busiest(page, row, summary);
    }
    page.push_str("</table></div></section>\n");
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
    let sides = gained.iter().map(|message| ("gain", "+", message)).take(MAX_COMPARED);
    let sides = sides.chain(lost.iter().map(|message| ("loss", "−", message)).take(MAX_COMPARED));
    let mut sides: Vec<_> = sides.collect();
    sides.sort_by_key(|(_, _, message)| message.at);
    if !sides.is_empty() {
        page.push_str("<div class=\"scroll\"><table>\n");
        for (class, sign, message) in sides {
            let _ = writeln!(
                page,
                "<tr class=\"{class}\"><td>{sign}<td class=\"t\">{}<td>{}<td>{}<td>{}</tr>",
                message.at.format("%Y-%m-%d %H:%M"),
                escaped(&message.rule),
                escaped(&message.summary),
                escaped(&message.receivers.join(", "))
            );
        }
        page.push_str("</table></div>\n");
    }
    if !changed.is_empty() {
        page.push_str("<h3>Changed</h3><div class=\"scroll\"><table>\n");
        for (was, is) in changed.iter().take(MAX_COMPARED) {
            let severity =
                |message: &Message| message.labels.get("severity").map(|text| format!(" [{text}]")).unwrap_or_default();
            let _ = writeln!(
                page,
                "<tr><td class=\"t\"><del>{}</del><br><ins>{}</ins><td>{}<td><del>{}</del><br><ins>{}</ins></tr>",
                was.at.format("%Y-%m-%d %H:%M"),
                is.at.format("%Y-%m-%d %H:%M"),
                escaped(&is.rule),
                escaped(&format!("{}{}", was.summary, severity(was))),
                escaped(&format!("{}{}", is.summary, severity(is)))
            );
        }
        page.push_str("</table></div>\n");
    }
    page.push_str("</section>\n");
}

fn messages(page: &mut String, run: &Run) {
    page.push_str(
        "<section id=\"messages\"><h2>Messages</h2>\n<p class=\"tools\"><input id=\"find\" type=\"search\" placeholder=\"token, rule, receiver, words …\" \
         aria-label=\"filter\"> <span id=\"shown\" class=\"dim\"></span></p>\n<div class=\"scroll\"><table id=\"list\">\n",
    );
    for (index, message) in run.messages.iter().enumerate().take(MAX_LISTED) {
        let receivers = if message.receivers.is_empty() { NOBODY.to_owned() } else { message.receivers.join(", ") };
        let description = message
            .description
            .as_deref()
            .filter(|text| !text.trim().is_empty())
            .map(|text| format!("<p>{}</p>", escaped(text.trim())))
            .unwrap_or_default();
        let _ = writeln!(
            page,
            "<tr id=\"m{index}\" data-rule=\"{0}\"><td class=\"t\">{1}<td><i class=\"{2}{3}\"></i><td><b>{4}</b>{description}\
             <p class=\"dim\">{0} · {5} · to {6}</p></tr>",
            escaped(&message.rule),
            message.at.format("%Y-%m-%d<br>%H:%M"),
            severity(message),
            if message.kind == "alert.resolved" { " end" } else { "" },
            escaped(&message.summary),
            escaped(&message.reason),
            escaped(&receivers)
        );
    }
    page.push_str("</table></div>\n");
    if run.messages.len() > MAX_LISTED {
        let _ = writeln!(
            page,
            "<p class=\"dim\">The first {MAX_LISTED} of {} are listed; --format csv gives them all.</p>",
            run.messages.len()
        );
    }
    page.push_str("</section>\n");
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
