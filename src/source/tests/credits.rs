//! Tests of reserved and settled credits.

use std::sync::MutexGuard;

use super::*;
use model::rows::{Charge, SettledRequest};

/// A gate with limited credits that records all charges.
struct FakeQuota {
    state: Mutex<FakeQuotaState>,
}

#[derive(Default)]
struct FakeQuotaState {
    left: u64,
    reserved: u64,
    settled: Vec<Charge>,
}

impl FakeQuota {
    fn of(left: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(FakeQuotaState { left, ..FakeQuotaState::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, FakeQuotaState> {
        self.state.lock().expect("the state")
    }

    /// Returns the charges of all requests in order, and checks that nothing is still reserved.
    fn charges(&self) -> Vec<Charge> {
        let state = self.state();
        assert_eq!(state.reserved, 0, "credits are still reserved: {:?}", state.settled);
        state.settled.clone()
    }
}

impl CreditGate for FakeQuota {
    fn reserve(&self, credits: u64) -> GateDecision<'_> {
        let mut state = self.state();
        let response = match state.left.checked_sub(credits) {
            Some(left) => {
                state.left = left;
                state.reserved += credits;
                Ok(())
            }
            None => Err(PollFailure { kind: FailureKind::QuotaExhausted, message: "empty".into(), retry_at: None }),
        };
        Box::pin(std::future::ready(response))
    }

    fn sent(&self, _: Option<&SecretText>) -> SettledRequest {
        SettledRequest { uncounted_before: 7, ..SettledRequest::default() }
    }

    fn settle(&self, request: SettledRequest) {
        assert_eq!(request.uncounted_before, 7);
        let mut state = self.state();
        assert!(state.reserved > 0, "sent without a credit");
        state.reserved -= 1;
        state.settled.push(request.charge);
    }

    fn release(&self, credits: u64) {
        let mut state = self.state();
        assert!(state.reserved >= credits);
        state.reserved -= credits;
        state.left += credits;
    }
}

fn paid(fake: &FakeServer, quota: &Arc<FakeQuota>) -> Client {
    Client::with_tuning(&source(&fake.address), Clock::manual(now()), quick(), quota.clone()).expect("a client")
}

/// Returns the charges of the requests of one fetch.
async fn charged(response: impl Fn(usize, &str) -> FakeReply + Send + Sync + 'static, request: &PollRequest) -> Vec<Charge> {
    let (fake, quota) = (FakeServer::start(response).await, FakeQuota::of(100));
    let fetched = paid(&fake, &quota).fetch(request, None, None).await;
    let charges = quota.charges();
    assert_eq!(charges.len(), fake.count());
    let paid = charges.iter().filter(|charge| matches!(charge, Charge::One | Charge::Perhaps)).count();
    assert_eq!(fetched.credits as usize, paid, "the fetch reports the same cost");
    charges
}

#[tokio::test]
async fn every_request_is_charged() {
    let pages = charged(
        |number, target| match number {
            1 => reply("502 Bad Gateway", "", ""),
            2 => reply("200 OK", "", "<html>"),
            3 => reply("200 OK", "content-length: 900\r\n", "{"),
            _ if target.contains("page=2&") => pages(2, 2, 3, &rows(&[3])),
            _ => pages(1, 2, 3, &rows(&[1, 2])),
        },
        &events(),
    )
    .await;
    assert_eq!(pages, [Charge::One, Charge::Free, Charge::Perhaps, Charge::Perhaps]);
    let request = burns();
    let versions =
        charged(|_, target| if target.starts_with("/v5") { reply("404 Not Found", "", "") } else { ok("", BURNS) }, &request);
    assert_eq!(versions.await, [Charge::Free, Charge::One]);
}

#[tokio::test]
async fn rejections_are_free() {
    assert_eq!(charged(|_, _| reply("403 Forbidden", "", ""), &burns()).await, [Charge::Free]);
    assert_eq!(charged(|_, _| reply("402 Payment Required", "", ""), &burns()).await, [Charge::Refused]);
    let exhausted = r#"{"metadata":{"credit":{"used":5,"limit":5,"resetAt":"2026-04-01T00:00:00Z"}},"status":false}"#;
    assert_eq!(charged(move |_, _| reply("429 Too Many Requests", "", exhausted), &burns()).await, [Charge::Refused]);
}

#[tokio::test]
async fn unsent_requests_are_free() {
    let quota = FakeQuota::of(9);
    let client =
        Client::with_tuning(&source("http://127.0.0.1:9"), Clock::manual(now()), quick(), quota.clone()).expect("a client");
    client.fetch(&burns(), None, None).await;
    assert_eq!(quota.charges(), [Charge::Free; 3]);
}

#[tokio::test]
async fn canceled_request_may_have_cost_a_credit() {
    let (fake, quota) = (FakeServer::start(|_, _| FakeReply::Mute).await, FakeQuota::of(9));
    let (client, request) = (paid(&fake, &quota), burns());
    let fetching = client.fetch(&request, None, None);
    assert!(tokio::time::timeout(Duration::from_millis(300), fetching).await.is_err());
    assert_eq!(quota.charges(), [Charge::Perhaps]);
}

#[tokio::test]
async fn walk_without_credits_for_all_pages_is_deferred() {
    let walk = |_: usize, target: &str| {
        let page = target.split("page=").nth(1).and_then(|rest| rest.split('&').next()?.parse().ok()).unwrap_or(1);
        pages(page, 3, 3, &rows(&[u32::try_from(page).expect("small")]))
    };
    for (credits, sent) in [(3, 3), (2, 1), (1, 1), (0, 0)] {
        let (fake, quota) = (FakeServer::start(walk).await, FakeQuota::of(credits));
        let fetched = paid(&fake, &quota).fetch(&events(), None, None).await;
        assert_eq!((quota.charges().len(), fake.count()), (sent, sent), "{credits} credits");
        match sent {
            3 => assert_eq!(event_days(&fetched).len(), 3),
            1 => {
                assert_eq!((failure(&fetched).kind, fetched.pages), (FailureKind::Deferred, 3), "the number of pages is reported")
            }
            _ => assert_eq!(failure(&fetched).kind, FailureKind::QuotaExhausted),
        }
    }
}
