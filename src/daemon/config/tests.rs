use super::*;
use model::diagnostic;

const RECEIVERS: &str = r#"
[[receiver]]
name = "desk"
type = "email"
smtp = "smtp://mail.example.com:587"
from = "Cliffwatch <alerts@example.com>"
to = ["desk@example.com"]

[[receiver]]
name = "ops"
type = "webhook"
url = "https://example.com/hook"

[route]
receivers = ["ops"]
[[route.routes]]
matchers = ['severity="critical"']
receivers = ["ops", "desk"]
"#;

fn environment(variables: &[(&str, &str)]) -> Environment {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Environment { variables, credentials: None }
}

fn load_plain(text: &str) -> Loaded {
    load_text(Some(Path::new("cliffwatch.toml")), text, &Environment::default())
}

fn page(loaded: &Loaded) -> String {
    diagnostic::render(&loaded.diagnostics, &loaded.sources, false)
}

#[test]
fn defaults_are_a_valid_config() {
    let loaded = load_text(None, "", &Environment::default());
    assert_eq!(page(&loaded), "");
    let config = loaded.config.expect("a config");
    assert_eq!(config.delivery.retry.len(), 11);
    assert_eq!(config.source.max_body.0, 16 << 20);
    assert_eq!(config.store.path, Path::new("cliffwatch.db"));
    let text: String = model::config::SECTIONS
        .iter()
        .map(|section| {
            let defaults = section.keys.iter().filter_map(|key| Some((key.name, Config::default_of(section.name, key.name)?)));
            let lines: String = defaults.map(|(key, value)| format!("{key} = {value}\n")).collect();
            format!("[{}]\n{lines}", section.name)
        })
        .collect();
    assert_eq!(page(&load_plain(&text)), "", "each default is a value that its key accepts");
}

#[test]
fn receiver_that_no_other_one_reports_is_a_warning() {
    let receivers = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://example.com/x\"\n\
                     [[receiver]]\nname = \"desk\"\ntype = \"webhook\"\nurl = \"https://example.com/y\"\n";
    let lone = page(&load_plain(&format!("{receivers}[route]\nreceivers = [\"ops\"]\n")));
    assert!(lone.contains("if the receiver \"ops\" fails, no one is notified") && lone.ends_with("\n1 warning\n"), "{lone}");
    for route in [
        "",
        "[route]\nreceivers = [\"ops\"]\nfallback = [\"desk\"]\n",
        "[route]\nreceivers = [\"ops\"]\n[[route.routes]]\nmatchers = ['severity=\"critical\"']\nreceivers = [\"desk\"]\n",
    ] {
        assert_eq!(page(&load_plain(&format!("{receivers}{route}"))), "");
    }
}

#[test]
fn message_types_of_a_receiver_are_checked() {
    let receiver = |more: &str| {
        page(&load_plain(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://example.com/x\"\n{more}\n")))
    };
    assert_eq!(receiver("types = [\"alert.firing\", \"alert.resolved\", \"source\"]"), "");
    for (more, said) in [
        ("types = [\"alert.fireing\", \"source\"]", "did you mean \"alert.firing\"?"),
        ("types = [\"test\", \"source\"]", "`types` cannot be \"test\""),
        ("types = []", "`types` is empty: nothing would be sent"),
        ("types = [\"alert.firing\"]", "no receiver gets messages about problems of the source"),
        ("types = [\"source\"]\ndigest = { at = \"08:00\" }", "ops has a `digest`, which its `types` leave out"),
    ] {
        let found = receiver(more);
        assert!(found.contains(said), "{more}: {found}");
    }
}

#[test]
fn environment_overrides_file_and_file_overrides_defaults() {
    let text = "[source]\ntimeout = \"20s\"\npage_size = 50\n[watch]\ntokens = [\"aptos\"]\n";
    let variables = [
        ("CLIFFWATCH_SOURCE__PAGE_SIZE", "25"),
        ("CLIFFWATCH_SOURCE__API_KEY", "12345678"),
        ("CLIFFWATCH_WATCH__TOKENS", "arbitrum, sui"),
        ("CLIFFWATCH_WATCH__GROUPS__PORTFOLIO", "[\"aptos\"]"),
        ("CLIFFWATCH_DELIVERY__RETRY", "0s,1m"),
        ("CLIFFWATCH_ROUTE", "{ receivers = [\"ops\"] }"),
        ("CLIFFWATCH_RECEIVER", "[{ name = \"ops\", type = \"webhook\", url = \"https://example.com/x\" }]"),
        ("CLIFFWATCH_CONFIG", "/elsewhere"),
        ("OTHER_SOURCE__PAGE_SIZE", "1"),
    ];
    let loaded = load_text(Some(Path::new("/etc/cliffwatch/cliffwatch.toml")), text, &environment(&variables));
    assert_eq!(page(&loaded), "");
    let config = loaded.config.expect("a config");
    assert_eq!(config.source.page_size, 25);
    assert_eq!(config.source.timeout.0.as_secs(), 20);
    assert_eq!(config.source.connect_timeout.0.as_secs(), 10);
    assert_eq!(config.source.api_key.as_ref().map(model::config::SecretText::expose), Some("12345678"));
    assert_eq!(config.watch.tokens, ["arbitrum", "sui"]);
    assert_eq!(config.watch.groups["portfolio"], ["aptos"]);
    assert_eq!(config.delivery.retry.len(), 2);
    assert_eq!(config.receivers[0].name, "ops");
    assert_eq!(config.store.path, Path::new("/etc/cliffwatch/cliffwatch.db"));
    assert_eq!(config.rules.paths, ["rules/*.toml"], "read_files resolves them");
}

#[test]
fn each_format_accepts_its_own_keys() {
    let text = r#"
[[receiver]]
name = "chat"
type = "webhook"
format = "telegram"
token = "123456:AAbbCC"
chat_id = -1001234567890
thread_id = 7

[[receiver]]
name = "pager"
type = "webhook"
format = "pagerduty"
routing_key_file = "pager-key"

[[receiver]]
name = "push"
type = "webhook"
format = "ntfy"
url = "https://ntfy.example.com"
topic = "desk-7f3a"
token = "tk_x"

[[receiver]]
name = "own"
type = "webhook"
format = "template"
url = "https://example.com/own"
template = '{"text": {{ title }}}'

[route]
receivers = ["chat", "pager", "push", "own"]
"#;
    let loaded = load_text(Some(Path::new("/etc/cliffwatch/cliffwatch.toml")), text, &Environment::default());
    let config = loaded.config.as_ref().unwrap_or_else(|| panic!("{}", page(&loaded)));
    assert_eq!(config.receivers[0].format_text("chat_id"), Some("-1001234567890"));
    assert_eq!(config.receivers[0].format_text("thread_id"), Some("7"));
    assert_eq!(config.receivers[1].format_text("routing_key_file"), Some("/etc/cliffwatch/pager-key"));
    let shown = page(&loaded);
    assert!(!shown.contains("error") && shown.contains("pager-key does not exist"), "{shown}");
    for secret in ["AAbbCC", "desk-7f3a", "tk_x"] {
        assert!(!format!("{config:?}").contains(secret) && !shown.contains(secret), "{secret}");
    }
}

#[test]
fn template_file_is_checked_at_load() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "[route]\nreceivers = [\"own\"]\n[[receiver]]\nname = \"own\"\ntype = \"webhook\"\nformat = \"template\"\n\
                url = \"https://example.com/own\"\ntemplate_file = \"body.json\"\n";
    let load = || load_text(Some(&folder.path().join("cliffwatch.toml")), text, &Environment::default());
    assert!(load().config.is_none() && page(&load()).contains("cannot read"), "{}", page(&load()));
    std::fs::write(folder.path().join("body.json"), "{\n  \"text\": {{ titel }}\n}\n").expect("written");
    let shown = page(&load());
    assert!(load().config.is_none() && shown.contains("line 2 of the template") && shown.contains(":8:"), "{shown}");
    std::fs::write(folder.path().join("body.json"), "{\n  \"text\": {{ title }}\n}\n").expect("written");
    assert!(load().config.is_some(), "{}", page(&load()));
}

/// Reports of each kind of mistake. Each report in the snapshot must name the location and a fix.
#[test]
fn mistakes_are_reported_with_location_and_suggestion() {
    let table: &[(&str, &str)] = &[
        ("a key", "[source]\nbase_urll = \"https://api.example.com\"\n"),
        ("a section", "[wacth]\ntokens = [\"*\"]\n"),
        ("a key in the wrong section", "[source]\nlisten = \"127.0.0.1:1\"\n"),
        ("a key at top level", "api_key_file = \"/run/key\"\n"),
        (
            "required and unknown keys of formats",
            "[route]\nreceivers = [\"a\"]\n\
             [[receiver]]\nname = \"a\"\ntype = \"webhook\"\nformat = \"telegram\"\nsecret = \"x\"\n\
             [[receiver]]\nname = \"b\"\ntype = \"webhook\"\nformat = \"slak\"\nurl = \"https://hooks.example.com/1\"\n\
             [[receiver]]\nname = \"c\"\ntype = \"webhook\"\nformat = \"slack\"\nchat_id = 5\n\
             [[receiver]]\nname = \"d\"\ntype = \"webhook\"\nformat = \"pagerduty\"\nrouting_key = \"\"\n\
             [[receiver]]\nname = \"e\"\ntype = \"email\"\ntopic = \"secret-topic\"\nsmtp = \"smtps://mail.example.com\"\n\
             from = \"a@example.com\"\nto = [\"b@example.com\"]\n\
             [[receiver]]\nname = \"f\"\ntype = \"webhook\"\nformat = \"template\"\nurl = \"https://example.com/f\"\n\
             template = '{\"a\": \"{{ title }}\"}'\n",
        ),
        ("a type", "[source]\ntimeout = 30\nconcurrency = \"4\"\npage_size = [100]\n"),
        ("a duration", "[source]\ntimeout = \"30 secnds\"\nconnect_timeout = \"0s\"\n"),
        ("a percentage and a size", "[budget]\nreserve = \"110%\"\n[source]\nmax_body = \"16 megs\"\n"),
        ("a version", "[source]\nburn = \"v3\"\nupcoming = \"5\"\nunlock_events = \"latest\"\n"),
        ("a cron pattern with five fields", "[schedule]\nburn = \"*/5 * * * *\"\n"),
        ("a cron hour", "[schedule]\nburn = \"0 0 25 * * *\"\n"),
        ("a cron word", "[schedule]\nburn = \"0 0 0 * * FRY\"\nbuyback = \"of\"\n"),
        ("a cron list with an empty item", "[schedule]\nburn = \", 20 */6 * * *\"\n"),
        ("a cron pattern that never matches", "[schedule]\nburn = \"0 0 9 31 2 *\"\n"),
        ("a cron pattern that is false", "[schedule]\nburn = false\n"),
        ("two emission endpoints", "[schedule]\ndaily_emission = \"0 0 3 * * *\"\nweekly_emission = \"0 0 4 * * 1\"\n"),
        ("globs without the token list", "[watch]\ntokens = [\"aptos\", \"arb*\"]\n[schedule]\ntoken_list = \"off\"\n"),
        ("a zone", "[schedule]\ntimezone = \"Europe/Pariss\"\n"),
        ("a city", "[schedule]\ntimezone = \"new york\"\n"),
        ("plain http", "[source]\nbase_url = \"http://api.example.com\"\nlegacy_base_url = \"api.example.com\"\n"),
        ("an address to listen on", "[http]\nlisten = \"9797\"\n"),
        (
            "origins",
            "[http]\ncors_origins = [\"*\", \"desk.example.com\", \"https://Desk.example.com:443/app/\", \"null\", \"ftp://x\", \"https://*.example.com\", \"http://localhost:3000\"]\n",
        ),
        ("a single origin", "[http]\ncors_origins = \"https://desk.example.com\"\n"),
        ("a header without proxies", "[http]\nuser_header = \"X-Forwarded-User\"\n"),
        ("proxies without a header", "[http]\ntrusted_proxies = [\"127.0.0.1\", \"10.0.0.0/8\"]\nuser_role = \"operator\"\n"),
        ("the name of a header", "[http]\nuser_header = \"Forwarded User\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n"),
        ("an address beyond loopback", "[http]\nlisten = \"0.0.0.0:9797\"\n"),
        ("a log level", "[log]\nlevel = \"inof\"\nformat = \"jsn\"\n"),
        ("a group", "[watch]\ntokens = [\"@portfolio\", \"Aptos Labs\", \"a[\"]\ngroups = { \"my tokens\" = \"aptos\" }\n"),
        ("an empty receiver", "[[receiver]]\n"),
        ("a receiver type", "[[receiver]]\nname = \"ops\"\ntype = \"webhok\"\n"),
        (
            "a receiver's key",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://example.com\"\nsmpt = \"x\"\nsmtp = \"smtp://x\"\n",
        ),
        (
            "an email receiver",
            "[[receiver]]\nname = \"desk\"\ntype = \"email\"\nsmtp = \"mail.example.com\"\nfrom = \"alerts\"\nto = [\"a b@c\"]\nusername = \"x\"\n[route]\nreceivers = [\"desk\"]\n",
        ),
        (
            "a program",
            "[route]\nreceivers = [\"a\"]\n\
             [[receiver]]\nname = \"a\"\ntype = \"exec\"\n\
             [[receiver]]\nname = \"b\"\ntype = \"exec\"\ncommand = \"aws sns publish\"\nargs = [\"--message\", \"{{ summary }}\"]\n\
             tls_ca_file = \"/dev/null\"\nurl = \"https://example.com\"\n\
             [[receiver]]\nname = \"c\"\ntype = \"webhook\"\nurl = \"https://example.com\"\ncomand = \"/bin/true\"\nargs = [1, \"a\\u0000b\"]\n\
             [[receiver]]\nname = \"d\"\ntype = \"exec\"\ncommand = \"/bin/true\\u0000\"\nargs = [\"a\\u0000b\"]\nconcurrency = 0\n",
        ),
        ("single brackets", "[receiver]\nname = \"ops\"\n"),
        (
            "two receivers of one name",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\n[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://b.example\"\n[route]\nreceivers = [\"opps\"]\n",
        ),
        ("a route", "[route]\nreceivers = \"ops\"\nmatchers = [\"a=b\"]\n[[route.routes]]\nmatcher = []\n"),
        ("a matcher", "[[route.routes]]\nmatchers = [\"severity=~'a(\", \"severity\"]\n[source]\nburn = \"v3\"\n"),
        (
            "a group and a time",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\ndigest = { att = \"08:00\", timezone = \"Paris\" }\n[route]\nreceivers = [\"ops\"]\ngroup_by = [\"token\", \"...\"]\ngroup_wait = 30\nmute_time_intervals = [\"nights\"]\n[[route.routes]]\nmatchers = [\"a=b\"]\nmute_time_intervals = [\"night\"]\n[[time_intervals]]\nname = \"nights\"\ntime_intervals = [{ times = [{ start_time = \"22:00\", end_time = \"07:00\" }], weekdys = [] }]\n",
        ),
        (
            "an inhibition",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\n[route]\nreceivers = [\"ops\"]\n[inhibit_rules]\nequal = [\"token\"]\n",
        ),
        (
            "an inhibition of everything",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\n[route]\nreceivers = [\"ops\"]\n[[inhibit_rules]]\nsource_matchers = [\"severity==critical\"]\nequal = [\"token\"]\n",
        ),
        (
            "a route without receivers",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\n[route]\ngroup_by = [\"token\"]\n",
        ),
        (
            "a network",
            "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"https://a.example\"\nallow_networks = [\"10.0.0.0/33\"]\n[route]\nreceivers = [\"ops\"]\n",
        ),
        ("a count", "[store]\nremoval_confirmations = 0\ntolerance = 2\n[budget]\nmonthly_credits = -1\n"),
        ("broken TOML", "[source]\ntimeout = \"30s\nburn = \"v3\"\n[watch\ntokens = [\n"),
        ("a key twice", "[source]\nburn = \"v1\"\nburn = \"v5\"\n"),
        ("a missing file", "[source]\napi_key_file = \"/nowhere/api-key\"\n"),
        ("a secret in a shell variable", "[source]\napi_key = \"${KEY}\"\n"),
        ("a secret twice", "[source]\napi_key = \"x\"\napi_key_file = \"/dev/null\"\n"),
    ];
    let mut golden = String::new();
    for (what, text) in table {
        let loaded = load_plain(text);
        assert!(!loaded.diagnostics.is_empty(), "{what} passed");
        golden.push_str(&format!("━━ {what}\n{}\n", page(&loaded)));
    }
    insta::assert_snapshot!(golden);
}

/// The client rejects these names as well: a resolver may send them elsewhere.
#[test]
fn plain_http_to_names_below_localhost_needs_a_network() {
    let url = "[source]\nbase_url = \"http://api.localhost:8080\"\nlegacy_base_url = \"http://localhost:8080\"\n";
    let errors =
        |text: &str| load_plain(text).diagnostics.iter().filter(|problem| problem.message.contains("plain http")).count();
    assert_eq!(errors(url), 1);
    assert_eq!(errors(&format!("{url}allow_http_networks = [\"127.0.0.0/8\"]\n")), 0);
}

#[test]
fn environment_is_checked_like_the_file() {
    let variables = [
        ("CLIFFWATCH_SOURCE__TIMEOT", "30s"),
        ("CLIFFWATCH_SOURCE__TIMEOUT", "thirty"),
        ("CLIFFWATCH_SOURCE__CONCURRENCY", "many"),
        ("CLIFFWATCH_API_KEY", "secret-in-the-wrong-place"),
        ("CLIFFWATCH_HOME", "/opt"),
        ("CLIFFWATCH_SCHEDULE__BURN", "0 0 25 * * *"),
    ];
    let loaded = load_text(Some(Path::new("cliffwatch.toml")), "", &environment(&variables));
    assert!(loaded.config.is_none());
    insta::assert_snapshot!(page(&loaded));
}

#[test]
fn programs_are_allowed_in_the_file_only() {
    let exec = "[{ name = \"ops\", type = \"exec\", command = \"/usr/bin/true\" }]";
    let loaded = load_text(None, "[route]\nreceivers = [\"ops\"]\n", &environment(&[("CLIFFWATCH_RECEIVER", exec)]));
    assert!(loaded.has_errors() && page(&loaded).contains("not allowed in the environment"), "{}", page(&loaded));
    let text = format!("receiver = {exec}\n[route]\nreceivers = [\"ops\"]\n");
    let loaded = load_plain(&text);
    assert_eq!(page(&loaded), "");
    let receiver = &loaded.config.expect("a config").receivers[0];
    assert_eq!((receiver.command.as_deref(), receiver.concurrency), (Some(Path::new("/usr/bin/true")), None));
    // The daemon sets these variables for the program of a receiver, which may call `cliffwatch`.
    let variables = [
        ("CLIFFWATCH_WEBHOOK_ID", "msg_1"),
        ("CLIFFWATCH_ATTEMPT", "1"),
        ("CLIFFWATCH_STATUS", "firing"),
        ("CLIFFWATCH_SEVERITY", ""),
    ];
    assert_eq!(page(&load_text(None, "", &environment(&variables))), "");
}

#[test]
fn all_problems_are_reported_at_once() {
    let text = "[source]\nburn = \"v3\"\n[schedule]\nburn = \"x\"\n[http]\nlisten = \"x\"\n[[receiver]]\nname = 3\n[nope]\n";
    let lines: Vec<usize> = load_plain(text)
        .diagnostics
        .iter()
        .filter_map(|problem| problem.span.as_ref())
        .map(|span| diagnostic::position(text, span).line)
        .collect();
    for line in [2, 4, 6, 8, 9] {
        assert!(lines.contains(&line), "line {line} is missing in {lines:?}");
    }
}

#[test]
fn relative_paths_start_from_the_config_directory() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cliffwatch.toml");
    std::fs::write(directory.path().join("key"), "k").unwrap();
    std::fs::set_permissions(directory.path().join("key"), std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    std::fs::write(&path, "[source]\napi_key_file = \"key\"\n[store]\npath = \"state/db\"\n").unwrap();
    let loaded = load(Some(&path), &Environment::default());
    assert_eq!(page(&loaded), "");
    let config = loaded.config.unwrap();
    assert_eq!(config.store.path, directory.path().join("state/db"));
    assert_eq!(config.source.api_key_file, Some(directory.path().join("key")));
}

#[test]
fn digest_of_an_unknown_group_is_an_error() {
    let text = |tokens: &str| {
        format!(
            "[watch]\ntokens = [\"arbitrum\"]\n[watch.groups]\nportfolio = [\"arbitrum\"]\n[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\n\
             url = \"http://127.0.0.1:9/x\"\ndigest = {{ at = \"08:00\", sort = \"share\", top = 10, min_value = 1000000, tokens = {tokens} }}\n"
        )
    };
    let loaded = load_plain(&text("[\"@portfolio\", \"apt*\"]"));
    assert_eq!(page(&loaded), "");
    let digest = loaded.config.expect("a config").receivers.remove(0).digest.expect("a digest");
    assert_eq!((digest.sort, digest.top, digest.min_value), (model::DigestOrder::Share, Some(10), Some(1_000_000)));
    let shown = page(&load_plain(&text("[\"arbitrum\", \"@portfoio\"]")));
    assert!(
        shown.contains("the group \"@portfoio\" is not in [watch.groups]") && shown.contains("did you mean \"@portfolio\"?"),
        "{shown}"
    );
    let shown = page(&load_plain(&text("[]").replace("\"share\"", "\"size\"")));
    assert!(shown.contains("cliffwatch.toml:9") || shown.contains("sort"), "{shown}");
}

#[test]
fn secret_in_a_config_that_all_users_can_read_is_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("cliffwatch.toml");
    let hook = |url: &str| {
        format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{url}\"\n[route]\nreceivers = [\"ops\"]\n")
    };
    let warnings = |text: &str, mode: u32| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        page(&load(Some(&path), &Environment::default()))
    };
    let shown = warnings(&hook("https://hooks.example.com/T0/xyz"), 0o644);
    assert!(shown.contains("cliffwatch.toml:4:1") && shown.contains("set `url_file`") && !shown.contains("xyz"), "{shown}");
    assert!(warnings("[source]\napi_key = \"k1\"\n", 0o604).contains("`api_key` is a secret"));
    assert_eq!(warnings("[source]\napi_key = \"k1\"\n", 0o640), "");
    assert_eq!(warnings(&hook("http://127.0.0.1:9000/hook"), 0o644), "");
    assert_eq!(warnings("[source]\nbase_url = \"https://api.example.com\"\n", 0o644), "");
}

#[test]
fn credential_replaces_secret_key() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("ops-url"), "https://example.com/x").unwrap();
    let text = "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\n[route]\nreceivers = [\"ops\"]\n";
    let with = Environment { variables: Vec::new(), credentials: Some(directory.path().to_owned()) };
    assert!(load_text(Some(Path::new("c.toml")), text, &with).config.is_some());
    assert_eq!(page(&load_text(Some(Path::new("c.toml")), text, &with)), "");
    // The service may have a credential that this process cannot see, so this is no error.
    let beside = load_plain(text);
    assert!(page(&beside).contains("warning: this receiver has no `url`") && beside.config.is_some(), "{}", page(&beside));
}

#[test]
fn unreadable_config_is_reported_with_help() {
    let loaded = load(Some(Path::new("/nowhere/cliffwatch.toml")), &Environment::default());
    assert!(loaded.config.is_none());
    assert!(page(&loaded).contains("cliffwatch init"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, b"[source]\n\xff\xfe").unwrap();
    assert!(page(&load(Some(&path), &Environment::default())).contains("not UTF-8 text: line 2"));
}

/// Configs in which `@` stands for a secret: valid, invalid, broken, misspelled, and commented out.
const CONFIGS_WITH_SECRETS: &[&str] = &[
    "[source]\napi_key = \"@\"\nbase_url = 3\ntimeout = 3\n",
    "[source]\napi_keyy = \"@\"\n",
    "[source]\napikey = '@'\ntimeout = 3\n",
    "[source]\napi_key = \"@\ntimeout = 3\n",
    "[source]\ntimeout = 3\napi_key \"@\"\nburn = \"v3\"\n",
    "[source]\napi_key = @\ntimeout = \"x\"\n",
    "[source]\napi_key = [\"@\"]\n",
    "[source]\napi_key = { x = \"@\" }\n",
    "[source.api_key]\nx = \"@\"\n",
    "[source]\ntimeout = 3 # api_key = \"@\"\n",
    "# password: @\n[sourcee]\nx = 1\n",
    "[source]\nbase_url = \"https://user:@@api.example.com\"\n",
    "[source]\nbase_url = \"http://api.example.com/?key=@\"\n",
    "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"http://hooks.example.com/@\"\nsecret = \"@\"\nfrmat = 1\n",
    "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"@\"\n",
    "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nur = \"https://hooks.example.com/@\"\n",
    "[receiver]\nname = \"ops\"\nurl = \"https://hooks.example.com/@\"\n",
    "receiver = [{ name = \"ops\", url = \"@\", x = 1 }]\n",
    "[[receiver]]\nname = \"d\"\ntype = \"email\"\nsmtp = \"smtp://user:@@mail.example.com\"\npassword = \"@\"\n",
    "[http]\ntoken = \"\"\"\n@\"\"\"\nlisten = 1\n",
    "[http]\ntoken = \"\"\"\n@\nlisten = 1\n",
    "[http]\ndead_mans_switch = \"@\"\ntoken = \"@\"\ntoken = \"@\"\n",
    "api_key = \"@\"\n",
    "[route]\nreceivers = [\"a\"]\npassword = \"@\"\n",
    "[[route.routes]]\nsecret = \"@\"\n",
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn no_secret_of_the_file_is_shown(secret in "[A-Za-z0-9_-]{12,40}", config in 0..CONFIGS_WITH_SECRETS.len()) {
        let secret = format!("zq{secret}");
        let text = CONFIGS_WITH_SECRETS[config].replace('@', &secret);
        let loaded = load_plain(&text.replace(&format!("{secret}{secret}"), &format!("{secret}@")));
        let shown = [
            page(&loaded),
            diagnostic::render(&loaded.diagnostics, &loaded.sources, true),
            diagnostic::to_json(&loaded.diagnostics, &loaded.sources).to_string(),
            format!("{loaded:?}"),
        ];
        for text in shown {
            assert!(!text.contains(&secret), "{text}");
        }
    }

    #[test]
    fn no_secret_of_the_environment_is_shown(secret in "[A-Za-z0-9_-]{12,40}|[0-9]{12}", which in 0usize..8) {
        let names = ["SOURCE__API_KEY", "HTTP__TOKEN", "HTTP__DEAD_MANS_SWITCH", "API_KEY", "SOURCE__APIKEY", "SOURCE", "RECEIVER", "HTTP__TOKEN__X"];
        let variables = environment(&[(&format!("CLIFFWATCH_{}", names[which]), secret.as_str()), ("CLIFFWATCH_SOURCE__BURN", "v9")]);
        let loaded = load_text(Some(Path::new("cliffwatch.toml")), "", &variables);
        for text in [page(&loaded), format!("{loaded:?}"), format!("{variables:?}")] {
            assert!(!text.contains(&secret), "{text}");
        }
    }

    #[test]
    fn no_text_causes_a_panic(text in "([a-z_]{1,8}( = |\\.)?|\\[{1,2}[a-z.]{0,12}\\]{0,2}|\"|'|\\n|#|[0-9]|=|\\PC|receiver|source|route|api_key|schedule){0,40}") {
        let loaded = load_plain(&text);
        let _ = page(&loaded);
    }
}

#[test]
fn one_emission_and_slugs_without_token_list_are_valid() {
    for text in [
        "[schedule]\ndaily_emission = \"0 0 3 * * *\"\nweekly_emission = \"off\"\n",
        "[schedule]\nweekly_emission = \"0 0 3 * * 1\"\n",
        "[schedule]\ntoken_list = \"off\"\n[watch]\ntokens = [\"aptos\", \"sui\"]\ngroups = { mine = [\"apt*\"] }\n",
    ] {
        assert_eq!(page(&load_plain(text)), "", "{text}");
    }
    let both = environment(&[("CLIFFWATCH_SCHEDULE__DAILY_EMISSION", "0 0 3 * * *")]);
    let loaded = load_text(None, "[schedule]\nweekly_emission = \"0 0 3 * * 1\"\n", &both);
    assert!(loaded.has_errors(), "one of them may come from the environment");
}

#[cfg(unix)]
#[test]
fn secret_file_in_non_utf8_directory_is_an_error() {
    use std::os::unix::ffi::OsStrExt;
    let path = Path::new(std::ffi::OsStr::from_bytes(b"/etc/caf\xe9/cliffwatch.toml"));
    let with = |file: &str| RECEIVERS.replace("/hook\"\n", &format!("/hook\"\nsecret_file = \"{file}\"\n"));
    let found = load_text(Some(path), &with("hook.secret"), &Environment::default());
    assert!(found.config.is_none());
    let messages: Vec<&str> = found.diagnostics.iter().map(|problem| problem.message.as_str()).collect();
    assert_eq!(messages, ["`secret_file` is in a directory whose name is not UTF-8"]);
    let found = load_text(Some(path), &with("/run/secrets/hook"), &Environment::default());
    assert!(found.config.is_some(), "an absolute path is exact: {}", page(&found));
}
