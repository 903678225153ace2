//! Whoever pays is asked before anything is sent, and told what became of it.

use std::sync::MutexGuard;

use super::*;
use model::rows::{Charge, SettledRequest};

/// Has so many credits, and keeps what it was told.
struct Purse {
    state: Mutex<PurseState>,
}

#[derive(Default)]
struct PurseState {
    left: u64,
    reserved: u64,
    settled: Vec<Charge>,
}

impl Purse {
    fn of(left: u64) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(PurseState { left, ..PurseState::default() }) })
    }

    fn state(&self) -> MutexGuard<'_, PurseState> {
        self.state.lock().expect("the purse")
    }

    /// What requests cost, in their order. Nothing may still be reserved.
    fn charges(&self) -> Vec<Charge> {
        let state = self.state();
        assert_eq!(state.reserved, 0, "each credit was used or given back: {:?}", state.settled);
        state.settled.clone()
    }
}

impl CreditGate for Purse {
    fn reserve(&self, credits: u64) -> GateAnswer<'_> {
        let mut state = self.state();
        let answer = match state.left.checked_sub(credits) {
            Some(left) => {
                state.left = left;
                state.reserved += credits;
                Ok(())
            }
            None => Err(PollFailure { kind: FailureKind::QuotaExhausted, message: "empty".into(), retry_at: None }),
        };
        Box::pin(std::future::ready(answer))
    }

    fn sent(&self) -> SettledRequest {
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

fn paid(fake: &FakeServer, purse: &Arc<Purse>) -> Client {
    Client::with_tuning(&source(&fake.address), Clock::manual(now()), quick(), purse.clone()).expect("a client")
}

/// What the requests of one fetch cost.
async fn charged(answer: impl Fn(usize, &str) -> FakeReply + Send + Sync + 'static, request: &PollRequest) -> Vec<Charge> {
    let (fake, purse) = (FakeServer::start(answer).await, Purse::of(100));
    let fetched = paid(&fake, &purse).fetch(request, None, None).await;
    let charges = purse.charges();
    assert_eq!(charges.len(), fake.count());
    let paid = charges.iter().filter(|charge| matches!(charge, Charge::One | Charge::Perhaps)).count();
    assert_eq!(fetched.credits as usize, paid, "the poll log says the same");
    charges
}

#[tokio::test]
async fn each_page_each_retry_and_each_version_takes_a_credit() {
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
async fn a_refusal_is_free_and_one_for_want_of_credits_says_so() {
    assert_eq!(charged(|_, _| reply("403 Forbidden", "", ""), &burns()).await, [Charge::Free]);
    assert_eq!(charged(|_, _| reply("402 Payment Required", "", ""), &burns()).await, [Charge::Refused]);
    let spent = r#"{"metadata":{"credit":{"used":5,"limit":5,"resetAt":"2026-04-01T00:00:00Z"}},"status":false}"#;
    assert_eq!(charged(move |_, _| reply("429 Too Many Requests", "", spent), &burns()).await, [Charge::Refused]);
}

#[tokio::test]
async fn what_was_never_sent_is_free() {
    let purse = Purse::of(9);
    let client =
        Client::with_tuning(&source("http://127.0.0.1:9"), Clock::manual(now()), quick(), purse.clone()).expect("a client");
    client.fetch(&burns(), None, None).await;
    assert_eq!(purse.charges(), [Charge::Free; 3]);
}

#[tokio::test]
async fn a_fetch_that_is_given_up_may_have_cost_what_was_under_way() {
    let (fake, purse) = (FakeServer::start(|_, _| FakeReply::Mute).await, Purse::of(9));
    let (client, request) = (paid(&fake, &purse), burns());
    let fetching = client.fetch(&request, None, None);
    assert!(tokio::time::timeout(Duration::from_millis(300), fetching).await.is_err());
    assert_eq!(purse.charges(), [Charge::Perhaps]);
}

#[tokio::test]
async fn a_walk_takes_the_credits_of_all_its_pages_or_waits_for_another_slot() {
    let walk = |_: usize, target: &str| {
        let page = target.split("page=").nth(1).and_then(|rest| rest.split('&').next()?.parse().ok()).unwrap_or(1);
        pages(page, 3, 3, &rows(&[u32::try_from(page).expect("small")]))
    };
    for (credits, sent) in [(3, 3), (2, 1), (1, 1), (0, 0)] {
        let (fake, purse) = (FakeServer::start(walk).await, Purse::of(credits));
        let fetched = paid(&fake, &purse).fetch(&events(), None, None).await;
        assert_eq!((purse.charges().len(), fake.count()), (sent, sent), "{credits} credits");
        match sent {
            3 => assert_eq!(event_days(&fetched).len(), 3),
            1 => assert_eq!((failure(&fetched).kind, fetched.pages), (FailureKind::Deferred, 3), "and it says what it costs"),
            _ => assert_eq!(failure(&fetched).kind, FailureKind::QuotaExhausted),
        }
    }
}
