//! Answers that were made before. One that is asked for again goes out as it is kept, packed or not; one that is asked for by many at
//! once is made once, by a few workers that leave the processor to those who ask for what is kept.
//!
//! A page of a list is cut from the whole list, which is kept too: a walk over many pages makes the list once.

use std::{sync::Arc, thread::available_parallelism};

use chrono::NaiveDate;
use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter, sync};
use tokio::sync::Semaphore;

use super::{
    Refusal,
    answer::{Answer, Rows, Told},
    ask::Ask,
    pack::{MIN_PACKED, Packed},
};

/// What is kept, bytes. Beyond it goes what was not asked for again, or not lately.
const MAX_KEPT_BYTES: u64 = 64 << 20;
/// What an answer takes beside its payload, bytes.
const OVERHEAD: usize = 512;
/// Answers of a usual size that fit, for a table of the right size from the beginning.
const USUAL_ANSWERS: usize = 4096;
/// Answers that are made at once, where the machine has fewer processors.
const MIN_WORKERS: usize = 2;

/// What an answer is kept under: a question about the data as it was at one time.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// Of the data.
    pub generation: i64,
    /// The present day: defaults and `upcoming` depend on it.
    pub day: NaiveDate,
    /// What is asked.
    pub ask: Ask,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Form {
    Plain,
    Packed,
    /// All pages of a list.
    Whole,
}

/// An answer that can go out.
#[derive(Clone, Debug)]
pub struct Ready {
    /// It.
    pub answer: Arc<Answer>,
    /// Its end packed, where that was asked for and is worth it.
    pub packed: Option<Arc<Packed>>,
}

#[derive(Clone, Debug)]
enum Kept {
    Ready(Ready),
    Rows(Arc<Rows>),
}

#[derive(Clone, Debug)]
struct Bytes;

impl Weighter<(Question, Form), Kept> for Bytes {
    fn weight(&self, (_, form): &(Question, Form), kept: &Kept) -> u64 {
        let bytes = match kept {
            Kept::Rows(rows) => rows.len(),
            Kept::Ready(Ready { packed: Some(packed), .. }) => packed.len(),
            // Kept once more under another form, which shares the bytes.
            Kept::Ready(_) if *form == Form::Packed => 0,
            Kept::Ready(Ready { answer, .. }) => answer.tail.len(),
        };
        u64::try_from(bytes + OVERHEAD).unwrap_or(u64::MAX)
    }
}

/// See the module.
#[derive(Debug)]
pub struct Answers {
    kept: sync::Cache<(Question, Form), Kept, Bytes>,
    workers: Arc<Semaphore>,
}

impl Answers {
    pub fn new() -> Self {
        // One shard: the bound of a shard is that of its largest item, and a list of tokens is large.
        let options =
            OptionsBuilder::new().shards(1).estimated_items_capacity(USUAL_ANSWERS).weight_capacity(MAX_KEPT_BYTES).build();
        let kept = match options {
            Ok(options) => sync::Cache::with_options(options, Bytes, DefaultHashBuilder::default(), Default::default()),
            Err(_) => sync::Cache::with_weighter(USUAL_ANSWERS, MAX_KEPT_BYTES, Bytes),
        };
        let workers = available_parallelism().map_or(MIN_WORKERS, usize::from).max(MIN_WORKERS);
        Self { kept, workers: Arc::new(Semaphore::new(workers)) }
    }

    /// Forgets all: the data changed.
    pub fn clear(&self) {
        self.kept.clear();
    }

    /// The answer, where it was made before.
    pub fn find(&self, question: Question, wants_packed: bool) -> Result<Ready, Question> {
        let key = (question, if wants_packed { Form::Packed } else { Form::Plain });
        match self.kept.get(&key) {
            Some(Kept::Ready(ready)) => Ok(ready),
            _ => Err(key.0),
        }
    }

    /// The answer; `make` makes it where nobody did. It blocks, and is called at most once at a time for a question.
    ///
    /// # Errors
    /// What `make` answers. Nothing is kept of that.
    pub async fn get<M>(&self, question: Question, wants_packed: bool, make: M) -> Result<Ready, Refusal>
    where
        M: FnOnce(&Ask) -> Result<Told, Refusal> + Send + 'static,
    {
        if !wants_packed {
            return self.plain(question, make).await;
        }
        let key = (question.clone(), Form::Packed);
        let packing = async {
            let ready = self.plain(question, make).await?;
            if ready.answer.tail.len() < MIN_PACKED {
                return Ok::<_, Refusal>(Kept::Ready(ready));
            }
            let tail = ready.answer.tail.clone();
            let packed = self.work(move || Packed::of(&tail).map_err(|_| Refusal::internal("an answer cannot be packed")));
            Ok(Kept::Ready(Ready { packed: Some(Arc::new(packed.await?)), ..ready }))
        };
        ready(self.kept.get_or_insert_async(&key, packing).await?)
    }

    async fn plain<M>(&self, question: Question, make: M) -> Result<Ready, Refusal>
    where
        M: FnOnce(&Ask) -> Result<Told, Refusal> + Send + 'static,
    {
        let key = (question, Form::Plain);
        let making = async {
            let question = key.0.clone();
            let answer = match question.ask.page {
                None => match self.work(move || make(&question.ask)).await? {
                    Told::Whole(answer) => answer,
                    Told::Rows(_) => return Err(Refusal::internal("an answer without pages came in pages")),
                },
                Some(page) => {
                    let rows = self.rows(question, make).await?;
                    // A page is at most a copy of some hundred rows.
                    rows.page(page)
                }
            };
            Ok::<_, Refusal>(Kept::Ready(Ready { answer: Arc::new(answer), packed: None }))
        };
        ready(self.kept.get_or_insert_async(&key, making).await?)
    }

    async fn rows<M>(&self, question: Question, make: M) -> Result<Arc<Rows>, Refusal>
    where
        M: FnOnce(&Ask) -> Result<Told, Refusal> + Send + 'static,
    {
        // The same for every page.
        let key = (Question { ask: Ask { page: None, ..question.ask.clone() }, ..question.clone() }, Form::Whole);
        let making = async {
            match self.work(move || make(&question.ask)).await? {
                Told::Rows(rows) => Ok(Kept::Rows(Arc::new(rows))),
                Told::Whole(_) => Err(Refusal::internal("an answer with pages came without")),
            }
        };
        match self.kept.get_or_insert_async(&key, making).await? {
            Kept::Rows(rows) => Ok(rows),
            Kept::Ready(_) => Err(Refusal::internal("an answer with pages came without")),
        }
    }

    /// Runs what takes a while beside those who serve. Whoever asked may go meanwhile; the work keeps its place until it is done.
    async fn work<T: Send + 'static>(&self, run: impl FnOnce() -> Result<T, Refusal> + Send + 'static) -> Result<T, Refusal> {
        // It is never closed; were it to be, workers would only be uncounted.
        let place = Arc::clone(&self.workers).acquire_owned().await.ok();
        super::http::blocking(move || {
            let _place = place;
            run()
        })
        .await
    }
}

fn ready(kept: Kept) -> Result<Ready, Refusal> {
    match kept {
        Kept::Ready(ready) => Ok(ready),
        Kept::Rows(_) => Err(Refusal::internal("an answer came in pages")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;
    use crate::serve::ask::ROUTES;

    const PAGED: &str = "/v5/fundraising/investors/list";
    const WHOLE: &str = "/v1/fundraising/investors/list";

    fn question(path: &str, query: &str) -> Question {
        let route = ROUTES.iter().find(|route| route.path == path).unwrap();
        let ask = Ask::read(route, None, query).unwrap();
        Question { generation: 1, day: NaiveDate::default(), ask }
    }

    fn told(ask: &Ask, items: &[String]) -> Told {
        match ask.page {
            Some(_) => Told::Rows(Rows::of(items, None).unwrap()),
            None => Told::Whole(Answer { tail: items.concat().into(), paging: None, read_at: None, tag: String::new() }),
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn however_many_ask_at_once_an_answer_is_made_once() {
        for (path, wants_packed) in [(WHOLE, false), (WHOLE, true), (PAGED, false), (PAGED, true)] {
            let (answers, made) = (Arc::new(Answers::new()), Arc::new(AtomicUsize::new(0)));
            let mut asking = tokio::task::JoinSet::new();
            // Pages of one list are made from the same list.
            for page in 0..60 {
                let query = if path == PAGED { format!("page={}&pageSize=2", page % 3 + 1) } else { String::new() };
                let (answers, made) = (answers.clone(), made.clone());
                asking.spawn(async move {
                    let make = move |ask: &Ask| {
                        made.fetch_add(1, Ordering::SeqCst);
                        std::thread::sleep(std::time::Duration::from_millis(5));
                        Ok(told(ask, &["x".repeat(3_000), "y".repeat(3_000), "z".repeat(3_000)]))
                    };
                    answers.get(question(path, &query), wants_packed, make).await.unwrap().packed.is_some()
                });
            }
            let packed = asking.join_all().await;
            assert_eq!(made.load(Ordering::SeqCst), 1, "{path}");
            // The third page is empty, and too short to be packed.
            assert_eq!(packed.iter().any(|packed| *packed), wants_packed, "{path}");
            assert!(answers.find(question(path, if path == PAGED { "page=2&pageSize=2" } else { "" }), wants_packed).is_ok());
            answers.clear();
            assert!(answers.find(question(path, ""), wants_packed).is_err());
        }
    }

    #[tokio::test]
    async fn a_refusal_is_not_kept() {
        let answers = Answers::new();
        let refused = answers.get(question(WHOLE, ""), true, |_| Err(Refusal::internal("not now"))).await;
        assert_eq!(refused.unwrap_err().message, "not now");
        let answered = answers.get(question(WHOLE, ""), true, |ask| Ok(told(ask, &["now".into()]))).await;
        assert_eq!(answered.unwrap().answer.tail, "now");
    }

    #[tokio::test]
    async fn what_is_kept_stays_within_its_bound() {
        let answers = Answers::new();
        let megabyte = Arc::new("x".repeat(1 << 20));
        for generation in 0..200 {
            let (question, megabyte) = (Question { generation, ..question(WHOLE, "") }, megabyte.clone());
            answers.get(question, false, move |ask| Ok(told(ask, &[megabyte.to_string()]))).await.unwrap();
            assert!(answers.kept.weight() <= MAX_KEPT_BYTES, "{}", answers.kept.weight());
        }
        assert!(answers.kept.len() > 30, "it keeps what fits: {}", answers.kept.len());
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn an_answer_in_the_making_holds_up_nobody_who_asks_for_a_kept_one() {
        let answers = Arc::new(Answers::new());
        answers.get(question(WHOLE, ""), false, |ask| Ok(told(ask, &["kept".into()]))).await.unwrap();
        let gate = Arc::new(Mutex::new(()));
        let closed = gate.lock().unwrap();
        // More than there are workers, and none of them ends.
        let making: Vec<_> = (0..20)
            .map(|generation| {
                let (answers, gate) = (answers.clone(), gate.clone());
                tokio::spawn(async move {
                    let question = Question { generation: generation + 2, ..question(WHOLE, "") };
                    let make = move |ask: &Ask| {
                        drop(gate.lock());
                        Ok(told(ask, &["made".into()]))
                    };
                    answers.get(question, false, make).await.unwrap().answer.tail.clone()
                })
            })
            .collect();
        assert_eq!(answers.find(question(WHOLE, ""), false).unwrap().answer.tail, "kept");
        drop(closed);
        for made in making {
            assert_eq!(made.await.unwrap(), "made");
        }
    }
}
