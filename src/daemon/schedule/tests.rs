use std::sync::Mutex;

use super::*;
use model::wire::parse_timestamp;

fn time(text: &str) -> Timestamp {
    parse_timestamp(text).expect("a timestamp")
}

#[test]
fn slots_missed_while_down_are_made_up_for_once() {
    let slots = Slots::parse("0 0 */6 * * *", "UTC").expect("a pattern").expect("on");
    let now = time("2026-11-21T13:00:00Z");
    assert_eq!(missed(&slots, None, now), Some(now), "never ran");
    assert_eq!(missed(&slots, Some(time("2026-11-19T06:00:00Z")), now), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(missed(&slots, Some(time("2026-11-21T12:00:00Z")), now), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_outlasts_its_interval_never_overlaps_itself_and_no_slot_runs_twice() {
    let seen: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let under_way = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let overlaps = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (done, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let run: RunJob = {
        let (seen, under_way, overlaps) = (seen.clone(), under_way.clone(), overlaps.clone());
        Arc::new(move |_, slot| {
            let (seen, under_way, overlaps, done) = (seen.clone(), under_way.clone(), overlaps.clone(), done.clone());
            Box::pin(async move {
                use std::sync::atomic::Ordering::SeqCst;
                if under_way.fetch_add(1, SeqCst) > 0 {
                    overlaps.fetch_add(1, SeqCst);
                }
                seen.lock().expect("unpoisoned").push(slot);
                tokio::time::sleep(Duration::from_millis(1200)).await;
                under_way.fetch_sub(1, SeqCst);
                done.send(()).ok();
            })
        })
    };
    let slots = Slots::parse("* * * * * *", "UTC").expect("a pattern").expect("on");
    let clock = Clock::system();
    let last = [("evaluate".to_owned(), clock.now())];
    let schedule = Scheduler::start(vec![(Job::Evaluate, slots)], &last, clock, run).await.expect("starts");
    for _ in 0..3 {
        tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
    }
    assert_eq!(schedule.overdue(TimeDelta::seconds(30)), None, "a ticker that moves is not taken for one that stands still");
    assert!(schedule.stop(Duration::from_secs(5)).await);
    assert_eq!(overlaps.load(std::sync::atomic::Ordering::SeqCst), 0);
    let seen = seen.lock().expect("unpoisoned").clone();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_that_the_ticker_passes_over_is_overdue_and_then_taken_once() {
    let slots = Slots::parse("0 0 * * * *", "UTC").expect("a pattern").expect("on");
    let clock = Clock::manual(time("2026-11-21T12:59:00Z"));
    let last = [("evaluate".to_owned(), time("2026-11-21T12:00:00Z"))];
    let (begun, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let run: RunJob = Arc::new(move |_, slot| {
        begun.send(slot).ok();
        Box::pin(std::future::ready(()))
    });
    let schedule = Scheduler::start(vec![(Job::Evaluate, slots)], &last, clock.clone(), run).await.expect("starts");
    let mut next = async || tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
    assert_eq!(schedule.overdue(TimeDelta::minutes(1)), None);
    // The clock goes on and the ticker does not: its timer waits for a minute of real time.
    clock.set(time("2026-11-21T13:01:01Z"));
    assert_eq!(schedule.overdue(TimeDelta::minutes(1)), Some((Job::Evaluate, time("2026-11-21T13:00:00Z"))));
    assert_eq!(next().await, time("2026-11-21T13:00:00Z"));
    // Set back while it waits for 14:00: the next slot is an early one again.
    clock.set(time("2026-11-21T04:58:00Z"));
    tokio::time::sleep(GUARD + Duration::from_secs(1)).await;
    clock.set(time("2026-11-21T05:00:03Z"));
    assert_eq!(next().await, time("2026-11-21T05:00:00Z"));
    assert!(schedule.stop(Duration::from_secs(5)).await);
    assert!(runs.try_recv().is_err(), "each slot is taken once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_times_take_effect_without_overlap_and_without_a_run_too_many() {
    let (begun, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let run: RunJob = {
        let gate = gate.clone();
        Arc::new(move |job, slot| {
            let (begun, gate) = (begun.clone(), gate.clone());
            Box::pin(async move {
                begun.send((job, slot)).ok();
                gate.acquire().await.expect("open").forget();
            })
        })
    };
    let slots = |pattern: &str| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    let (burn, buyback) = (Job::Poll(Endpoint::Burn), Job::Poll(Endpoint::Buyback));
    let clock = Clock::system();
    let now = clock.now();
    let last = [burn, buyback, Job::Evaluate].map(|job| (job.as_str().to_owned(), now));
    // Nothing of it falls due by itself before next January.
    let rare = "0 0 0 1 1 *";
    let jobs = vec![(Job::Evaluate, slots("* * * * * *")), (burn, slots(rare))];
    let schedule = Scheduler::start(jobs, &last, clock.clone(), run).await.expect("starts");
    let mut next = async || tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
    assert_eq!(next().await.0, Job::Evaluate);

    // While it runs: it rests from now on, another one begins, and one that never ran is due at once.
    let jobs = vec![(burn, slots("* * * * * *")), (buyback, slots(rare)), (Job::Poll(Endpoint::Upcoming), slots(rare))];
    schedule.replace(jobs, &last).await;
    let mut begun = vec![next().await.0, next().await.0];
    begun.sort();
    assert_eq!(begun, [Job::Poll(Endpoint::Upcoming), burn]);
    gate.add_permits(3);
    assert_eq!(next().await.0, burn, "and once more a second later, but nothing else");
    gate.add_permits(1);
    assert!(schedule.stop(Duration::from_secs(5)).await);
    while let Ok((job, _)) = runs.try_recv() {
        assert_eq!(job, burn);
    }
}
