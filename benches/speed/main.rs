//! Measures speed, memory, and disk use: `cargo bench --bench speed [-- SECTION…]`. The sections are `parse`, `diff`, `evaluate`,
//! `commit`, `deliver`, `load`, `cycle`, `backtest`, `scale`, `shipped`, `space`, `engines`, and `ratios`.
//! Without a section, all but `ratios` run.
//!
//! Where possible, a section compares the work with the bare minimum, because a ratio depends less on the machine than a time. The best of
//! several rounds counts, because other load only adds time. The data are the bundled schedules, and copies of them shifted in time and
//! scaled in size.

mod backtest;
mod commit;
mod cycle;
mod deliver;
mod diff;
mod engines;
mod evaluate;
mod load;
mod made;
mod measure;
mod parse;
mod process;
mod ratios;
mod scale;
mod shipped;
mod space;
mod through;
mod upstream;

use measure::Section;

fn main() -> anyhow::Result<()> {
    let mut wanted: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if wanted.first().is_some_and(|arg| arg == upstream::FLAG) {
        return upstream::serve(&wanted.split_off(1));
    }
    if wanted.first().is_some_and(|arg| arg == load::FLAG) {
        return load::serve(&wanted.split_off(1));
    }
    wanted.retain(|arg| !arg.starts_with("--"));
    let sections: [Section; 13] = [
        ("parse", parse::run),
        ("diff", diff::run),
        ("evaluate", evaluate::run),
        ("commit", commit::run),
        ("deliver", deliver::run),
        ("load", load::run),
        ("cycle", cycle::run),
        ("backtest", backtest::run),
        ("scale", scale::run),
        ("shipped", shipped::run),
        ("space", space::run),
        ("engines", engines::run),
        (ratios::NAME, ratios::run),
    ];
    if let Some(unknown) = wanted.iter().find(|name| sections.iter().all(|(known, _)| known != name)) {
        let known: Vec<&str> = sections.iter().map(|(name, _)| *name).collect();
        anyhow::bail!("unknown section {unknown:?}; expected one of {}", known.join(", "));
    }
    for (name, run) in sections {
        let is_default = wanted.is_empty() && name != ratios::NAME;
        if is_default || wanted.iter().any(|wanted| wanted == name) {
            println!("\n{name}");
            run()?;
        }
    }
    Ok(())
}
