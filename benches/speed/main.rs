//! How fast and how large: `cargo bench --bench speed [-- SECTION…]`, where a section is `parse`, `diff`, `evaluate`, `commit`,
//! `deliver`, `cycle`, `backtest`, `scale`, `space`, `year` or `engines`.
//!
//! Each section prints rates, and beside them what the same work costs where only the bare minimum is done: the ratio between the
//! two says more than a time, which belongs to one machine. Best of several rounds, since whatever else a machine does only ever
//! adds. The records are the bundled schedules, and copies of them moved in time and scaled in size.

mod backtest;
mod commit;
mod cycle;
mod deliver;
mod diff;
mod engines;
mod evaluate;
mod made;
mod measure;
mod parse;
mod process;
mod scale;
mod space;
mod through;
mod upstream;
mod year;

use measure::Section;

fn main() -> anyhow::Result<()> {
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if wanted.first().is_some_and(|arg| arg == upstream::FLAG) {
        return upstream::serve(&wanted.split_off(1));
    }
    wanted.retain(|arg| !arg.starts_with("--"));
    let sections: [Section; 11] = [
        ("parse", parse::run),
        ("diff", diff::run),
        ("evaluate", evaluate::run),
        ("commit", commit::run),
        ("deliver", deliver::run),
        ("cycle", cycle::run),
        ("backtest", backtest::run),
        ("scale", scale::run),
        ("space", space::run),
        ("year", year::run),
        ("engines", engines::run),
    ];
    if let Some(unknown) = wanted.iter().find(|name| sections.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
        anyhow::bail!("no section {unknown:?}; there are {}", known.join(", "));
    }
    for (name, run) in sections {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            println!("\n{name}");
            run()?;
        }
    }
    Ok(())
}
