//! `silence add`, `update`, `list`, `expire`: manages silences. All commands work next to a running daemon.

use clap::{Args, Subcommand};

use super::parse::author;
use super::print::{self, Cell, Listing};
use super::{Exit, Invocation, OutputFormat, UsageError, parse_span, parse_time};
use daemon::token_names::resolve_matchers;
use model::{
    ActionOutcome, MatcherSets, Silence, SilencePreview, SilenceRequest, SilenceState, SilenceView, Timestamp, UserAction,
    config::Span, phrase, read_matchers, text::harmless,
};
use store::{Access, Store};

#[derive(Debug, Subcommand)]
pub(super) enum SilenceCommand {
    /// Suppress notifications of alerts with matching labels
    Add(AddSilenceArgs),
    /// Change the matchers, texts, or times of a silence that has not expired
    Update(UpdateSilenceArgs),
    /// List silences
    List(SilenceListArgs),
    /// End silences
    Expire {
        /// Ids of the silences
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("end").required(true).multiple(false))]
pub(super) struct AddSilenceArgs {
    /// Matchers, such as token=arbitrum (slug or ticker) or 'severity!~"critical|page"'; all must match
    #[arg(required = true, value_name = "MATCHER")]
    matchers: Vec<String>,
    /// Duration of the silence, such as 2h
    #[arg(long = "for", group = "end", value_name = "SPAN", value_parser = parse_span)]
    span: Option<Span>,
    /// End of the silence, such as 2026-03-09T12:00:00Z
    #[arg(long, group = "end", value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// Start of the silence; default: now
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// Reason, for other operators
    #[arg(long, value_name = "TEXT")]
    comment: String,
    /// Name of the author; without $USER: $LOGNAME, else `unknown user`
    #[arg(long, value_name = "NAME", env = "USER", hide_env_values = true, default_value = "")]
    author: String,
    /// List the affected alerts without adding the silence
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Args)]
pub(super) struct UpdateSilenceArgs {
    /// Id of the silence
    id: String,
    /// New matchers; without any, the matchers stay
    #[arg(value_name = "MATCHER")]
    matchers: Vec<String>,
    /// New duration from now, or from a later start, such as 2h
    #[arg(long = "for", value_name = "SPAN", value_parser = parse_span, conflicts_with = "until")]
    span: Option<Span>,
    /// New end, such as 2026-03-09T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    until: Option<Timestamp>,
    /// New start of a silence that has not begun
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<Timestamp>,
    /// New reason, for other operators
    #[arg(long, value_name = "TEXT")]
    comment: Option<String>,
    /// New name of the author
    #[arg(long, value_name = "NAME")]
    author: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct SilenceListArgs {
    /// Include expired silences
    #[arg(long)]
    all: bool,
}

pub(super) async fn run(command: &SilenceCommand, invocation: &Invocation) -> anyhow::Result<Exit> {
    let (config, _) = invocation.load_sections(&["store"])?;
    let is_read_only = match command {
        SilenceCommand::Add(add) => add.dry_run,
        SilenceCommand::List(_) => true,
        SilenceCommand::Update(_) | SilenceCommand::Expire { .. } => false,
    };
    let store = invocation.open(&config, if is_read_only { Access::Read } else { Access::Write }).await?;
    let exit = match command {
        SilenceCommand::Add(request) => add(request, &store, invocation).await,
        SilenceCommand::Update(request) => update(request, &store, invocation).await,
        SilenceCommand::List(list) => show(list, &store, invocation).await,
        SilenceCommand::Expire { ids } => expire(ids, &store, invocation).await,
    };
    store.close().await?;
    exit
}

/// Adds a silence, prints its id, and reports how many alerts it suppresses. A dry run stores nothing and lists these alerts.
///
/// # Errors
///
/// Fails with a usage error if a matcher, the author, or the time range is not valid.
async fn add(add: &AddSilenceArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let usage = |error: model::silence::SilenceError| anyhow::Error::from(UsageError(error.to_string()));
    let matchers = read_matchers(add.matchers.iter().map(String::as_str)).map_err(usage)?;
    let matchers = resolve_matchers(store, matchers).await.map_err(super::upcoming::usage)?;
    let begin = add.from.unwrap_or(now);
    let ends_at = match (add.until, add.span) {
        (Some(until), _) => until,
        (None, span) => SilenceRequest::end_after(begin, span.unwrap_or_default()),
    };
    let request =
        SilenceRequest { matchers, author: author(&add.author), comment: add.comment.clone(), starts_at: add.from, ends_at };
    let silence = request.into_silence(now).map_err(usage)?;
    let preview = store.preview(MatcherSets::new([silence.matchers.clone()]), now).await?;
    warn_about_typos(&silence, store).await?;
    if !add.dry_run {
        store.put_silence(silence.clone()).await?;
    }
    if invocation.format == OutputFormat::Json {
        let silence = (!add.dry_run).then(|| SilenceView::of(silence.clone(), now));
        print::out(&print::json(&serde_json::json!({ "silence": silence, "hides": preview }))?)?;
        return Ok(Exit::Done);
    }
    let begin = if silence.starts_at > now { format!("from {} ", phrase::instant(silence.starts_at)) } else { String::new() };
    let end = phrase::instant(silence.ends_at);
    let done = if add.dry_run { "would be silenced" } else { "silenced" };
    anstream::eprintln!("{} {done} {begin}until {end}: {}", harmless(&silence.matchers_line()), preview.sentence());
    if add.dry_run {
        print_preview(&preview, invocation)?;
    } else {
        // Only the id on standard output, for scripts that end the silence later.
        print::out(&format!("{}\n", silence.id))?;
    }
    Ok(Exit::Done)
}

/// Changes what the options give, and prints the id.
///
/// # Errors
///
/// Fails with a usage error if a value is not valid, or if no silence that has not expired has this id.
async fn update(update: &UpdateSilenceArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let usage = |error: model::silence::SilenceError| anyhow::Error::from(UsageError(error.to_string()));
    let unknown = || {
        let id = harmless(&update.id);
        anyhow::Error::from(UsageError(format!("no active or pending silence has the id {id}; run `cliffwatch silence list`")))
    };
    let former = store.silences(Some(now)).await?.into_iter().find(|silence| silence.id == update.id).ok_or_else(unknown)?;
    let matchers = match update.matchers.is_empty() {
        true => former.matchers.clone(),
        false => {
            let matchers = read_matchers(update.matchers.iter().map(String::as_str)).map_err(usage)?;
            resolve_matchers(store, matchers).await.map_err(super::upcoming::usage)?
        }
    };
    let ends_at = match (update.until, update.span) {
        (Some(until), _) => until,
        (None, Some(span)) => SilenceRequest::end_after(update.from.unwrap_or(former.starts_at).max(now), span),
        (None, None) => former.ends_at,
    };
    let request = SilenceRequest {
        matchers,
        author: update.author.clone().unwrap_or(former.author),
        comment: update.comment.clone().unwrap_or(former.comment),
        starts_at: update.from,
        ends_at,
    };
    match store.perform(UserAction::UpdateSilence { id: update.id.clone(), request }, now).await? {
        ActionOutcome::SilenceUpdated(silence) => {
            warn_about_typos(&silence, store).await?;
            let end = phrase::instant(silence.ends_at);
            anstream::eprintln!("{} silenced until {end}", harmless(&silence.matchers_line()));
            print::out(&format!("{}\n", silence.id))?;
            Ok(Exit::Done)
        }
        ActionOutcome::InvalidSilence(error) => Err(usage(error)),
        _ => Err(unknown()),
    }
}

/// Warns about labels and values that are probably misspelled. A silence may also precede its first alert, so they are no errors.
async fn warn_about_typos(silence: &Silence, store: &Store) -> anyhow::Result<()> {
    let labels = store.open_labels().await?;
    for matcher in &silence.matchers {
        let values: Vec<String> = match matcher.label() {
            "token" => store.token_ids(false).await?.iter().map(ToString::to_string).collect(),
            _ => Vec::new(),
        };
        if let Some(doubt) = matcher.doubt(&labels, &values) {
            anstream::eprintln!("warning: {}", harmless(&doubt));
        }
    }
    Ok(())
}

fn print_preview(preview: &SilencePreview, invocation: &Invocation) -> anyhow::Result<()> {
    let listing = Listing::of(&preview.alerts)
        .left_column("State", "state", |alert| Cell::text(alert.state))
        .left_column("Alert", "rule", |alert| Cell::text(&alert.rule))
        .left_column("Message", "summary", |alert| Cell::text(&alert.summary))
        .left_column("Id", "id", |alert| Cell::text(&alert.id));
    listing.print("no open alerts match", invocation)
}

async fn show(list: &SilenceListArgs, store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let silences = store.silences((!list.all).then_some(now)).await?;
    let silences: Vec<SilenceView> = silences.into_iter().map(|silence| SilenceView::of(silence, now)).collect();
    let listing = Listing::of(&silences)
        .left_column("Id", "id", |view| Cell::text(&view.silence.id))
        .left_column("State", "state", |view| Cell::text(view.state))
        .left_column("Matchers", "matchers", |view| Cell::text(view.silence.matchers_line()))
        .left_column("From", "startsAt", |view| Cell::time(Some(view.silence.starts_at)))
        .left_column("Until", "endsAt", |view| Cell::time(Some(view.silence.ends_at)))
        .left_column("Author", "author", |view| Cell::text(&view.silence.author))
        .left_column("Comment", "comment", |view| Cell::text(&view.silence.comment));
    let empty_reason = "no active silences; use --all to include expired ones";
    listing.print(empty_reason, invocation)?;
    Ok(Exit::Done)
}

async fn expire(ids: &[String], store: &Store, invocation: &Invocation) -> anyhow::Result<Exit> {
    let now = invocation.clock.now();
    let mut exit = Exit::Done;
    for id in ids {
        if store.expire_silence(id.clone(), now).await? {
            anstream::eprintln!("{} expired; suppressed alerts that still fire are sent now", harmless(id));
            continue;
        }
        let is_known = store
            .silences(None)
            .await?
            .into_iter()
            .any(|silence| silence.id == *id && silence.state(now) == SilenceState::Expired);
        let why = if is_known { "has already expired" } else { "is not a silence; run `cliffwatch silence list` to list ids" };
        anstream::eprintln!("error: {} {why}", harmless(id));
        exit = Exit::Failed;
    }
    Ok(exit)
}
