use super::*;

#[test]
fn config_of_the_user_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cliffwatch.toml");
    std::fs::write(&path, "[watch]\n").expect("written");
    let unused = SocketAddr::from(([127, 0, 0, 1], 0));
    let addresses = DemoAddresses { source: unused, webhook: unused, mail: unused, listen: unused };
    let error = write_files(folder.path(), &addresses, "t", Timestamp::UNIX_EPOCH).expect_err("rejected");
    assert!(error.to_string().contains("does not belong to the demo"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("unchanged"), "[watch]\n");
    std::fs::remove_file(&path).expect("removed");
    for _ in 0..2 {
        write_files(folder.path(), &addresses, "t", Timestamp::UNIX_EPOCH).expect("the demo's own config is replaced");
    }
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "only the owner can read the token");
}

#[test]
fn demo_has_positions_and_a_digest_soon() {
    let folder = tempfile::tempdir().expect("a folder");
    let address = SocketAddr::from(([127, 0, 0, 1], 9797));
    let addresses = DemoAddresses { source: address, webhook: address, mail: address, listen: address };
    let now = "2026-03-09T23:58:30Z".parse().expect("a time");
    write_files(folder.path(), &addresses, "t", now).expect("written");
    let loaded = daemon::config::load(Some(&folder.path().join("cliffwatch.toml")), &daemon::config::Environment::default());
    let config = loaded.config.expect("a valid config");
    assert!(loaded.diagnostics.is_empty(), "{:?}", loaded.diagnostics);
    let digest = config.receivers.iter().find_map(|receiver| receiver.digest.as_ref()).expect("a digest");
    assert_eq!((digest.at.as_str(), digest.positions), ("00:00", true));
    assert_eq!(config.watch.positions.stated.len(), config.watch.groups["portfolio"].len());
}
