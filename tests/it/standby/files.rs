//! Config and rules that change while an instance is on standby.

use std::time::{Duration, Instant};

use super::{Stage, WAIT_TIMEOUT};

const NEW_RULE: &str = "\n[[rule]]\nalert = \"BurnedToo\"\non = \"burn\"\n";

/// Adds a second receiver at the address of the first.
fn with_second_receiver(config: &str) -> String {
    let url = config.lines().find(|line| line.starts_with("url = \"http")).expect("a receiver");
    let second =
        format!("[[receiver]]\nname = \"second\"\ntype = \"webhook\"\n{url}\n[route]\nreceivers = [\"steady\", \"second\"]");
    config.replace("[route]\nreceivers = [\"steady\"]", &second)
}

impl Stage {
    /// Returns the number of accepted messages of the new rule.
    fn new_messages(&self) -> usize {
        let is_new = |body: &serde_json::Value| body.to_string().contains("BurnedToo");
        self.books.accepted().iter().filter(|(_, body)| is_new(body)).count()
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{what}: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standby_takes_over_with_current_files() {
    let mut random = fastrand::Rng::with_seed(11);
    let Some(mut stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let (number, active) = stage.lease().expect("one is active");
    for instance in &stage.instances {
        instance.edit("rules/r.toml", |rules| format!("{rules}{NEW_RULE}"));
        instance.edit("cliffwatch.toml", |config| with_second_receiver(&config));
    }
    let has_reloaded = |stage: &Stage| stage.instances.iter().all(|of| of.log().contains("reloaded config and rules"));
    stage.until("both reload", has_reloaded).await;
    stage.world.burn(&mut random);
    stage.until("the new rule notifies both receivers", |stage| stage.new_messages() >= 2).await;

    // This burn happens after the active instance dies, so only the other one can notify it.
    stage.instances[active].signal("KILL");
    let before = stage.new_messages();
    stage.world.burn(&mut random);
    let (_, now, _) = stage.wait_for_lease(number, &mut random).await;
    stage.until("the new rule notifies both receivers", |stage| stage.new_messages() >= before + 2).await;
    let log = stage.instances[now].log();
    assert!(!log.contains("dead letters"), "{log}");
}
