//! `schema [config|rules|tests]` prints the JSON Schema of a file, for editors that complete and validate TOML. `schema webhook
//! [TYPE]` prints the JSON Schema of webhook bodies.

use clap::{Args, ValueEnum};

use super::{Exit, UsageError, print};
use model::{NotificationKind, closest};
use tools::ruletest;

#[derive(Debug, Args)]
#[command(after_help = "An editor finds it by a first line such as\n  #:schema ./cliffwatch-rules.schema.json")]
pub(super) struct SchemaArgs {
    /// The kind of file or message to describe
    #[arg(value_enum, default_value_t)]
    of: Of,
    /// For `webhook`: only bodies of this type, such as alert.firing
    #[arg(value_name = "TYPE")]
    kind: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Of {
    /// `cliffwatch.toml`
    Config,
    /// Rule files
    #[default]
    Rules,
    /// Files of rule tests
    Tests,
    /// Bodies of webhooks with `format = "cliffwatch"`
    Webhook,
}

pub(super) fn run(schema: &SchemaArgs) -> anyhow::Result<Exit> {
    let kind = match (&schema.kind, schema.of) {
        (Some(word), Of::Webhook) => Some(kind_of(word)?),
        (Some(_), _) => return Err(UsageError("only `schema webhook` takes a type".to_owned()).into()),
        (None, _) => None,
    };
    let schema = match schema.of {
        Of::Config => daemon::config::schema(),
        Of::Rules => rules::schema::rules(),
        Of::Tests => ruletest::schema::tests(&daemon::config::schema()),
        Of::Webhook => notify::webhook_schema(kind),
    };
    print::out(&print::json(&schema)?)?;
    Ok(Exit::Done)
}

fn kind_of(word: &str) -> Result<NotificationKind, UsageError> {
    let words = NotificationKind::ALL.map(NotificationKind::as_str);
    NotificationKind::parse(word).ok_or_else(|| {
        let near = closest(word, words).map(|near| format!("; did you mean {near:?}?"));
        UsageError(format!(
            "{word:?} is not a valid message type: expected one of {}{}",
            words.join(", "),
            near.unwrap_or_default()
        ))
    })
}
