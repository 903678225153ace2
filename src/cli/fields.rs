//! `fields [ON]`: shows the names that rules can use. It also generates `docs/fields.md`.

use std::fmt::Write as _;

use clap::Args;
use serde::Serialize;

use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, width};
use model::{Endpoint, Resource};
use rules::On;
use rules::reference::{KnownBy, ReferenceEntry, ReferenceKind, describe_on, reference};

/// Show the names that rules can use: fields with unit and example, change kinds, functions, filters
#[derive(Debug, Args)]
pub(super) struct FieldsArgs {
    /// Target of a rule, such as unlock, burn, unlock.rescheduled, token; default: all
    #[arg(value_name = "ON")]
    on: Option<String>,
    /// Print the documentation page
    #[arg(long, hide = true, conflicts_with = "on")]
    markdown: bool,
}

/// An entry in JSON and CSV.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct FieldRow {
    kind: &'static str,
    /// The rules that know the name.
    on: String,
    name: String,
    /// The unit of a number, else the type.
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
    let on = fields.on.as_deref().map(parse_on).transpose()?;
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

fn parse_on(word: &str) -> Result<On, UsageError> {
    On::read(word).map_err(|error| UsageError(error.to_string().replace('`', "")))
}

/// Returns the columns for CSV. JSON serializes the rows directly.
fn listing(rows: &[FieldRow]) -> Listing<'_, FieldRow> {
    let paths = |row: &FieldRow| row.endpoints.iter().map(|endpoint| endpoint.path.as_str()).collect::<Vec<_>>().join(" ");
    Listing::of(rows)
        .left_column("", "kind", |row| Cell::text(row.kind))
        .left_column("", "on", |row| Cell::text(&row.on))
        .left_column("", "name", |row| Cell::text(&row.name))
        .left_column("", "unit", |row| Cell::text(row.unit))
        .left_column("", "example", |row| Cell::text(&row.example))
        .left_column("", "endpoints", |row| Cell::text(row.endpoint_names()))
        .left_column("", "paths", move |row| Cell::text(paths(row)))
        .left_column("", "about", |row| Cell::text(row.about))
}

/// Formats a table for each kind of entry.
fn tables(on: Option<On>, entries: Vec<ReferenceEntry>) -> String {
    let mut text = on.map_or_else(String::new, |on| format!("{on}: {}\n", describe_on(on)));
    let rows: Vec<FieldRow> = entries.into_iter().map(FieldRow::of).collect();
    for kind in ReferenceKind::ALL {
        let of_kind: Vec<&FieldRow> = rows.iter().filter(|row| row.kind == kind.as_str()).collect();
        if of_kind.is_empty() {
            continue;
        }
        let _ = write!(text, "\n{}\n", heading(kind));
        let mut listing = Listing::of(&of_kind).left_column("Name", "", |row| Cell::text(&row.name));
        // With a target, all listed entries are known to it.
        if on.is_none() && !matches!(kind, ReferenceKind::Function | ReferenceKind::Filter) {
            listing = listing.left_column("Rules on", "", |row| Cell::text(&row.on));
        }
        if matches!(kind, ReferenceKind::Field | ReferenceKind::Item | ReferenceKind::Window) {
            listing = listing.left_column("Unit", "", |row| Cell::text(row.unit));
        }
        listing = listing.left_column("Example", "", |row| Cell::text(&row.example));
        if matches!(kind, ReferenceKind::Field | ReferenceKind::Item | ReferenceKind::Window) {
            listing = listing.left_column("Endpoints", "", |row| Cell::text(row.endpoint_names()));
        }
        text.push_str(&listing.left_column("Description", "", |row| Cell::text(row.about)).table(width()));
    }
    text
}

fn heading(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field => "Fields, in conditions and templates",
        ReferenceKind::Item => "Fields of list items: allocations.exists(a, …), tokens.exists(t, …)",
        ReferenceKind::Recipient => "Recipient categories, in `standardAllocationName`",
        ReferenceKind::Change => "Change kinds, in `on` and `change.kind`",
        ReferenceKind::Window => "Windows, in conditions and templates",
        ReferenceKind::Function => "Functions of conditions",
        ReferenceKind::Filter => "Template filters",
        ReferenceKind::Variable => "Template variables",
    }
}

/// Formats the documentation page.
fn page() -> String {
    let mut page = "# Fields\n\n\
        The names that rules can use, with unit, example, and API endpoint. `cliffwatch fields` prints the same list;\n\
        `cliffwatch fields unlock.rescheduled` prints the names for rules with `on = \"unlock.rescheduled\"`. A field without a value is missing:\n\
        a comparison with it is neither true nor false. To learn how to write rules, see [rules.md](rules.md).\n\n\
        ## Targets\n\n| `on` | Description |\n|---|---|\n"
        .to_owned();
    for on in On::all().filter(|on| !matches!(on, On::Change(_, Some(_)))) {
        let _ = writeln!(page, "| `{on}` | {} |", describe_on(on));
    }
    let entries = reference(None);
    let of_resource = |resource| move |entry: &&ReferenceEntry| entry.known_by == KnownBy::Resource(resource);
    page.push_str("\n## Endpoints\n\n| Endpoint | Newest path |\n|---|---|\n");
    for endpoint in Endpoint::ALL {
        let _ = writeln!(page, "| `{endpoint}` | `{}` |", source::newest_path(endpoint));
    }
    for resource in Resource::ALL {
        let rows: Vec<&ReferenceEntry> = entries.iter().filter(of_resource(resource)).collect();
        let _ = write!(
            page,
            "\n## Fields of `{resource}`\n\nFor rules on `{resource}` and its changes. Endpoints: {}.\n\n",
            from(&rows)
        );
        page.push_str("| Field | Unit | Example | Description |\n|---|---|---|---|\n");
        for entry in rows {
            let _ = writeln!(page, "| `{}` | {} | {} | {} |", entry.name, entry.unit, code(&entry.example), entry.about);
        }
    }
    page.push_str(
        "\n## Other fields\n\n| Field | Rules on | Unit | Example | Endpoints | Description |\n|---|---|---|---|---|---|\n",
    );
    let beside = |entry: &&ReferenceEntry| entry.kind == ReferenceKind::Field && !matches!(entry.known_by, KnownBy::Resource(_));
    rows_with_targets(&mut page, entries.iter().filter(beside));
    for (kind, note) in [
        (ReferenceKind::Item, "Fields of the variable of `exists` and similar macros: `a` is an allocation, `t` a token."),
        (ReferenceKind::Window, "For rules on `token` and `portfolio`. The window length is in quotes."),
    ] {
        let _ = write!(page, "\n## {}\n\n{note}\n\n", title(kind));
        page.push_str("| Name | Rules on | Unit | Example | Endpoints | Description |\n|---|---|---|---|---|---|\n");
        rows_with_targets(&mut page, entries.iter().filter(|entry| entry.kind == kind));
    }
    for kind in [ReferenceKind::Recipient, ReferenceKind::Change, ReferenceKind::Variable] {
        let _ = write!(page, "\n## {}\n\n| Name | Rules on | Example | Description |\n|---|---|---|---|\n", title(kind));
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(page, "| `{}` | {} | {} | {} |", entry.name, entry.known_by, code(&entry.example), entry.about);
        }
    }
    for kind in [ReferenceKind::Function, ReferenceKind::Filter] {
        let _ = write!(page, "\n## {}\n\n| Name | Example | Description |\n|---|---|---|\n", title(kind));
        for entry in entries.iter().filter(|entry| entry.kind == kind) {
            let _ = writeln!(page, "| `{}` | {} | {} |", entry.name, code(&entry.example), entry.about);
        }
    }
    page
}

fn title(kind: ReferenceKind) -> &'static str {
    match kind {
        ReferenceKind::Field => "Fields",
        ReferenceKind::Item => "Fields of list items",
        ReferenceKind::Recipient => "Recipient categories",
        ReferenceKind::Change => "Change kinds",
        ReferenceKind::Window => "Windows",
        ReferenceKind::Function => "Functions",
        ReferenceKind::Filter => "Template filters",
        ReferenceKind::Variable => "Template variables",
    }
}

fn from(entries: &[&ReferenceEntry]) -> String {
    let endpoints = entries.first().map(|entry| entry.endpoints.as_slice()).unwrap_or_default();
    endpoints.iter().map(|endpoint| format!("`{endpoint}`")).collect::<Vec<_>>().join(", ")
}

fn rows_with_targets<'e>(page: &mut String, entries: impl Iterator<Item = &'e ReferenceEntry>) {
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

/// Formats code in a table cell, with escaped `|`.
fn code(text: &str) -> String {
    format!("`{}`", text.replace('|', "\\|"))
}

#[cfg(test)]
mod tests;
