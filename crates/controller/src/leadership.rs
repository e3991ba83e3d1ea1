//! Holds the lease: asks what the elector wants asked, and moves the loop's fence by what it says.
//!
//! ```text
//! elector ─▶ request ─▶ Lease ─▶ answer ─▶ elector ─▶ may act until …  ─▶ fence ─▶ loop, calls, writes
//! ```
//!
//! The fence is a moment, not a switch. Whoever sends compares it with the clock right before, so a
//! process that was frozen, starved or cut off for longer than that begins nothing when it goes on,
//! whether or not this task has run meanwhile. Who has led and may not any more does not try to
//! lead again: what it knows of Azure may be another leader's by now. It says so, and the process ends.
//!
//! Its clock is the real one, whatever the loop's clock does: a lease is an agreement with others.
//!
//! Missing on purpose: the rules of the election, which are [`Elector`]'s, without clock or wire.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use sluice_k8s::lease::{self, Answer, BadElection, Elector, Next, Place, Request, Timing};
use sluice_model::allow_deletion::{self, AllowedDeletions};
use sluice_model::{Event, Time};
use sluice_view::overview::Role;
use tokio::sync::{oneshot, watch};

use crate::clock::Clock;
use crate::inbox::Handle;
use crate::standing::Standing;

/// Reads and writes the Lease, one request at a time.
pub trait LeaseDoor: Send + Sync + 'static {
    /// Sends one request, once, within its limit.
    fn ask(&self, request: Request) -> impl Future<Output = Answer> + Send;
}

impl<D: LeaseDoor> LeaseDoor for Arc<D> {
    fn ask(&self, request: Request) -> impl Future<Output = Answer> + Send {
        D::ask(self, request)
    }
}

/// The Lease of a real cluster.
pub struct ClusterLease {
    client: ::kube::Client,
    place: Place,
    limit: Duration,
}

impl std::fmt::Debug for ClusterLease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterLease").field("place", &self.place).finish_non_exhaustive()
    }
}

impl ClusterLease {
    /// The Lease of this place.
    pub fn new(client: ::kube::Client, place: Place, timing: Timing) -> ClusterLease {
        ClusterLease { client, place, limit: timing.call_limit() }
    }
}

impl LeaseDoor for ClusterLease {
    async fn ask(&self, request: Request) -> Answer {
        lease::ask(&self.client, &self.place, &request, self.limit).await
    }
}

/// What becomes of the lease when the process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Farewell {
    /// Nothing of ours is on the wire any more: the next one may begin at once.
    Release,
    /// Something may be: the lease runs out by itself.
    Keep,
}

/// How holding the lease ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LeaseEnd {
    /// It was given back, or was not ours.
    Released,
    /// It was left to run out.
    Kept,
    /// We led, and may not any more; why.
    Lost(String),
}

/// One process that wants to lead.
pub struct Leadership<D, C> {
    elector: Elector,
    timing: Timing,
    door: D,
    clock: C,
    wall: fn() -> Timestamp,
    handle: Handle,
    /// A moment of our clock as one of the loop's.
    on_the_loops_clock: Box<dyn Fn(Time) -> Time + Send + Sync>,
    standing: watch::Sender<Standing>,
    has_led: bool,
    /// The held deletions that the operator allows, as the Lease last said.
    allowed: AllowedDeletions,
    /// What of that still counts, as the loop last said.
    in_force: Option<Consent>,
    /// The trouble that was last said.
    trouble: Option<String>,
}

impl<D, C> std::fmt::Debug for Leadership<D, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leadership").field("elector", &self.elector).finish_non_exhaustive()
    }
}

/// News for a loop that may be busy; it answers what of the consent still counts.
type Announcement = Pin<Box<dyn Future<Output = Option<Consent>> + Send>>;

/// The consent that the Lease names, and what of it still counts.
struct Consent {
    named: AllowedDeletions,
    in_force: AllowedDeletions,
}

impl<D: LeaseDoor, C: Clock> Leadership<D, C> {
    /// A candidate under a name that no other process has. The time of day is for people who read the
    /// Lease.
    pub fn new(
        identity: &str,
        timing: Timing,
        door: D,
        clock: C,
        wall: fn() -> Timestamp,
        handle: Handle,
    ) -> Result<Leadership<D, C>, BadElection> {
        Ok(Leadership {
            elector: Elector::new(identity, timing)?,
            timing,
            door,
            clock,
            wall,
            handle,
            on_the_loops_clock: Box::new(|at| at),
            standing: watch::Sender::default(),
            has_led: false,
            allowed: AllowedDeletions::default(),
            in_force: None,
            trouble: None,
        })
    }

    /// For a loop with a clock of its own.
    #[must_use]
    pub fn with_loop_clock(mut self, convert: impl Fn(Time) -> Time + Send + Sync + 'static) -> Self {
        self.on_the_loops_clock = Box::new(convert);
        self
    }

    /// How we stand, for whoever shows it.
    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.standing.subscribe()
    }

    /// Wants to lead, and leads, until a farewell is said or the lease is lost.
    pub async fn run(mut self, mut farewell: oneshot::Receiver<Farewell>) -> LeaseEnd {
        let mut announcing: Option<Announcement> = None;
        loop {
            if let Some(why) = self.lost() {
                return self.lose(why);
            }
            self.take_spent_consent_away();
            let now = self.clock.now();
            match self.elector.next(now, (self.wall)()) {
                Next::Wait(until) => {
                    let wake = self.wake_at(until);
                    tokio::select! {
                        biased;
                        words = &mut farewell => return self.part(words.unwrap_or(Farewell::Keep)).await,
                        consent = finished(&mut announcing) => {
                            announcing = None;
                            self.in_force = consent;
                        }
                        () = self.clock.sleep_until(wake) => {}
                    }
                }
                Next::Ask(request) => {
                    let answer = {
                        let limit = self.wake_at(now + self.timing.lease);
                        let asking = self.door.ask(request);
                        let mut asking = std::pin::pin!(asking);
                        loop {
                            tokio::select! {
                                biased;
                                answer = &mut asking => break Some(answer),
                                consent = finished(&mut announcing) => {
                                    announcing = None;
                                    self.in_force = consent;
                                }
                                () = self.clock.sleep_until(limit) => break None,
                            }
                        }
                    };
                    let Some(answer) = answer else { continue };
                    self.say_trouble(&answer);
                    self.elector.heard(self.clock.now(), answer);
                    if let Some(announcement) = self.follow(announcing.is_some()) {
                        announcing = Some(match announcing.take() {
                            // A busy loop has not taken the last news yet.
                            Some(before) => Box::pin(async move {
                                before.await;
                                announcement.await
                            }),
                            None => announcement,
                        });
                    }
                }
            }
        }
    }

    /// Not later than the moment at which we may not act any more.
    fn wake_at(&self, at: Time) -> Time {
        match self.elector.may_act_until().filter(|_| self.has_led) {
            Some(until) => at.min(until),
            None => at,
        }
    }

    /// Why we do not lead any more, if we have led.
    fn lost(&self) -> Option<String> {
        if !self.has_led {
            return None;
        }
        if let Some(other) = self.elector.holder().filter(|holder| *holder != self.elector.identity()) {
            return Some(format!("{other} holds the lease"));
        }
        if self.elector.leads(self.clock.now()) {
            return None;
        }
        let deadline = self.timing.renew_deadline.as_secs();
        let why = self.trouble.as_deref().unwrap_or("this process was not scheduled in time");
        Some(format!("the lease was not renewed within {deadline} s: {why}"))
    }

    /// Moves the fence and the standing to where the elector is now; gives the news that we lead, and which held
    /// deletions the operator allows, to be told to a loop that may be busy.
    fn follow(&mut self, is_announcing: bool) -> Option<Announcement> {
        let holder = self.elector.holder().map(str::to_owned);
        let is_ours = holder.as_deref() == Some(self.elector.identity());
        if !is_ours || !self.elector.leads(self.clock.now()) {
            if !self.has_led {
                self.stand(Standing { role: Role::Standby, leader: holder });
            }
            return None;
        }
        let until = self.elector.may_act_until()?;
        self.handle.fence(Some((self.on_the_loops_clock)(until)));
        self.stand(Standing { role: Role::Leader, leader: holder });
        let gained = !std::mem::replace(&mut self.has_led, true);
        let annotation = self.elector.annotation(allow_deletion::ANNOTATION).unwrap_or_default();
        let allowed = AllowedDeletions::parse(annotation);
        let changed = allowed != self.allowed;
        self.allowed.clone_from(&allowed);
        if !gained && !changed && (allowed.is_empty() || is_announcing) {
            return None;
        }
        let handle = self.handle.clone();
        Some(Box::pin(async move {
            // A loop that has ended needs no leader.
            if gained {
                let _ = handle.post(Event::LeadershipGained).await;
            }
            if changed {
                tracing::info!("allowed deletions changed on the lease");
                let _ = handle.post(Event::DeletionAllowed(allowed.clone())).await;
            }
            let in_force = handle.ask(|engine, _, _| engine.allowed_deletions().clone()).await.ok()?;
            Some(Consent { named: allowed, in_force })
        }))
    }

    /// Consent counts once, for the next leader too, so the next renewal writes only what still counts; not if the
    /// Lease names other consent than the loop has judged.
    fn take_spent_consent_away(&mut self) {
        let Some(Consent { named, in_force }) = self.in_force.take() else { return };
        let annotation = self.elector.annotation(allow_deletion::ANNOTATION).unwrap_or_default();
        if in_force != named && AllowedDeletions::parse(annotation) == named {
            let text = (!in_force.is_empty()).then(|| in_force.annotation());
            self.elector.annotate(allow_deletion::ANNOTATION, text);
            // That is no news to the loop.
            self.allowed = in_force;
        }
    }

    fn stand(&self, standing: Standing) {
        self.standing.send_if_modified(|before| {
            let is_new = *before != standing;
            if is_new {
                // A lease that nobody holds is ours in a moment.
                if let Some(leader) = &standing.leader {
                    tracing::info!(role = standing.role.word(), leader, "leadership changed");
                }
                *before = standing;
            }
            is_new
        });
    }

    fn say_trouble(&mut self, answer: &Answer) {
        let Answer::Failed(trouble) = answer else {
            self.trouble = None;
            return;
        };
        let words = trouble.to_string();
        match self.trouble.as_ref() == Some(&words) {
            true => tracing::debug!(error = words, "lease request failed; retrying"),
            false => tracing::warn!(error = words, "lease request failed; retrying"),
        }
        self.trouble = Some(words);
    }

    fn lose(mut self, why: String) -> LeaseEnd {
        self.handle.lead_no_more();
        self.elector.retire();
        self.stand(Standing { role: Role::Candidate, leader: None });
        tracing::error!(error = why, "lease lost; starting no new operations");
        LeaseEnd::Lost(why)
    }

    async fn part(mut self, farewell: Farewell) -> LeaseEnd {
        self.handle.fence(None);
        if farewell == Farewell::Keep {
            self.elector.retire();
            return LeaseEnd::Kept;
        }
        let Some(request) = self.elector.release((self.wall)()) else { return LeaseEnd::Released };
        match self.door.ask(request).await {
            Answer::Written(_) => {
                tracing::info!("lease released");
                LeaseEnd::Released
            }
            answer => {
                tracing::warn!(?answer, "lease not released; it expires on its own");
                LeaseEnd::Kept
            }
        }
    }
}

async fn finished(announcing: &mut Option<Announcement>) -> Option<Consent> {
    match announcing {
        Some(announcement) => announcement.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
