use std::process::ExitCode;

fn main() -> ExitCode {
    // Only this package has the build script's values, so the binary passes them on.
    let (hash, date) = (env!("CLIFFWATCH_COMMIT"), env!("CLIFFWATCH_COMMIT_DATE"));
    cliffwatch::model::program::set_commit(cliffwatch::model::program::ProgramCommit { hash, date });
    // rustls panics without a default TLS provider, and if two are installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    cliffwatch::cli::main()
}
