use std::sync::Mutex;

use super::*;
use testkit::time;

#[test]
fn last_missed_slot_runs_once() {
    let slots = Slots::parse("0 0 */6 * * *", "UTC").expect("a pattern").expect("on");
    let now = time("2026-11-21T13:00:00Z");
    assert_eq!(missed(&slots, None, now), Some(now), "never ran");
    assert_eq!(missed(&slots, Some(time("2026-11-19T06:00:00Z")), now), Some(time("2026-11-21T12:00:00Z")));
    assert_eq!(missed(&slots, Some(time("2026-11-21T12:00:00Z")), now), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_run_does_not_overlap_and_slots_run_once() {
    let seen: Arc<Mutex<Vec<Timestamp>>> = Arc::default();
    let under_way = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let overlaps = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (done, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let run: RunJob = {
        let (seen, under_way, overlaps) = (seen.clone(), under_way.clone(), overlaps.clone());
        Arc::new(move |_, reason| {
            let RunReason::Slot(slot) = reason else { panic!("nothing failed") };
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
                RunEnd::DONE
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
    assert_eq!(schedule.overdue(TimeDelta::seconds(30)), None, "a progressing schedule has no overdue slot");
    assert!(schedule.stop(Duration::from_secs(5)).await);
    assert_eq!(overlaps.load(std::sync::atomic::Ordering::SeqCst), 0);
    let seen = seen.lock().expect("unpoisoned").clone();
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_slot_is_overdue_and_then_runs_once() {
    let slots = Slots::parse("0 0 * * * *", "UTC").expect("a pattern").expect("on");
    let clock = Clock::manual(time("2026-11-21T12:59:00Z"));
    let last = [("evaluate".to_owned(), time("2026-11-21T12:00:00Z"))];
    let (started, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let run: RunJob = Arc::new(move |_, reason| {
        if let RunReason::Slot(slot) = reason {
            started.send(slot).ok();
        }
        Box::pin(std::future::ready(RunEnd::DONE))
    });
    let schedule = Scheduler::start(vec![(Job::Evaluate, slots)], &last, clock.clone(), run).await.expect("starts");
    let mut next = async || tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
    assert_eq!(schedule.overdue(TimeDelta::minutes(1)), None);
    // The clock advances without a tick: the timer waits for real time.
    clock.set(time("2026-11-21T13:01:01Z"));
    assert_eq!(schedule.overdue(TimeDelta::minutes(1)), Some((Job::Evaluate, time("2026-11-21T13:00:00Z"))));
    assert_eq!(next().await, time("2026-11-21T13:00:00Z"));
    // The clock is set back while the job waits for 14:00, so an earlier slot comes next.
    clock.set(time("2026-11-21T04:58:00Z"));
    tokio::time::sleep(FALLBACK_INTERVAL + Duration::from_secs(1)).await;
    clock.set(time("2026-11-21T05:00:03Z"));
    assert_eq!(next().await, time("2026-11-21T05:00:00Z"));
    assert!(schedule.stop(Duration::from_secs(5)).await);
    assert!(runs.try_recv().is_err(), "each slot runs once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_schedule_starts_without_overlap_or_extra_runs() {
    let (started, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let run: RunJob = {
        let gate = gate.clone();
        Arc::new(move |job, reason| {
            let (started, gate) = (started.clone(), gate.clone());
            Box::pin(async move {
                // At the start, each job looks for failed polls.
                if let RunReason::Slot(slot) = reason {
                    started.send((job, slot)).ok();
                    gate.acquire().await.expect("open").forget();
                }
                RunEnd::DONE
            })
        })
    };
    let slots = |pattern: &str| Slots::parse(pattern, "UTC").expect("a pattern").expect("on");
    let (burn, buyback) = (Job::Poll(Endpoint::Burn), Job::Poll(Endpoint::Buyback));
    let clock = Clock::system();
    let now = clock.now();
    let last = [burn, buyback, Job::Evaluate].map(|job| (job.as_str().to_owned(), now));
    // This pattern does not match before next January.
    let rare = "0 0 0 1 1 *";
    let jobs = vec![(Job::Evaluate, slots("* * * * * *")), (burn, slots(rare))];
    let schedule = Scheduler::start(jobs, &last, clock.clone(), run).await.expect("starts");
    let mut next = async || tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
    assert_eq!(next().await.0, Job::Evaluate);

    // While the job runs: it leaves the schedule, another one starts, and one that never ran is due at once.
    let jobs = vec![(burn, slots("* * * * * *")), (buyback, slots(rare)), (Job::Poll(Endpoint::Upcoming), slots(rare))];
    schedule.replace(jobs, &last);
    let mut started = vec![next().await.0, next().await.0];
    started.sort();
    assert_eq!(started, [Job::Poll(Endpoint::Upcoming), burn]);
    gate.add_permits(3);
    assert_eq!(next().await.0, burn, "the job runs again a second later, and no other does");
    gate.add_permits(1);
    assert!(schedule.stop(Duration::from_secs(5)).await);
    while let Ok((job, _)) = runs.try_recv() {
        assert_eq!(job, burn);
    }
}

/// Starts jobs with a slot far away, whose runs end with `end`. Returns the runs.
async fn started(
    jobs: &[Job],
    last: &[(String, Timestamp)],
    end: impl Fn(Job, RunReason) -> RunEnd + Send + Sync + 'static,
) -> (Scheduler, tokio::sync::mpsc::UnboundedReceiver<(Job, RunReason)>) {
    let (started, runs) = tokio::sync::mpsc::unbounded_channel();
    let run: RunJob = Arc::new(move |job, reason| {
        started.send((job, reason)).ok();
        Box::pin(std::future::ready(end(job, reason)))
    });
    // This pattern does not match before next January.
    let slots = Slots::parse("0 0 0 1 1 *", "UTC").expect("a pattern").expect("on");
    let jobs = jobs.iter().map(|job| (*job, slots.clone())).collect();
    (Scheduler::start(jobs, last, Clock::system(), run).await.expect("starts"), runs)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_polls_are_retried_before_the_next_slot_and_after_a_restart() {
    let job = Job::Poll(Endpoint::Allocations);
    let failed = NextRetry::Failed { not_before: None, is_paid: false };
    let end = move |_, reason| RunEnd {
        retry: if matches!(reason, RunReason::Slot(_)) { failed } else { NextRetry::None },
        ..RunEnd::DONE
    };
    let (schedule, mut runs) = started(&[job], &[], end).await;
    let next = async |runs: &mut tokio::sync::mpsc::UnboundedReceiver<(Job, RunReason)>| {
        tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run")
    };
    assert!(matches!(next(&mut runs).await, (_, RunReason::Slot(_))));
    assert_eq!(next(&mut runs).await, (job, RunReason::Retry { is_urgent: false }));
    schedule.retry_now();
    assert_eq!(next(&mut runs).await, (job, RunReason::Retry { is_urgent: true }));
    assert!(schedule.stop(Duration::from_secs(5)).await);

    let last = [(job.as_str().to_owned(), Clock::system().now())];
    let (schedule, mut runs) = started(&[job], &last, |_, _| RunEnd::DONE).await;
    assert_eq!(
        next(&mut runs).await,
        (job, RunReason::Retry { is_urgent: true }),
        "the slot is not missed, but polls may have failed"
    );
    assert!(schedule.stop(Duration::from_secs(5)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_token_list_makes_the_polls_of_all_tokens_due() {
    let (list, burn) = (Job::Poll(Endpoint::TokenList), Job::Poll(Endpoint::Burn));
    let end = move |job, reason| match reason {
        // The list fails first. By the time of its retry, the other job has looked for failed polls.
        RunReason::Slot(_) => RunEnd { retry: NextRetry::Failed { not_before: None, is_paid: false }, ..RunEnd::DONE },
        RunReason::Retry { .. } => RunEnd { is_first_list: job == list, ..RunEnd::DONE },
    };
    let last = [(burn.as_str().to_owned(), Clock::system().now())];
    let (schedule, mut runs) = started(&[list, burn], &last, end).await;
    let mut burns = 0;
    while burns < 2 {
        let (job, _) = tokio::time::timeout(Duration::from_secs(20), runs.recv()).await.expect("in time").expect("a run");
        burns += u32::from(job == burn);
    }
    assert!(schedule.stop(Duration::from_secs(5)).await);
}
