//! `routes test LABEL=VALUE…`: which receivers an alert with these labels would get.

use clap::{Args, Subcommand};

use super::{
    Context, Exit, UsageError,
    print::{Cell, Column, Listing},
};
use crate::{alert::Labels, route::{RouteTree, Sections}};

/// `routes`.
#[derive(Debug, Subcommand)]
pub(super) enum Routes {
    /// Show which receivers an alert with these labels would get
    Test(Test),
}

#[derive(Debug, Args)]
pub(super) struct Test {
    /// Labels of the alert, such as severity=critical
    #[arg(value_name = "LABEL=VALUE", value_parser = parse_label)]
    labels: Vec<(String, String)>,
}

pub(super) fn test(test: &Test, context: &Context) -> anyhow::Result<Exit> {
    let (config, _) = context.load()?;
    let tree = RouteTree::of(&Sections::from(&config)).map_err(|problems| {
        anyhow::anyhow!(problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>().join("; "))
    })?;
    let labels: Labels = test.labels.iter().cloned().collect();
    if labels.len() < test.labels.len() {
        return Err(UsageError("a label is given twice".to_owned()).into());
    }
    let receivers = tree.route(&labels);
    let rows = receivers.iter().map(|name| vec![Cell::text(name.as_str())]).collect();
    let columns = [Column("Receiver", "receiver", false)];
    Listing {
        columns: &columns,
        rows,
        json: &receivers,
        nothing: "nobody: no route takes these labels, and [route] names no receivers",
    }
    .print(context)?;
    Ok(Exit::Done)
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((label, value)) if !label.trim().is_empty() => {
            Ok((label.trim().to_owned(), value.trim().trim_matches('"').to_owned()))
        }
        _ => Err("write it like severity=critical".to_owned()),
    }
}
