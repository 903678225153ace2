use super::*;

#[test]
fn a_config_that_is_not_the_demos_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("cliffwatch.toml");
    std::fs::write(&path, "[watch]\n").expect("written");
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let error = write_files(folder.path(), nowhere, nowhere, nowhere, nowhere).expect_err("refused");
    assert!(error.to_string().contains("is not the demo's"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).expect("still there"), "[watch]\n");
    std::fs::remove_file(&path).expect("removed");
    for _ in 0..2 {
        write_files(folder.path(), nowhere, nowhere, nowhere, nowhere).expect("its own may be replaced");
    }
}
