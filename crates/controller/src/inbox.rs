//! The one inbox: everything that can happen to the loop, one after the other.
//!
//! Facts are posted through a [`Handle`] into a bounded queue, so that a burst slows its sender
//! down and not us. Calls that are under way are tasks of the inbox itself: their ends never wait
//! behind facts, and one that panics comes back as what a panic means for its caller. The lease
//! and the wish to stop stand beside the queue, since they must not wait in it.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use sluice_engine::{Engine, Explanation, ServiceView};
use sluice_model::call::Reply;
use sluice_model::effect::{Existence, KubeOutcome};
use sluice_model::{EffectId, Event, Outcome, ServiceKey, Time};
use sluice_updater::{CallId, Numbers, Updaters};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{Id, JoinError, JoinSet};

use crate::clock::Clock;
use crate::journal::Journal;
use crate::updaters::Tally;

/// Something that has happened.
pub(crate) enum Mail {
    /// A fact for the engine.
    Fact(Event),
    /// Somebody wants to know something.
    Asked(Question),
    /// Azure's reply to a call, or what is known instead.
    Replied(CallId, Reply),
    /// How an effect on Kubernetes ended.
    KubeEnded(EffectId, Outcome),
    /// People have been told, or could not be.
    Told,
    /// The lease or the wish to stop has changed.
    Ordered(Orders),
    /// A deadline has come.
    Due,
}

/// A question, and the way back inside it.
pub(crate) type Question = Box<dyn FnOnce(&Inside<'_>) + Send>;

/// What a question may look at, between two turns.
pub(crate) struct Inside<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) updaters: &'a Updaters,
    pub(crate) tally: &'a Tally,
    pub(crate) journal: &'a Journal,
}

/// What stands above all facts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Orders {
    /// Nothing is begun at or after this moment; `None`: nothing at all.
    pub(crate) fence: Option<Time>,
    /// Nothing is begun any more.
    pub(crate) stop: bool,
    /// The lease was lost: the same, and the engine is to know.
    pub(crate) lost: bool,
}

impl Orders {
    /// Whether something may be begun now.
    pub(crate) fn allow(&self, now: Time) -> bool {
        !self.stop && !self.lost && self.fence.is_some_and(|until| now < until)
    }
}

/// What a task works at, so that its panic can be reported to whom it concerns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Errand {
    /// A request to Azure.
    Call(CallId),
    /// A write to Kubernetes.
    KubeWrite(EffectId),
    /// A question to Kubernetes.
    KubeLook(EffectId),
    /// A notice.
    Notice,
    /// The wish for another list, which makes no call of its own.
    Relist,
}

impl Errand {
    fn is_for_kube(self) -> bool {
        !matches!(self, Errand::Call(_) | Errand::Relist)
    }
}

/// The loop has ended, so nothing can be told to it or asked of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the control loop has stopped")
    }
}

impl std::error::Error for Closed {}

/// The way into the loop, for any number of threads.
#[derive(Clone)]
pub struct Handle {
    post: mpsc::Sender<Mail>,
    orders: watch::Sender<Orders>,
    turns: watch::Receiver<u64>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("turns", &*self.turns.borrow()).finish_non_exhaustive()
    }
}

impl Handle {
    /// Posts one fact; waits while the inbox is full.
    pub async fn post(&self, event: Event) -> Result<(), Closed> {
        self.post.send(Mail::Fact(event)).await.map_err(|_| Closed)
    }

    /// Whether the loop has ended, or is dropping what it had.
    pub fn is_closed(&self) -> bool {
        self.post.is_closed()
    }

    /// Nothing is begun at or after this moment of the loop's clock, which every renewal of the
    /// lease raises; `None`: nothing from now on. Calls that are on their way to the wire see it too.
    pub fn fence(&self, until: Option<Time>) {
        self.orders.send_if_modified(|orders| {
            let moved = orders.fence != until;
            orders.fence = until;
            moved
        });
    }

    /// The lease is lost: nothing is begun from this moment on, and the loop ends. Said beside the
    /// queue, since it must not wait behind a burst of facts.
    pub fn lead_no_more(&self) {
        self.orders.send_if_modified(|orders| {
            orders.fence = None;
            !std::mem::replace(&mut orders.lost, true)
        });
    }

    /// Whether something may be begun now, for whoever sends something that takes more than one step.
    pub fn may_begin(&self, clock: &impl Clock) -> bool {
        self.orders.borrow().allow(clock.now())
    }

    /// Begins nothing new; what is on the wire is awaited, and then the loop ends.
    pub fn stop(&self) {
        self.orders.send_if_modified(|orders| !std::mem::replace(&mut orders.stop, true));
    }

    /// Every service.
    pub async fn services(&self) -> Result<Vec<ServiceView>, Closed> {
        self.ask(|engine, _, _| engine.services()).await
    }

    /// Why one service is where it is.
    pub async fn explain(&self, key: ServiceKey) -> Result<Option<Explanation>, Closed> {
        self.ask(move |engine, _, _| engine.explain(&key)).await
    }

    /// What the updaters have done so far.
    pub async fn numbers(&self) -> Result<Numbers, Closed> {
        self.ask(|_, updaters, _| updaters.numbers().clone()).await
    }

    /// What the loop itself has counted.
    pub async fn tally(&self) -> Result<Tally, Closed> {
        self.ask(|_, _, tally| *tally).await
    }

    /// Comes back when the first difference has been worked off: every operation has succeeded or
    /// is parked with a reason.
    pub async fn wait_for_initial_sync(&self) -> Result<(), Closed> {
        self.wait_until(Engine::initial_sync_done).await
    }

    /// Comes back as soon as something holds; looks after every turn of the loop, and inside it, so
    /// it should look quickly. If it panics, so does this.
    pub async fn wait_until(
        &self,
        holds: impl Fn(&Engine) -> bool + Clone + Send + 'static,
    ) -> Result<(), Closed> {
        let mut turns = self.turns.clone();
        loop {
            turns.mark_unchanged();
            let holds = holds.clone();
            if self.ask(move |engine, _, _| holds(engine)).await? {
                return Ok(());
            }
            turns.changed().await.map_err(|_| Closed)?;
        }
    }

    /// The turns of the loop in which something happened, for whoever wants to look after them.
    pub(crate) fn turns(&self) -> watch::Receiver<u64> {
        self.turns.clone()
    }

    /// Asks inside the loop, between two turns; if the question panics, so does this.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Engine, &Updaters, &Tally) -> T + Send + 'static,
    ) -> Result<T, Closed> {
        self.look(move |inside| question(inside.engine, inside.updaters, inside.tally)).await
    }

    /// The same, with all that can be looked at.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Inside<'_>) -> T + Send + 'static,
    ) -> Result<T, Closed> {
        let (back, answer) = oneshot::channel();
        let question: Question = Box::new(move |inside| {
            // It only looks, so it leaves nothing half done when it panics; and that is its asker's affair.
            let answer = catch_unwind(AssertUnwindSafe(|| question(inside)));
            // Whoever asked may have gone; then nobody wants to know.
            let _ = back.send(answer);
        });
        self.post.send(Mail::Asked(question)).await.map_err(|_| Closed)?;
        answer.await.map_err(|_| Closed)?.map_or_else(|panic| resume_unwind(panic), Ok)
    }
}

/// The inbox of one loop.
pub struct Inbox {
    posted: mpsc::Receiver<Mail>,
    orders: watch::Receiver<Orders>,
    turns: watch::Sender<u64>,
    tasks: JoinSet<Mail>,
    errands: HashMap<Id, Errand>,
    /// How many of the tasks are calls to Kubernetes.
    kube_calls: usize,
    /// How many of those are notices.
    notices: usize,
    abandoned: bool,
    /// Facts that have waited at once at most.
    pub(crate) depth_max: usize,
    /// Tasks that panicked.
    pub(crate) panics: u64,
}

impl std::fmt::Debug for Inbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("under_way", &self.tasks.len()).finish_non_exhaustive()
    }
}

impl Inbox {
    /// An inbox that takes so many facts before those who post them wait.
    pub fn open(facts_max: usize) -> (Handle, Inbox) {
        let (post, posted) = mpsc::channel(facts_max.max(1));
        let (order, orders) = watch::channel(Orders::default());
        let (turn, turns) = watch::channel(0);
        let inbox = Inbox {
            posted,
            orders,
            turns: turn,
            tasks: JoinSet::new(),
            errands: HashMap::new(),
            kube_calls: 0,
            notices: 0,
            abandoned: false,
            depth_max: 0,
            panics: 0,
        };
        (Handle { post, orders: order, turns }, inbox)
    }

    /// The orders as they stand now, for tasks that look at them right before they begin.
    pub(crate) fn orders(&self) -> watch::Receiver<Orders> {
        self.orders.clone()
    }

    /// Sends somebody off; how it ended comes back as mail.
    pub(crate) fn send_off(&mut self, errand: Errand, task: impl Future<Output = Mail> + Send + 'static) {
        let id = self.tasks.spawn(task).id();
        self.kube_calls += usize::from(errand.is_for_kube());
        self.notices += usize::from(matches!(errand, Errand::Notice));
        self.errands.insert(id, errand);
    }

    /// How many calls to Kubernetes are under way.
    pub(crate) fn kube_calls(&self) -> usize {
        self.kube_calls
    }

    /// How many notices are under way.
    pub(crate) fn notices(&self) -> usize {
        self.notices
    }

    /// How many tasks are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.tasks.len()
    }

    /// The next thing that happens. Orders come before ends, ends before facts, and a deadline
    /// last: whoever takes mail looks at the clock anyway.
    pub(crate) async fn next(&mut self, clock: &impl Clock, deadline: Option<Time>) -> Mail {
        let due = async {
            match deadline {
                Some(at) => clock.sleep_until(at).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            Ok(()) = self.orders.changed() => Mail::Ordered(*self.orders.borrow_and_update()),
            Some(end) = self.tasks.join_next_with_id() => self.ended(end),
            mail = self.posted.recv(), if !self.abandoned => self.taken(mail),
            () = due => Mail::Due,
        }
    }

    /// What has happened already; never waits.
    pub(crate) fn at_hand(&mut self) -> Option<Mail> {
        if self.orders.has_changed().unwrap_or(false) {
            return Some(Mail::Ordered(*self.orders.borrow_and_update()));
        }
        if let Some(end) = self.tasks.try_join_next_with_id() {
            return Some(self.ended(end));
        }
        let mail = self.posted.try_recv().ok()?;
        Some(self.taken(Some(mail)))
    }

    fn taken(&mut self, mail: Option<Mail>) -> Mail {
        self.depth_max = self.depth_max.max(self.posted.len() + 1);
        mail.unwrap_or_else(|| {
            // Every handle is gone, so nobody can raise the fence or ask us to stop.
            self.abandoned = true;
            Mail::Ordered(Orders { fence: None, stop: true, lost: false })
        })
    }

    /// One turn of the loop is over: whoever waits for something may look.
    pub(crate) fn turned(&mut self, turn: u64) {
        self.turns.send_replace(turn);
    }

    fn ended(&mut self, end: Result<(Id, Mail), JoinError>) -> Mail {
        let id = end.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let errand = self.errands.remove(&id);
        self.kube_calls -= usize::from(errand.is_some_and(Errand::is_for_kube));
        self.notices -= usize::from(matches!(errand, Some(Errand::Notice)));
        let error = match end {
            Ok((_, mail)) => return mail,
            Err(error) => error,
        };
        let why = match error.try_into_panic() {
            Ok(panic) => format!("the task of this call panicked: {}", words(&*panic)),
            Err(error) => error.to_string(),
        };
        self.panics += 1;
        tracing::error!(task = ?errand, error = why, "task failed");
        match errand {
            // It may have panicked after the request was on the wire.
            Some(Errand::Call(call)) => Mail::Replied(call, Reply::lost(&why)),
            Some(Errand::KubeWrite(effect)) => {
                Mail::KubeEnded(effect, Outcome::Kube(KubeOutcome::Unavailable))
            }
            Some(Errand::KubeLook(effect)) => Mail::KubeEnded(effect, Outcome::Existence(Existence::Unclear)),
            Some(Errand::Notice | Errand::Relist) | None => Mail::Told,
        }
    }
}

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&'static str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}
