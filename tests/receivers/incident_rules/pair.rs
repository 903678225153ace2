//! The same for two instances on one PostgreSQL server, which `tests/postgres/run` provides.

use testkit::Cluster;

use super::*;

/// Two instances, and the addresses of their pages.
struct InstancePair {
    folder: tempfile::TempDir,
    addresses: [String; 2],
    instances: [Option<ExternalProgram>; 2],
    _service: ExternalProgram,
    prometheus: PrometheusRules,
}

impl InstancePair {
    fn start(cluster: &Cluster) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let service = format!("127.0.0.1:{}", free_port());
        let addresses: [String; 2] = std::array::from_fn(|_| format!("127.0.0.1:{}", free_port()));
        fs::write(folder.path().join("rules.toml"), RULES).expect("written");
        for (at, address) in addresses.iter().enumerate() {
            let config = format!(
                "[source]\nbase_url = \"http://{service}\"\nlegacy_base_url = \"http://{service}\"\napi_key = \"none\"\n\
                 [watch]\ntokens = [\"arbitrum\"]\n[rules]\npaths = [\"rules.toml\"]\n[store]\nurl = \"postgres://postgres@127.0.0.1:{}/postgres\"\n\
                 [schedule]\nunlock_events = \"*/2 * * * * *\"\nevaluate = \"*/2 * * * * *\"\n[http]\nlisten = \"{address}\"\n",
                cluster.port
            );
            fs::write(folder.path().join(format!("{at}.toml")), config).expect("written");
        }
        let data = concat!(env!("CARGO_MANIFEST_DIR"), "/data");
        let import = command(folder.path()).args(["import", data, "--db", "service.db"]).output();
        assert!(import.expect("it runs").status.success());
        let _service = ExternalProgram::start(command(folder.path()).args(["serve", "--db", "service.db", "--listen", &service]));
        let prometheus = PrometheusRules::start(folder.path(), &[&addresses[0], &addresses[1]]);
        Self { folder, addresses, instances: [None, None], _service, prometheus }
    }

    fn run(&mut self, at: usize) {
        let config = format!("{at}.toml");
        self.instances[at] = Some(ExternalProgram::start(command(self.folder.path()).args(["--config", &config, "run"])));
    }

    /// Kills an instance.
    fn kill(&mut self, at: usize) {
        self.instances[at].take();
    }

    /// Waits until an instance shows that it is active.
    async fn until_active(&self, at: usize) {
        outside::until(&format!("instance {at} is active"), || async {
            let page = self.prometheus.client.get(format!("http://{}/metrics", self.addresses[at])).send().await.ok()?;
            page.text().await.ok().filter(|page| page.contains("\ncliffwatch_active 1\n"))
        })
        .await;
    }
}

#[tokio::test]
async fn each_incident_of_a_pair_is_seen_by_its_rules_and_by_no_other() {
    if outside::lacks_program("prometheus", "prometheus") {
        return;
    }
    let Some(cluster) = Cluster::start("") else { return };
    let mut pair = InstancePair::start(&cluster);
    let expect = async |pair: &InstancePair, incident: &str| pair.prometheus.expect(&[incident], &[]).await;
    pair.run(0);
    pair.until_active(0).await;
    pair.run(1);
    expect(&pair, "everything works").await;
    pair.kill(1);
    expect(&pair, "the standby is stopped").await;
    pair.run(1);
    expect(&pair, "everything works").await;
    pair.kill(0);
    expect(&pair, "the active instance died, and the standby still waits").await;
    pair.until_active(1).await;
    expect(&pair, "the standby took over, and the other one is stopped").await;
    pair.run(0);
    expect(&pair, "everything works").await;
    cluster.stop("immediate");
    expect(&pair, "the database server does not respond").await;
    cluster.resume();
    expect(&pair, "everything works").await;
    pair.kill(0);
    pair.kill(1);
    expect(&pair, "both instances are stopped").await;
}
