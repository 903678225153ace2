//! `schema [config|rules|tests]`: the JSON Schema of a file, for editors that complete and validate TOML.

use clap::{Args, ValueEnum};

use super::{Exit, print};
use crate::{config::load, rules, ruletest};

/// `schema`.
#[derive(Debug, Args)]
#[command(after_help = "An editor finds it by a first line such as\n  #:schema ./cliffwatch-rules.schema.json")]
pub(super) struct Schema {
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

pub(super) fn run(schema: &Schema) -> anyhow::Result<Exit> {
    let schema = match schema.of {
        Of::Config => load::schema(),
        Of::Rules => rules::schema::rules(),
        Of::Tests => ruletest::schema::tests(),
    };
    print::out(&print::json(&schema)?)?;
    Ok(Exit::Done)
}
