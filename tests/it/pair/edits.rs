//! Config and rules of the two instances, and edits of them while the instances run: on one side, or on both with some time between.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use super::{PairSoak, fault_log::Cause};
use crate::it::soak::{RULES, world::LEAD_RULE};

/// The time limit until an edit on both sides has an effect.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(150);
/// The time until another burn, if the new receiver did not get the last one.
const BURN_AGAIN_AFTER: Duration = Duration::from_secs(40);
/// The credits above the current count that a low budget leaves.
const LOW_BUDGET: u64 = 600;

/// The variable part of an instance's files.
#[derive(Clone, Debug, Default)]
pub struct HostFiles {
    extra_rule: Option<u32>,
    is_broken: bool,
    has_extra_receiver: bool,
    has_external_url: bool,
    budget: Option<u64>,
}

/// The constant part of the config.
pub struct Surroundings {
    pub source_port: u16,
    pub api_key: String,
    /// The addresses of the receivers.
    pub receivers: [std::net::SocketAddr; 3],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Edit {
    /// A new rule, with a number for its name.
    Rule(u32),
    /// A new receiver in the route.
    Receiver,
    /// A key that needs a restart.
    RestartKey,
    /// A rule file with a syntax error.
    BrokenRules,
    /// A budget that is almost used up.
    LowBudget(u64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EditStage {
    SecondSide,
    Effect,
    FirstRevert,
    SecondRevert,
}

/// An edit in progress.
#[derive(Debug)]
pub struct EditInProgress {
    edit: Edit,
    order: [usize; 2],
    is_on_both: bool,
    stage: EditStage,
    next_at: Instant,
    /// Since when it is on both sides.
    since: Instant,
    /// The facts that must be notified while it is on both sides.
    expected: BTreeSet<String>,
}

impl HostFiles {
    fn set(&mut self, edit: Edit, is_on: bool) {
        match edit {
            Edit::Rule(number) => self.extra_rule = is_on.then_some(number),
            Edit::Receiver => self.has_extra_receiver = is_on,
            Edit::RestartKey => self.has_external_url = is_on,
            Edit::BrokenRules => self.is_broken = is_on,
            Edit::LowBudget(credits) => self.budget = is_on.then_some(credits),
        }
    }

    pub fn rules(&self) -> String {
        if self.is_broken {
            return "[[rule]]\nalert = ".to_owned();
        }
        let other = "change.kind != 'rescheduled'";
        let rules = RULES.replace(other, &format!("{other} && change.kind != 'resized'"));
        let extra =
            self.extra_rule.map(|number| format!("\n[[rule]]\nalert = \"Extra{number}\"\non = \"unlock\"\nwithin = [\"30d\"]\n"));
        format!("{rules}{LEAD_RULE}{}", extra.unwrap_or_default())
    }

    /// The config of an instance with this database URL, whose pages and metrics are at `port`.
    pub fn config(&self, around: &Surroundings, store: &str, port: u16) -> String {
        let Surroundings { source_port, api_key, receivers: [steady, moody, extra] } = around;
        let budget = self.budget.map(|credits| format!("[budget]\nmonthly_credits = {credits}\n")).unwrap_or_default();
        let external_url = if self.has_external_url { "external_url = \"http://pages.localhost\"" } else { "" };
        let (route, receiver) = match self.has_extra_receiver {
            true => (", \"extra\"", format!("[[receiver]]\nname = \"extra\"\ntype = \"webhook\"\nurl = \"http://{extra}/hook\"")),
            false => ("", String::new()),
        };
        format!(
            r#"
[source]
base_url = "http://source.localhost:{source_port}"
legacy_base_url = "http://source.localhost:{source_port}"
allow_http_networks = ["127.0.0.0/8"]
api_key = "{api_key}"
requests_per_minute = 60000
timeout = "2s"
[schedule]
token_list = "*/2 * * * * *"
upcoming = "off"
unlock_events = "*/5 * * * * *"
burn = "*/2 * * * * *"
buyback = "off"
allocations = "off"
evaluate = "* * * * * *"
{budget}
[store]
url = "{store}"
[http]
listen = "127.0.0.1:{port}"
{external_url}
[log]
format = "human"
[delivery]
retry = ["0s", "1s", "1s", "2s", "4s", "8s", "8s", "8s", "8s", "8s", "8s"]
timeout = "1s"
max_per_hour = 1000000
[[receiver]]
name = "steady"
type = "webhook"
url = "http://{steady}/hook"
[[receiver]]
name = "moody"
type = "webhook"
url = "http://{moody}/hook"
{receiver}
[route]
receivers = ["steady", "moody"{route}]
group_by = ["alertname", "token"]
group_wait = "0s"
group_interval = "1s"
"#
        )
    }
}

impl PairSoak {
    pub fn write_files(&self, at: usize) {
        let host = &self.hosts[at];
        host.write("cliffwatch.toml", &self.files[at].config(&self.around, &self.stores[at], self.ports[at]));
        host.write("rules/r.toml", &self.files[at].rules());
    }

    fn put_edit(&mut self, at: usize, edit: Edit, is_on: bool) {
        self.files[at].set(edit, is_on);
        self.write_files(at);
        let cause = match (edit, is_on) {
            (Edit::BrokenRules, _) => Cause::BrokenRules,
            (Edit::RestartKey, _) => Cause::RestartKey,
            (Edit::LowBudget(_), _) => Cause::LowBudget,
            (Edit::Receiver, false) => Cause::LeftReceiver,
            (Edit::Rule(_), _) | (Edit::Receiver, true) => Cause::OtherEdit,
        };
        match (cause, is_on) {
            (Cause::LeftReceiver, _) | (_, true) => self.fault_log.begin(cause, Some(at)),
            (_, false) => self.fault_log.end(cause, Some(at)),
        }
    }

    fn begin_edit(&mut self) {
        self.edits += 1;
        let edit = match self.random.u32(..5) {
            0 => Edit::Rule(self.edits),
            1 => Edit::Receiver,
            2 => Edit::RestartKey,
            3 => Edit::BrokenRules,
            _ => Edit::LowBudget(self.used_credits() + LOW_BUDGET),
        };
        // Credits are only bounded if no side has more of them, and an error stays on one side.
        let is_on_both = matches!(edit, Edit::LowBudget(_)) || (edit != Edit::BrokenRules && self.random.u32(..3) > 0);
        let first = self.random.usize(..2);
        let name = format!("{edit:?}").split('(').next().unwrap_or_default().to_owned();
        self.count(&format!("config: {name}{}", if is_on_both { "" } else { " on one side" }));
        self.put_edit(first, edit, true);
        let wait = match (edit, is_on_both) {
            (Edit::LowBudget(_), _) => Duration::ZERO,
            (_, true) => self.some_millis(0, 40_000),
            (_, false) => self.some_millis(15_000, 120_000),
        };
        let now = Instant::now();
        let stage = EditStage::SecondSide;
        let order = [first, 1 - first];
        self.edit =
            Some(EditInProgress { edit, order, is_on_both, stage, next_at: now + wait, since: now, expected: BTreeSet::new() });
    }

    /// Continues the current edit, or begins the next one.
    pub fn continue_edits(&mut self, now: Instant) {
        let Some(mut current) = self.edit.take() else {
            if now >= self.next_edit_at {
                self.begin_edit();
            }
            return;
        };
        if now < current.next_at {
            self.edit = Some(current);
            return;
        }
        let [first, second] = current.order;
        match current.stage {
            EditStage::SecondSide => {
                if current.is_on_both {
                    self.put_edit(second, current.edit, true);
                    current.since = now;
                    current.expected = self.expected_effect(current.edit);
                }
                current.next_at = now + self.some_millis(5_000, 30_000);
                current.stage = EditStage::Effect;
            }
            EditStage::Effect => {
                if current.is_on_both && !self.has_effect(&current) && now - current.since < EFFECT_TIMEOUT {
                    // The active instance may have routed the burn just before it read the files.
                    if current.edit == Edit::Receiver && now >= current.next_at + BURN_AGAIN_AFTER {
                        current.expected = self.expected_effect(current.edit);
                        current.next_at = now;
                    }
                    self.edit = Some(current);
                    return;
                }
                self.check_edit(&current);
                self.put_edit(first, current.edit, false);
                current.next_at = now + if current.is_on_both { self.some_millis(0, 20_000) } else { Duration::ZERO };
                current.stage = EditStage::FirstRevert;
            }
            EditStage::FirstRevert => {
                self.put_edit(second, current.edit, false);
                current.next_at = now + self.some_millis(4_000, 20_000);
                current.stage = EditStage::SecondRevert;
            }
            EditStage::SecondRevert => return,
        }
        self.edit = Some(current);
    }

    /// Reverts the current edit on both sides at once.
    pub fn end_edits(&mut self) {
        if let Some(current) = self.edit.take() {
            for at in current.order {
                self.put_edit(at, current.edit, false);
            }
            if let Edit::Rule(number) = current.edit {
                self.reverted.insert(number);
            }
        }
        self.next_edit_at = Instant::now() + Duration::from_secs(1 << 20);
    }

    fn expected_effect(&mut self, edit: Edit) -> BTreeSet<String> {
        match edit {
            Edit::Rule(number) => {
                let ahead = self.world.facts().into_iter();
                let firing =
                    ahead.filter(|fact| fact.starts_with("Ahead ") && fact.contains(" firing ") && self.world.is_far(fact));
                firing.map(|fact| fact.replacen("Ahead ", &format!("Extra{number} "), 1)).collect()
            }
            Edit::Receiver => {
                let before = self.world.facts();
                self.world.burn(&mut self.random);
                self.world.facts().difference(&before).filter(|fact| fact.starts_with("Burned ")).cloned().collect()
            }
            Edit::RestartKey | Edit::BrokenRules | Edit::LowBudget(_) => BTreeSet::new(),
        }
    }

    fn has_effect(&self, current: &EditInProgress) -> bool {
        self.lacking_effect(current).is_empty()
    }

    fn lacking_effect(&self, current: &EditInProgress) -> Vec<String> {
        let books = if current.edit == Edit::Receiver { &self.books[2] } else { &self.books[0] };
        current.expected.iter().filter(|fact| !books.has(fact)).cloned().collect()
    }

    /// Checks an edit just before it is reverted.
    fn check_edit(&mut self, current: &EditInProgress) {
        let lacking = self.lacking_effect(current);
        if !lacking.is_empty() {
            self.violate(format!("{:?} has no effect after {:?}: {lacking:?}", current.edit, current.since.elapsed()));
        }
        match current.edit {
            Edit::Rule(number) => {
                self.reverted.insert(number);
                let prefix = format!("Extra{number} ");
                let mut wrong = Vec::new();
                for books in &self.books {
                    for (fact, ids) in books.facts().into_iter().filter(|(fact, _)| fact.starts_with(&prefix)) {
                        if ids.len() > 1 || (fact.contains(" resolved ") && self.world.is_far(&fact)) {
                            wrong.push(format!("{fact}: {ids:?}"));
                        }
                    }
                }
                if !wrong.is_empty() {
                    self.violate(format!("the new rule was notified again or ended: {wrong:?}"));
                }
            }
            Edit::LowBudget(credits) => {
                let used = self.used_credits();
                println!("low budget: {used} credits used of {credits}");
                if used > credits {
                    self.violate(format!("{used} credits used of a budget of {credits}"));
                }
            }
            Edit::Receiver | Edit::RestartKey | Edit::BrokenRules => {}
        }
    }

    /// The credits that the source has counted.
    pub fn used_credits(&self) -> u64 {
        self.world.service.keys().expect("the keys").iter().map(|key| key.used).sum()
    }
}
