//! `schema [config|rules|tests]`: the JSON Schema of a file, for editors that complete and validate TOML.

use clap::{Args, ValueEnum};

use super::{Exit, print};
use tools::ruletest;

/// `schema`.
#[derive(Debug, Args)]
#[command(after_help = "An editor finds it by a first line such as\n  #:schema ./cliffwatch-rules.schema.json")]
pub(super) struct SchemaArgs {
    /// Of which file
    #[arg(value_enum, default_value_t)]
    of: Of,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Of {
    /// `cliffwatch.toml`
    Config,
    /// Files of rules
    #[default]
    Rules,
    /// Files of rule tests
    Tests,
}

pub(super) fn run(schema: &SchemaArgs) -> anyhow::Result<Exit> {
    let schema = match schema.of {
        Of::Config => daemon::config::schema(),
        Of::Rules => rules::schema::rules(),
        Of::Tests => ruletest::schema::tests(&daemon::config::schema()),
    };
    print::out(&print::json(&schema)?)?;
    Ok(Exit::Done)
}
