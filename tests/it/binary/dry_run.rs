//! A dry run: what it would cost, and whom it would tell.

use serde_json::Value;

use super::{Room, Time};
use crate::support::{BEGIN, time};
use cliffwatch::service::AccessPolicy;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_says_what_it_costs_and_what_it_would_tell() {
    let room = Room::new(Time::Begin, AccessPolicy::Open).await;
    let first = room.desk.run(&format!("--now {BEGIN} poll --dry-run")).ok();
    let (before, after) = first.split_once("token_list: 1 asked").expect("a cycle");
    assert!(before.contains("will ask  token_list: 1 thing, about 1 credit"), "{first}");
    assert!(before.contains("and more for the tokens that the list then shows"), "{first}");
    assert!(after.contains("would tell  alert.firing BigCliffAhead: ALP unlocks $2.00M (to ops)"), "{first}");
    assert!(after.contains("1 alert would be raised"), "{first}");
    assert!(!first.contains('\r'), "no bar in a pipe");
    // Once the tokens are known, all of it is; what was told before is not told again.
    room.desk.run(&format!("--now {BEGIN} poll")).ok();
    room.hook.take();
    room.service
        .edit(|edit| edit.move_event("alpha", time("2026-05-20T12:00:00Z"), time("2026-05-25T12:00:00Z")))
        .expect("edited");
    let second = room.desk.run("--now 2026-03-01T06:00:00Z poll --dry-run --format json").json();
    assert_eq!(second["wouldTell"].as_array().map(Vec::len), Some(1), "{second:#}");
    assert_eq!(second["wouldTell"][0]["rule"], "ScheduleChanged", "{second:#}");
    let reads = second["plan"]["reads"].as_array().expect("reads");
    assert!(reads.iter().any(|read| read["endpoint"] == "token_list" && read["asks"] == 1), "{second:#}");
    assert_eq!(room.hook.take(), Vec::<Value>::new());
}
