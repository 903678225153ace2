use super::*;

#[test]
fn a_config_that_is_not_the_demos_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cliffwatch.toml");
    std::fs::write(&path, "[watch]\n").expect("written");
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let addresses = DemoAddresses { source: nowhere, webhook: nowhere, mail: nowhere, listen: nowhere };
    let error = write_files(folder.path(), &addresses, "t").expect_err("refused");
    assert!(error.to_string().contains("is not the demo's"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "[watch]\n");
    std::fs::remove_file(&path).expect("removed");
    for _ in 0..2 {
        write_files(folder.path(), &addresses, "t").expect("its own may be replaced");
    }
    let mode = std::fs::metadata(&path).expect("there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "the token in it is for its owner alone");
}
