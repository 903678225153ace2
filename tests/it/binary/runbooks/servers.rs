//! Pages about a PostgreSQL server. `tests/postgres/run` provides one.

use testkit::Cluster;

use super::*;

/// Uses the database on a server.
fn use_server(machine: &Machine, cluster: &Cluster) {
    machine.configure("", &format!("url = \"postgres://postgres@127.0.0.1:{}/postgres\"", cluster.port));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgresql() {
    let Some(cluster) = Cluster::start("") else { return };
    let mut machine = Machine::new("postgresql").await;
    use_server(&machine, &cluster);
    machine.start();
    let healthy = "curl -s http://127.0.0.1:9797/-/ready";

    // A restart, and then connections that other clients use.
    cluster.restart();
    machine.until(healthy, "ready;");
    cluster.stop("immediate");
    machine.play("What you see");
    machine.play("What it means");
    machine.play("What to do");
    cluster.resume();
    machine.play("How you know that it is over");

    // Read-only, as after a failover to the wrong side.
    cluster.query("ALTER SYSTEM SET default_transaction_read_only = on");
    cluster.reload();
    machine.until(healthy, "read-only");
    cluster.query("ALTER SYSTEM RESET default_transaction_read_only");
    cluster.reload();
    machine.until(healthy, "ready;");
    machine.shell("systemctl stop cliffwatch");
    machine.finish();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_instances() {
    let Some(cluster) = Cluster::start("") else { return };
    let mut machine = Machine::new("two-instances").await;
    use_server(&machine, &cluster);
    machine.start();
    let second = machine.start_second();
    second.until_log("standby");
    for section in ["What you see", "What it means", "What to do", "How you know that it is over"] {
        machine.play(section);
    }
    machine.shell("systemctl stop cliffwatch");
    machine.finish();
}
