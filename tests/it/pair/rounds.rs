//! The failures of instances, network, and server, one per round, and the time until an instance is active again.

use std::time::{Duration, Instant};

use super::{PairSoak, WAIT_TIMEOUT, fault_log::Cause, session::Greed, watch::Tenure};

/// The range of the extra uptime after a simulated reboot.
const MAX_UPTIME_SECS: u64 = 2_000 * 86_400;
/// The documented maximum duration of a takeover.
pub const MAX_TAKEOVER: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Failure {
    // Of the active instance.
    Killed,
    Stopped,
    Paused,
    CutOff,
    RequestsCut,
    ResponsesCut,
    /// For less than the term of the lease, which may need no takeover.
    BrieflyPaused,
    // Of the standby, which need no takeover.
    StandbyKilled,
    StandbyPaused,
    StandbyCutOff,
    // Of both, measured from the end of the failure.
    BothKilled,
    BothPaused,
    BothCutOff,
    // Of the server, measured from the end of the failure.
    ServerRestarts,
    ServerCrashes,
    ReadOnly,
    /// Another client takes all free connections.
    Exhausted,
    /// The connections of both instances are ended, and another client takes all connections.
    Disconnected,
    /// Another client takes all free connections, and the active instance is killed.
    KilledWhileExhausted,
    // For so long that alerts fire.
    StandbyGone,
    ServerGone,
}

pub const FAILURES: [Failure; 19] = [
    Failure::Killed,
    Failure::Stopped,
    Failure::Paused,
    Failure::CutOff,
    Failure::RequestsCut,
    Failure::ResponsesCut,
    Failure::BrieflyPaused,
    Failure::StandbyKilled,
    Failure::StandbyPaused,
    Failure::StandbyCutOff,
    Failure::BothKilled,
    Failure::BothPaused,
    Failure::BothCutOff,
    Failure::ServerRestarts,
    Failure::ServerCrashes,
    Failure::ReadOnly,
    Failure::Exhausted,
    Failure::Disconnected,
    Failure::KilledWhileExhausted,
];

/// Failures of several minutes, for long runs.
pub const LONG_FAILURES: [Failure; 2] = [Failure::StandbyGone, Failure::ServerGone];

/// Longer than the five minutes of `CliffwatchDown`.
const STANDBY_GONE_FOR: Duration = Duration::from_secs(330);
/// Longer than the two minutes of `CliffwatchDatabaseDown`.
const SERVER_GONE_FOR: Duration = Duration::from_secs(150);
/// The time until the next edit after a long failure.
const EDIT_AFTER: Duration = Duration::from_secs(20);
/// The time from the end of a failure until the metrics show exactly one active instance: a takeover, and two scrapes.
const SHOWN_WITHIN: Duration = Duration::from_secs(18);

impl Failure {
    /// Returns the failure of each affected instance.
    fn kind_of(self) -> Hit {
        match self {
            Self::Killed | Self::StandbyKilled | Self::BothKilled | Self::KilledWhileExhausted => Hit::Kill,
            Self::Stopped | Self::StandbyGone => Hit::Stop,
            Self::Paused | Self::BrieflyPaused | Self::StandbyPaused | Self::BothPaused => Hit::Pause,
            Self::RequestsCut => Hit::CutRequests,
            Self::ResponsesCut => Hit::CutResponses,
            _ => Hit::Cut,
        }
    }
}

/// A failure of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    Kill,
    Stop,
    Pause,
    Cut,
    CutRequests,
    CutResponses,
}

impl Hit {
    fn cause(self) -> Cause {
        match self {
            Self::Kill | Self::Stop | Self::Pause => Cause::Process,
            Self::Cut | Self::CutRequests | Self::CutResponses => Cause::Network,
        }
    }
}

impl PairSoak {
    /// Waits for all baselines, after which changes are notified.
    pub async fn wait_for_baselines(&mut self) {
        let sql = "SELECT count(*) FROM feed WHERE endpoint IN ('burn', 'unlock_events') AND baseline_at IS NOT NULL";
        let begun = Instant::now();
        while self.cluster.query(sql).parse::<usize>().unwrap_or(0) < 2 * super::TOKENS {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "no baselines: {}", self.logs());
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until Prometheus scrapes both instances.
    pub async fn wait_for_scrapes(&mut self) {
        let begun = Instant::now();
        while self.prometheus.as_ref().is_some_and(|prometheus| !prometheus.is_scraping()) {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "Prometheus does not scrape");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn index_of(&self, tenure: &Tenure) -> Option<usize> {
        self.hosts.iter().position(|host| host.pid() == tenure.pid)
    }

    /// Waits until one instance is active and the other one is its standby.
    async fn wait_for_pair(&mut self) -> Option<(i64, usize)> {
        let mut pair = None;
        self.until("one instance is active, the other one is a standby", |soak| {
            soak.note_ended();
            let Some(tenure) = soak.lease.last() else { return false };
            let Some(active) = soak.index_of(&tenure).filter(|_| !soak.lease.is_released()) else { return false };
            tenure.renewed_at.elapsed() < Duration::from_secs(5)
                && soak.hosts[1 - active].is_standby()
                && soak.hosts[active].is_running()
        })
        .await;
        if let Some(tenure) = self.lease.last() {
            pair = self.index_of(&tenure).map(|active| (tenure.number, active));
        }
        pair
    }

    /// Notes instances that exited on their own.
    fn note_ended(&mut self) {
        for at in 0..2 {
            if !self.must_start.contains(&at) && !self.hosts[at].is_running() {
                let log = self.hosts[at].log_end(40);
                self.violate(format!("an instance exited on its own: {log}"));
                self.must_start.push(at);
            }
        }
    }

    async fn hit(&mut self, at: usize, what: Hit) {
        self.fault_log.begin(what.cause(), Some(at));
        let host = &mut self.hosts[at];
        match what {
            Hit::Kill => {
                host.signal("KILL");
                host.deaths += 1;
            }
            Hit::Stop => host.signal("TERM"),
            Hit::Pause => host.signal("STOP"),
            Hit::Cut => host.proxy.cut(),
            Hit::CutRequests => host.proxy.cut_requests(),
            Hit::CutResponses => host.proxy.cut_responses(),
        }
    }

    async fn recover(&mut self, at: usize, what: Hit) {
        let shows_boot = self.random.bool();
        let uptime = self.random.u64(..MAX_UPTIME_SECS);
        let is_reboot = self.random.u32(..3) == 0;
        let host = &mut self.hosts[at];
        match what {
            Hit::Kill | Hit::Stop => {
                if is_reboot {
                    host.wait_for_end().await;
                    host.reboot(uptime, shows_boot);
                }
                host.restart().await;
            }
            Hit::Pause => host.signal("CONT"),
            Hit::Cut | Hit::CutRequests | Hit::CutResponses => host.proxy.repair(),
        }
        self.resumed_at[at] = Instant::now();
        self.fault_log.end(what.cause(), Some(at));
    }

    /// Begins or ends a failure of the server.
    fn note_server(&mut self, is_failing: bool) {
        match is_failing {
            true => self.fault_log.begin(Cause::Server, None),
            false => self.fault_log.end(Cause::Server, None),
        }
    }

    /// Plays a failure and its end.
    pub async fn round(&mut self, failure: Failure) {
        for at in std::mem::take(&mut self.must_start) {
            self.hosts[at].restart().await;
        }
        let Some((number, active)) = self.wait_for_pair().await else { return };
        let pause = self.some_millis(0, 3_000);
        self.pause(pause).await;
        let took = match failure {
            Failure::Killed
            | Failure::Stopped
            | Failure::Paused
            | Failure::CutOff
            | Failure::RequestsCut
            | Failure::ResponsesCut => self.active_fails(failure, number, active).await,
            Failure::BrieflyPaused => {
                self.hit(active, failure.kind_of()).await;
                let pause = self.some_millis(500, 8_500);
                self.pause(pause).await;
                self.recover(active, failure.kind_of()).await;
                None
            }
            Failure::StandbyKilled | Failure::StandbyPaused | Failure::StandbyCutOff => {
                self.hit(1 - active, failure.kind_of()).await;
                let pause = self.some_millis(2_000, 15_000);
                self.pause(pause).await;
                self.recover(1 - active, failure.kind_of()).await;
                self.unneeded += usize::from(self.lease.first_after(number).is_some());
                None
            }
            Failure::BothKilled | Failure::BothPaused | Failure::BothCutOff => self.both_fail(failure).await,
            Failure::StandbyGone => {
                self.hit(1 - active, failure.kind_of()).await;
                self.pause(STANDBY_GONE_FOR).await;
                self.recover(1 - active, failure.kind_of()).await;
                None
            }
            Failure::ServerGone => {
                // No edit has an effect meanwhile.
                self.until("the last edit is over", |soak| {
                    soak.next_edit_at = Instant::now() + EDIT_AFTER;
                    soak.edit.is_none()
                })
                .await;
                self.next_edit_at = Instant::now() + SERVER_GONE_FOR + EDIT_AFTER;
                self.note_server(true);
                self.cluster.stop("fast");
                self.pause(SERVER_GONE_FOR).await;
                self.cluster.resume();
                self.note_server(false);
                self.time_to_renewal(Instant::now()).await
            }
            Failure::ServerRestarts | Failure::ServerCrashes => {
                self.note_server(true);
                self.cluster.stop(if failure == Failure::ServerRestarts { "fast" } else { "immediate" });
                let pause = self.some_millis(0, 15_000);
                self.pause(pause).await;
                self.cluster.resume();
                self.note_server(false);
                self.time_to_renewal(Instant::now()).await
            }
            Failure::ReadOnly => {
                self.note_server(true);
                self.set_read_only(true);
                let pause = self.some_millis(1_000, 25_000);
                self.pause(pause).await;
                self.set_read_only(false);
                self.note_server(false);
                self.time_to_renewal(Instant::now()).await
            }
            Failure::Exhausted | Failure::Disconnected | Failure::KilledWhileExhausted => {
                self.exhaust_connections(failure, number, active).await
            }
        };
        println!("{failure:?}: {took:?}");
        self.expect_one_active(failure).await;
        if let Some(took) = took {
            self.takeovers.entry(failure).or_default().push(took);
            if took > MAX_TAKEOVER {
                let logs = self.logs();
                self.violate(format!("{failure:?} took {took:?}\n{logs}"));
            }
        }
    }

    /// Checks that the metrics show exactly one active instance soon.
    async fn expect_one_active(&mut self, failure: Failure) {
        let since = Instant::now();
        while !self.claims.show_one_active() {
            if since.elapsed() > SHOWN_WITHIN {
                let logs = self.logs();
                self.violate(format!("{failure:?}: after {SHOWN_WITHIN:?}, the metrics show no single active instance\n{logs}"));
                return;
            }
            self.step().await;
        }
    }

    async fn active_fails(&mut self, failure: Failure, number: i64, active: usize) -> Option<Duration> {
        // A takeover just before needs none now.
        let tenure = self.lease.last().filter(|tenure| tenure.number == number)?;
        let stood_by = self.hosts[active].times_as_standby();
        let hit_at = Instant::now();
        self.hit(active, failure.kind_of()).await;
        if !self.until("a takeover", |soak| soak.lease.first_after(tenure.number).is_some()).await {
            self.recover(active, failure.kind_of()).await;
            return None;
        }
        let next = self.lease.first_after(number)?;
        if self.index_of(&next) == Some(active) {
            self.violate(format!("{failure:?}: the same instance is active again"));
        }
        let pause = self.some_millis(0, 6_000);
        self.pause(pause).await;
        self.recover(active, failure.kind_of()).await;
        // It may become active again if the other instance restarts because of an edit.
        self.until("the former active instance becomes the standby", |soak| {
            let is_active_again =
                soak.lease.last().is_some_and(|last| last.number > next.number && soak.index_of(&last) == Some(active));
            (soak.hosts[active].times_as_standby() > stood_by || is_active_again) && soak.hosts[active].is_running()
        })
        .await;
        if self.lease.last().map(|tenure| tenure.number) != Some(next.number) {
            self.unneeded += 1;
        }
        self.lease.first_lasting_after(number).map(|lasting| lasting.at - hit_at)
    }

    async fn both_fail(&mut self, failure: Failure) -> Option<Duration> {
        let cuts = [Hit::Cut, Hit::CutRequests, Hit::CutResponses];
        let hits: Vec<Hit> = (0..2)
            .map(|_| match failure.kind_of() {
                Hit::Cut => cuts[self.random.usize(..cuts.len())],
                other => other,
            })
            .collect();
        for (at, what) in hits.iter().enumerate() {
            self.hit(at, *what).await;
        }
        let pause = self.some_millis(1_000, 25_000);
        self.pause(pause).await;
        let healed_at = Instant::now();
        for (at, what) in hits.iter().enumerate() {
            self.recover(at, *what).await;
        }
        self.time_to_renewal(healed_at).await
    }

    /// Waits until an instance takes or renews the lease.
    async fn time_to_renewal(&mut self, since: Instant) -> Option<Duration> {
        let renewed_at = |soak: &mut Self| soak.lease.last().map(|tenure| tenure.renewed_at).filter(|at| *at > since);
        self.until("an instance is active again", |soak| renewed_at(soak).is_some()).await;
        renewed_at(self).map(|at| at - since)
    }

    fn set_read_only(&self, is_read_only: bool) {
        let value = if is_read_only { "on" } else { "off" };
        self.cluster.query(&format!("ALTER SYSTEM SET default_transaction_read_only = {value}"));
        self.cluster.query("SELECT pg_reload_conf()");
    }

    /// Measures a takeover from the failure if it comes while no connection is free, else from the end of that.
    async fn exhaust_connections(&mut self, failure: Failure, number: i64, active: usize) -> Option<Duration> {
        self.note_server(true);
        let greed = Greed::begin(self.cluster.port, "greedy");
        self.pause(Duration::from_secs(1)).await;
        let hit_at = Instant::now();
        match failure {
            Failure::KilledWhileExhausted => self.hit(active, Hit::Kill).await,
            Failure::Disconnected => {
                self.cluster
                    .query("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename IN ('one', 'two')");
            }
            _ => {}
        }
        let pause = self.some_millis(3_000, 20_000);
        self.pause(pause).await;
        drop(greed);
        self.note_server(false);
        let freed_at = Instant::now();
        let took = match failure {
            Failure::KilledWhileExhausted => {
                self.until("a takeover", |soak| soak.lease.first_after(number).is_some()).await;
                let next = self.lease.first_after(number)?;
                Some(next.at - if next.at < freed_at { hit_at } else { freed_at })
            }
            _ => self.time_to_renewal(freed_at).await,
        };
        if failure == Failure::KilledWhileExhausted {
            self.recover(active, Hit::Kill).await;
        }
        took
    }
}
