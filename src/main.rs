//! The binary: everything is in the rooms, so that tests enter by the same door.

use std::process::ExitCode;

fn main() -> ExitCode {
    // The build script of this package tells the binary alone; the rooms ask the model.
    let (hash, date) = (env!("CLIFFWATCH_COMMIT"), env!("CLIFFWATCH_COMMIT_DATE"));
    cliffwatch::model::program::made_of(cliffwatch::model::program::ProgramCommit { hash, date });
    // Two TLS providers in one program panic, and so does none: this is the one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cliffwatch::cli::main()
}
