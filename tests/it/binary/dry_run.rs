//! A dry run prints its cost and the notifications it would send.

use serde_json::Value;

use super::{Fixture, Time};
use crate::it::support::{BEGIN, time};
use cliffwatch::service::AccessPolicy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dry_run_prints_cost_and_notifications() {
    let fixture = Fixture::new(Time::Begin, AccessPolicy::Open).await;
    let first = fixture.workdir.run(&format!("--now {BEGIN} poll --dry-run")).ok();
    let (before, after) = first.split_once("token_list: 1 polled").expect("a cycle");
    assert!(before.contains("poll    token_list: 1 request, about 1 credit"), "{first}");
    assert!(before.contains("plus polls for the tokens in the list"), "{first}");
    assert!(after.contains("notify  alert.firing BigCliffAhead: ALP unlocks $2.00M (to ops)"), "{first}");
    assert!(after.contains("1 alert would be notified"), "{first}");
    assert!(!first.contains('\r'), "a pipe gets no progress bar");
    // A second dry run knows the tokens, and does not repeat earlier notifications.
    fixture.workdir.run(&format!("--now {BEGIN} poll")).ok();
    fixture.hook.take();
    fixture
        .service
        .edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")))
        .expect("edited");
    let second = fixture.workdir.run("--now 2026-03-01T06:00:00Z poll --dry-run --format json").json();
    assert_eq!(second["wouldTell"].as_array().map(Vec::len), Some(1), "{second:#}");
    assert_eq!(second["wouldTell"][0]["rule"], "ScheduleChanged", "{second:#}");
    let reads = second["plan"]["reads"].as_array().expect("reads");
    assert!(reads.iter().any(|read| read["endpoint"] == "token_list" && read["asks"] == 1), "{second:#}");
    assert_eq!(fixture.hook.take(), Vec::<Value>::new());
}
