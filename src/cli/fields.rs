//! `fields [ON]`: what rules may name. The page `docs/fields.md` is the same, made here.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, width};
use model::{Endpoint, Resource, closest};
use rules::On;
use rules::reference::{KnownBy, ReferenceEntry, ReferenceKind, about_on, reference};

/// Show what rules may name: fields with unit and example, kinds of change, functions, filters.
#[derive(Debug, Args)]
pub(super) struct FieldsArgs {
    /// What a rule listens to, such as unlock, burn, unlock.rescheduled, token; without it, everything
    #[arg(value_name = "ON")]
    on: Option<String>,
    /// Print the page of the docs
    #[arg(long, hide = true, conflicts_with = "on")]
    markdown: bool,
}

/// An entry as programs get it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FieldRow {
    kind: &'static str,
    /// Which rules know it.
    on: String,
    name: String,
    /// Its unit where it is a number, else its type.
    unit: &'static str,
    example: String,
    endpoints: Vec<FieldEndpoint>,
    about: &'static str,
}

#[derive(Debug, Serialize)]
struct FieldEndpoint {
    name: &'static str,
    path: String,
}

impl FieldRow {
    fn of(entry: ReferenceEntry) -> Self {
        let endpoint = |endpoint: Endpoint| FieldEndpoint { name: endpoint.as_str(), path: source::newest_path(endpoint) };
        Self {
            kind: entry.kind.as_str(),
            on: entry.known_by.to_string(),
            name: entry.name,
            unit: entry.unit,
            example: entry.example,
            endpoints: entry.endpoints.into_iter().map(endpoint).collect(),
            about: entry.about,
        }
    }

    fn endpoint_names(&self) -> String {
        self.endpoints.iter().map(|endpoint| endpoint.name).collect::<Vec<_>>().join(", ")
    }
}

pub(super) fn run(fields: &FieldsArgs, invocation: &Invocation) -> anyhow::Result<Exit> {
    if fields.markdown {
        print::out(&page())?;
        return Ok(Exit::Done);
    }
    let on = fields.on.as_deref().map(listened_to).transpose()?;
    let entries = reference(on);
    match invocation.format {
        OutputFormat::Table => print::out(&tables(on, entries))?,
        OutputFormat::Json | OutputFormat::Csv => {
            let rows: Vec<FieldRow> = entries.into_iter().map(FieldRow::of).collect();
            listing(&rows).print("", invocation)?;
        }
    }
    Ok(Exit::Done)
}

fn listened_to(word: &str) -> Result<On, UsageError> {
    On::parse(word).ok_or_else(|| {
        let words: Vec<String> = On::all().map(|on| on.to_string()).collect();
        let help = match closest(word, words.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => {
                let first = On::all().filter(|on| !matches!(on, On::Change(..))).map(|on| on.to_string());
                format!("there are {}, and changes such as unlock.rescheduled", first.collect::<Vec<_>>().join(", "))
            }
        };
        UsageError(format!("a rule cannot listen to {word:?}: {help}"))
    })
}

/// All columns, for CSV; JSON takes the rows as they are.
fn listing(rows: &[FieldRow]) -> Listing<'_, FieldRow> {
    let paths = |row: &FieldRow| row.endpoints.iter().map(|endpoint| endpoint.path.as_str()).collect::<Vec<_>>().join(" ");
    Listing::of(rows)
        .words("", "kind", |row| Cell::text(row.kind))
        .words("", "on", |row| Cell::text(&row.on))
        .words("", "name", |row| Cell::text(&row.name))
        .words("", "unit", |row| Cell::text(row.unit))
        .words("", "example", |row| Cell::text(&row.example))
        .words("", "endpoints", |row| Cell::text(row.endpoint_names()))
        .words("", "paths", move |row| Cell::text(paths(row)))
        .words("", "about", |row| Cell::text(row.about))
}

/// A table for each kind.
fn tables(on: Option<On>, entries: Vec<ReferenceEntry>) -> String {
    let mut text = on.map_or_else(String::new, |on| format!("{on}: {}\n", about_on(on)));
    let rows: Vec<FieldRow> = entries.into_iter().map(FieldRow::of).collect();
    for kind in ReferenceKind::ALL {
        let of_kind: Vec<&FieldRow> = rows.iter().filter(|row| row.kind == kind.as_str()).collect();
        if of_kind.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{}\n", heading(kind));
        let mut listing = Listing::of(&of_kind).words("Name", "", |row| Cell::text(&row.name));
        // Asked about one `on`, everything that is listed is known to it.
        if on.is_none() && !matches!(kind, ReferenceKind::Function | ReferenceKind::Filter) {
            listing = listing.words("Known to", "", |row| Cell::text(&row.on));
        }
        if matches!(kind, ReferenceKind::Field | ReferenceKind::Item | ReferenceKind::Window) {
            listing = listing.words("Unit", "", |row| Cell::text(row.unit));
        }
        listing = listing.words("Example", "", |row| Cell::text(&row.example));
        if matches!(kind, ReferenceKind::Field | ReferenceKind::Item | ReferenceKind::Window) {
            listing = listing.words("From", "", |row| Cell::text(row.endpoint_names()));
        }
        text.push_str(&listing.words("Meaning", "", |row| Cell::text(row.about)).table(width()));
    }
    text
}

fn heading(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field => "Fields, in conditions and texts",
        ReferenceKind::Item => "Fields of the items of a list: allocations.exists(a, …), tokens.exists(t, …)",
        ReferenceKind::Change => "Kinds of change, in `on` and as `change.kind`",
        ReferenceKind::Window => "Windows, in conditions and texts",
        ReferenceKind::Function => "What conditions may call",
        ReferenceKind::Filter => "Filters of texts",
        ReferenceKind::Variable => "What texts know besides",
    }
}

/// The page of the docs.
fn page() -> String {
    let mut page = "# Fields\n\n\
        What rules may name, with the unit, an example and the endpoint of the API that it comes from. `cliffwatch fields` prints the same,\n\
        `cliffwatch fields unlock.rescheduled` what a rule with `on = \"unlock.rescheduled\"` knows. A field that an answer leaves out is\n\
        missing: a comparison with it is neither true nor false. How rules are written is in [rules.md](rules.md).\n\n\
        ## What a rule listens to\n\n| `on` | |\n|---|---|\n"
        .to_owned();
    for on in On::all().filter(|on| !matches!(on, On::Change(_, Some(_)))) {
        let _ = writeln!(page, "| `{on}` | {} |", about_on(on));
    }
    let entries = reference(None);
    let of_resource = |resource| move |entry: &&ReferenceEntry| entry.known_by == KnownBy::Resource(resource);
    page.push_str("\n## Endpoints\n\n| endpoint | newest path |\n|---|---|\n");
    for endpoint in Endpoint::ALL {
        let _ = writeln!(page, "| `{endpoint}` | `{}` |", source::newest_path(endpoint));
    }
    for resource in Resource::ALL {
        let rows: Vec<&ReferenceEntry> = entries.iter().filter(of_resource(resource)).collect();
        let _ = write!(
            page,
            "\n## Fields of `{resource}`\n\nOf rules on `{resource}` and on changes of it. From {}.\n\n",
            from(&rows)
        );
        page.push_str("| field | unit | example | |\n|---|---|---|---|\n");
        for entry in rows {
            let _ = writeln!(page, "| `{}` | {} | {} | {} |", entry.name, entry.unit, code(&entry.example), entry.about);
        }
    }
    page.push_str(
        "\n## Fields beside those of records\n\n| field | known to | unit | example | from | |\n|---|---|---|---|---|---|\n",
    );
    let beside = |entry: &&ReferenceEntry| entry.kind == ReferenceKind::Field && !matches!(entry.known_by, KnownBy::Resource(_));
    rows_with_reach(&mut page, entries.iter().filter(beside));
    for (kind, note) in [
        (ReferenceKind::Item, "Behind the variable of `exists` and its like: `a` of an allocation, `t` of a token."),
        (ReferenceKind::Window, "Of rules on `token` and `portfolio`; the window stands in quotes."),
    ] {
        let _ = write!(page, "\n## {}\n\n{note}\n\n", title(kind));
        page.push_str("| name | known to | unit | example | from | |\n|---|---|---|---|---|---|\n");
        rows_with_reach(&mut page, entries.iter().filter(|entry| entry.kind == kind));
    }
    for kind in [ReferenceKind::Change, ReferenceKind::Variable] {
        let _ = write!(page, "\n## {}\n\n| name | known to | example | |\n|---|---|---|---|\n", title(kind));
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(page, "| `{}` | {} | {} | {} |", entry.name, entry.known_by, code(&entry.example), entry.about);
        }
    }
    for kind in [ReferenceKind::Function, ReferenceKind::Filter] {
        let _ = write!(page, "\n## {}\n\n| name | example | |\n|---|---|---|\n", title(kind));
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(page, "| `{}` | {} | {} |", entry.name, code(&entry.example), entry.about);
        }
    }
    page
}

fn title(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field => "Fields",
        ReferenceKind::Item => "Fields of items of a list",
        ReferenceKind::Change => "Kinds of change",
        ReferenceKind::Window => "Windows",
        ReferenceKind::Function => "Functions",
        ReferenceKind::Filter => "Filters of texts",
        ReferenceKind::Variable => "Variables of texts",
    }
}

fn from(entries: &[&ReferenceEntry]) -> String {
    let endpoints = entries.first().map(|entry| entry.endpoints.as_slice()).unwrap_or_default();
    endpoints.iter().map(|endpoint| format!("`{endpoint}`")).collect::<Vec<_>>().join(", ")
}

fn rows_with_reach<'e>(page: &mut String, entries: impl Iterator<Item = &'e ReferenceEntry>) {
    for entry in entries {
        let (name, unit, about) = (&entry.name, entry.unit, entry.about);
        let _ = writeln!(
            page,
            "| `{name}` | {} | {unit} | {} | {} | {about} |",
            entry.known_by,
            code(&entry.example),
            from(&[entry])
        );
    }
}

/// Code in a cell: a `|` ends it, escaped or not by who reads it, so it is escaped.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests;
