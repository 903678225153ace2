//! Pages about the source: its key, its credits, and renamed tokens.

use super::*;

/// The credits of a small API plan.
const FEW_CREDITS: u64 = 60;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotate_api_key() {
    let mut machine = Machine::with_keys("rotate-api-key").await;
    machine.start();
    let key = machine.fixture.service.add_key("new", 100_000).expect("a key");
    machine.write("/new-key", &format!("{key}\n"));
    assert!(machine.fixture.service.revoke_key("desk").expect("revoked"));
    machine.play("What you see");
    machine.play("What it means");
    machine.play("What to do");
    machine.play("How you know that it is over");
    machine.finish();
}

const METRICS: &str = "curl -s http://127.0.0.1:9797/metrics";

/// Starts the service with a key whose credits another program uses up.
async fn start_without_credits(machine: &Machine) {
    let small = machine.fixture.service.add_key("small", FEW_CREDITS).expect("a key");
    machine.start();
    machine.use_up(&small).await;
    machine.write("/etc/cliffwatch/api-key", &format!("{small}\n"));
    machine.until(METRICS, "cliffwatch_incidents{kind=\"quota_exhausted\"} 1");
    machine.until(METRICS, "cliffwatch_source_credits_left{} 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credits_used_up() {
    let mut machine = Machine::with_keys("credits-used-up").await;
    start_without_credits(&machine).await;
    machine.play("What you see");
    machine.play("What it means");
    assert!(machine.fixture.service.set_monthly_limit("small", 100_000).expect("raised"));
    machine.play("What to do");
    machine.play("How you know that it is over");
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_ends_used_up_credits_without_a_restart() {
    let machine = Machine::with_keys("credits-used-up").await;
    start_without_credits(&machine).await;
    for command in ["systemctl restart cliffwatch", "systemctl reload cliffwatch"] {
        machine.shell(command);
        machine.until(METRICS, "cliffwatch_source_credits_left{} 0");
    }
    machine.write("/etc/cliffwatch/api-key", &format!("{}\n", machine.fixture.key));
    machine.until(METRICS, "cliffwatch_source_credits_limit 100000");
    machine.until(METRICS, "cliffwatch_incidents{kind=\"quota_exhausted\"} 0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_renamed() {
    let mut machine = Machine::new("token-renamed").await;
    machine.start();
    let rename = |edit: &mut service::Edit<'_>| {
        let events = edit.events("arbitrum")?;
        edit.clear()?;
        edit.put_token(&item("arbitrum-one", "ARB"))?;
        edit.put_events("arbitrum-one", events)
    };
    machine.fixture.service.edit(rename).expect("renamed");
    machine.until(METRICS, "cliffwatch_incidents{kind=\"not_found\"} 3");
    machine.play("What you see");
    machine.play("What it means");
    machine.play("What to do");
    machine.play("How you know that it is over");
    machine.finish();
}
