use super::*;

#[test]
fn config_of_the_user_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cliffwatch.toml");
    std::fs::write(&path, "[watch]\n").expect("written");
    let unused = SocketAddr::from(([127, 0, 0, 1], 0));
    let addresses = DemoAddresses { source: unused, webhook: unused, mail: unused, listen: unused };
    let error = write_files(folder.path(), &addresses, "t").expect_err("rejected");
    assert!(error.to_string().contains("does not belong to the demo"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("unchanged"), "[watch]\n");
    std::fs::remove_file(&path).expect("removed");
    for _ in 0..2 {
        write_files(folder.path(), &addresses, "t").expect("the demo's own config is replaced");
    }
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "only the owner can read the token");
}
