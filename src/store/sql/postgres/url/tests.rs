use super::*;

#[test]
fn name_has_no_password() {
    let place = PostgresUrl::from_url("postgres://me:hunter2@db.example:6432/watch", None).expect("a place");
    assert_eq!(place.name(), Path::new("postgres://db.example:6432/watch"));
    assert!(!format!("{place:?}").contains("hunter2"));
    assert_eq!(place.without_password(), "postgres://me@db.example:6432/watch");
}

#[test]
fn name_lists_each_server_with_its_port() {
    let name = |url: &str| PostgresUrl::from_url(url, None).expect("a place").name().display().to_string();
    let two = "postgres://me@one.example:5432,two.example:6432/watch?target_session_attrs=read-write";
    assert_eq!(name(two), "postgres://one.example:5432,two.example:6432/watch");
    assert_eq!(name("postgres://me@one.example,two.example/watch"), "postgres://one.example:5432,two.example:5432/watch");
}

#[test]
fn remote_connections_are_encrypted() {
    let mode = |url: &str| PostgresUrl::from_url(url, None).expect("a place").config.get_ssl_mode();
    assert_eq!(mode("postgres://me@db.example/watch"), SslMode::Require);
    assert_eq!(mode("postgres://me@db.example/watch?sslmode=prefer"), SslMode::Require);
    assert_eq!(mode("postgres://me@db.example/watch?sslmode=disable"), SslMode::Disable);
    assert_eq!(mode("postgres://me@127.0.0.1/watch"), SslMode::Disable);
    assert_eq!(mode("postgres://me@%2Frun%2Fpostgresql/watch"), SslMode::Disable);
    assert_eq!(mode("postgres://me@127.0.0.1/watch?sslmode=require"), SslMode::Require);
}

#[test]
fn libpq_certificate_parameters_are_supported() {
    let of = |url: &str| PostgresUrl::from_url(url, Some(Path::new("/config.pem"))).expect("a place");
    for (url, mode, file) in [
        ("postgres://me@db.example/watch?sslmode=verify-full", SslMode::Require, "/config.pem"),
        ("postgres://me@db.example/watch?sslmode=verify-ca&sslrootcert=%2Fetc%2Fca.pem", SslMode::Require, "/etc/ca.pem"),
        ("postgres://me@127.0.0.1/watch?sslrootcert=/a%20b.pem&sslmode=verify-full", SslMode::Require, "/a b.pem"),
        ("postgres://me@127.0.0.1/watch?sslrootcert=system", SslMode::Disable, "/config.pem"),
    ] {
        let place = of(url);
        assert_eq!((place.config.get_ssl_mode(), place.ca_file.as_deref()), (mode, Some(Path::new(file))), "{url}");
    }
}

#[test]
fn servers_are_tried_separately_and_last_accepting_one_first() {
    let url =
        "postgres://me:secret@one.example:5432,two.example:6432/watch?target_session_attrs=read-write&options=-csearch_path%3Dx";
    let place = PostgresUrl::from_url(url, None).expect("a place");
    let both: Vec<_> = place.servers().iter().map(|server| (server.get_hosts().to_vec(), server.get_ports().to_vec())).collect();
    let host = |name: &str| vec![Host::Tcp(name.to_owned())];
    assert_eq!(both, [(host("one.example"), vec![5432]), (host("two.example"), vec![6432])]);
    for server in place.servers() {
        let (alone, all) = (server, &place.config);
        assert_eq!(
            (alone.get_user(), alone.get_password(), alone.get_dbname()),
            (all.get_user(), all.get_password(), all.get_dbname())
        );
        assert_eq!((alone.get_options(), alone.get_target_session_attrs()), (all.get_options(), all.get_target_session_attrs()));
        assert_eq!((alone.get_ssl_mode(), alone.get_connect_timeout()), (all.get_ssl_mode(), all.get_connect_timeout()));
    }
    let turns = || place.connection_order().collect::<Vec<_>>();
    assert_eq!(turns(), [0, 1]);
    place.mark_accepted(1);
    assert_eq!(turns(), [1, 0]);
    assert!(place.is_superseded(0) && !place.is_superseded(1));
    place.avoid(0);
    assert_eq!(turns(), [1, 0], "server 0 was not first anyway");
    place.avoid(1);
    assert_eq!(turns(), [0, 1]);
    assert!(!place.is_superseded(1), "no other server accepted a connection");
}

#[test]
fn invalid_url_is_rejected_without_repeating_it() {
    for url in ["", "watch", "mysql://me:hunter2@db/x", "postgres://me:hunter2@db/x?port=many"] {
        let error = PostgresUrl::from_url(url, None).expect_err("refused");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
