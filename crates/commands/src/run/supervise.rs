//! The parts of a running controller: started together, watched together, ended in order.
//!
//! ```text
//! watches ─▶ loop ─▶ Azure, Kubernetes
//! lease ──▶ fence ─┘      health, API ─▶ loop
//! ```
//!
//! A part that ends by itself or panics ends the process: a controller of which a half is dead would
//! look alive and do nothing. The end that is asked for begins with the loop, which awaits what is on the
//! wire; only when nothing is, the lease is given back.

use std::time::{Duration, SystemTime};

use futures::future::BoxFuture;
use jiff::Timestamp;
use sluice_controller::admin::{About, Admin, Almanac, Parts, ServeLimits, WindowLimits, serve, watch_lines};
use sluice_controller::{
    ApiServer, Azure, Clock, ClusterLease, Controller, Ended, Farewell, Handle, Inbox, Leadership, LeaseEnd,
    Monotonic, Standing, Why,
};
use sluice_k8s::connect::Connection;
use sluice_k8s::lease::Place;
use sluice_k8s::watch::Watches;
use sluice_k8s::write::Writer;
use sluice_model::seeded::Seeded;
use sluice_model::{Event, Time};
use sluice_view::overview::Role;
use tokio::sync::{oneshot, watch};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use super::prepare::{self, Prepared};
use super::signals::{Signal, Signals};
use crate::config::Config;
use crate::failure::{Failure, exit};
use crate::lease;
#[cfg(feature = "lab")]
use crate::pace::{FastClock, Paced, stretched};

/// Facts that wait at once at most; then the watches wait.
const INBOX_MAX: usize = 1_024;
/// How much longer than its grace a loop may take to end before it counts as stuck.
const STUCK_AFTER: Duration = Duration::from_secs(5);

/// What has ended.
enum Part {
    Loop(Ended),
    Watches,
    Lease(LeaseEnd),
    Listener,
}

/// Works until it is asked to end or cannot go on; `heed` does what other signals ask for.
pub fn work<'a>(
    prepared: Prepared,
    signals: &'a mut Signals,
    heed: &'a (dyn Fn(Signal) + Sync),
) -> BoxFuture<'a, Result<(), Failure>> {
    Box::pin(async move {
        let (azure, real) = (prepared.azure.clone(), Monotonic::start());
        // One kind of clock in each build, so that the loop is compiled once.
        #[cfg(not(feature = "lab"))]
        let crew = Crew::start(prepared, azure, real, real, |at| at)?;
        #[cfg(feature = "lab")]
        let crew = {
            let factor = prepared.time_factor;
            if factor != 1.0 {
                tracing::warn!(factor, "clock runs faster than real time; use only with the emulator");
            }
            let fast = FastClock::start(factor);
            // The loop's clock is read first, so that whatever holds us up in between only brings the
            // fence nearer.
            let convert = move |at: Time| {
                let now = fast.now();
                now + stretched(at.since(real.now()), factor)
            };
            Crew::start(prepared, Paced::new(azure, factor), fast, real, convert)?
        };
        crew.watch_over(signals, heed).await
    })
}

/// All parts at work.
struct Crew {
    parts: JoinSet<Part>,
    handle: Handle,
    /// The watches and what else nobody needs once the loop has ended.
    dispensable: Vec<AbortHandle>,
    farewell: Option<oneshot::Sender<Farewell>>,
    close: watch::Sender<bool>,
    grace: Duration,
    clock: Monotonic,
}

impl Crew {
    fn start<A: Azure, C: Clock>(
        prepared: Prepared,
        azure: A,
        clock: C,
        real: Monotonic,
        on_the_loops_clock: impl Fn(Time) -> Time + Send + Sync + 'static,
    ) -> Result<Crew, Failure> {
        let Prepared {
            config,
            #[cfg(feature = "lab")]
            time_factor,
            listeners,
            connection,
            cluster_id,
            calls,
            instance,
            namespace,
            ..
        } = prepared;
        let Connection { client, lease_client, .. } = connection;
        let (handle, inbox) = Inbox::open(INBOX_MAX);
        let mut parts = JoinSet::new();

        let selection = config.selection();
        let serves_all = selection.class.is_none();
        let watches = Watches::new(client.clone(), selection);
        let lease_name = config.leader_election.name.clone();
        let writer = Writer::new(client, serves_all, instance.clone()).with_fence({
            let (handle, clock) = (handle.clone(), clock.clone());
            move || handle.may_begin(&clock)
        });
        // Without an election there is no Lease that could be spoken about.
        let writer = match config.leader_election.enabled {
            true => writer.with_home(&namespace, &lease_name),
            false => writer,
        };
        let settings = settings(&config, &cluster_id);
        #[cfg(feature = "lab")]
        let settings = crate::pace::settings(settings, time_factor);
        let window_limits = WindowLimits::from(&settings.updaters);
        let kube = ApiServer::new(writer, watches.clone());
        let controller = Controller::new(settings, inbox, azure, kube, clock.clone());

        let identity = lease::identity(&instance);
        let (farewell, heard) = oneshot::channel();
        let standing = if config.leader_election.enabled {
            let timing = config.lease_timing();
            let place = Place { namespace: namespace.clone(), name: lease_name };
            let door = ClusterLease::new(lease_client, place, timing);
            let leadership =
                Leadership::new(&identity, timing, door, real, Timestamp::now, handle.clone())
                    .map_err(|error| Failure { code: exit::WRONG, error: error.into(), hint: None })?;
            let leadership = leadership.with_loop_clock(on_the_loops_clock);
            let standing = leadership.standing();
            parts.spawn(async move { Part::Lease(leadership.run(heard).await) });
            standing
        } else {
            parts.spawn(lead_alone(handle.clone(), heard));
            watch::channel(Standing { role: Role::Leader, leader: Some(identity.clone()) }).1
        };

        let almanac = Almanac::new(clock, SystemTime::now());
        #[cfg(feature = "lab")]
        let almanac = almanac.faster(time_factor);
        let admin = Admin::new(Parts {
            handle: handle.clone(),
            almanac,
            about: About { identity, cluster_id, version: env!("CARGO_PKG_VERSION").to_owned() },
            standing,
            watches: watch_lines(watches.progress()),
            calls,
            window_limits,
            access: listeners.access,
        });
        let (close, closed) = watch::channel(false);
        for (listener, tls, router, limits) in [
            (listeners.health, None, admin.health_router(), ServeLimits::HEALTH),
            (listeners.api, listeners.tls, admin.api_router(), ServeLimits::API),
        ] {
            let mut closed = closed.clone();
            parts.spawn(async move {
                let stop = async move {
                    // Whoever could close it is gone: then nobody needs it.
                    let _ = closed.wait_for(|closed| *closed).await;
                };
                serve(listener, tls, router, limits, stop).await;
                Part::Listener
            });
        }

        let facts = handle.clone();
        let mut dispensable = vec![parts.spawn(async move {
            watches.run(facts).await;
            Part::Watches
        })];
        // The past of the dashboard's charts.
        let history = admin.keep_history();
        dispensable.push(parts.spawn(async move {
            history.await;
            Part::Listener
        }));
        if let Some(renewals) = listeners.renewals {
            dispensable.push(parts.spawn(async move { match renewals.run().await {} }));
        }
        parts.spawn(async move { Part::Loop(controller.run().await) });
        let grace = config.process.shutdown_grace;
        let farewell = Some(farewell);
        Ok(Crew { parts, handle, dispensable, farewell, close, grace, clock: real })
    }

    /// Waits for the end, whoever brings it.
    async fn watch_over(
        mut self,
        signals: &mut Signals,
        heed: &(dyn Fn(Signal) + Sync),
    ) -> Result<(), Failure> {
        let mut lost: Option<String> = None;
        let mut stuck_at: Option<Time> = None;
        let mut is_asked = false;
        loop {
            let stuck = async {
                match stuck_at {
                    Some(at) => self.clock.sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::End if is_asked => {
                        let error = anyhow::anyhow!(
                            "second signal received: exiting without waiting for in-flight requests"
                        );
                        return Err(Failure { code: exit::FAILED, error, hint: None });
                    }
                    Signal::End => {
                        tracing::info!(grace = ?self.grace, "shutting down; waiting for in-flight requests");
                        is_asked = true;
                        self.handle.stop();
                        stuck_at = Some(self.clock.now() + self.grace + STUCK_AFTER);
                    }
                    other => heed(other),
                },
                () = stuck => {
                    let error = anyhow::anyhow!("shutdown timed out: the controller loop did not stop");
                    let code = if lost.is_some() { exit::LEASE } else { exit::FAILED };
                    return Err(Failure { code, error, hint: None });
                }
                part = self.parts.join_next() => match part {
                    Some(Ok(Part::Loop(ended))) => return self.end(ended, lost).await,
                    Some(Ok(Part::Lease(LeaseEnd::Lost(why)))) => {
                        lost = Some(why);
                        stuck_at = Some(self.clock.now() + self.grace + STUCK_AFTER);
                    }
                    // They end when there is nobody left to tell; the loop is about to say why.
                    Some(Ok(Part::Watches)) if self.handle.is_closed() => {
                        stuck_at = stuck_at.or(Some(self.clock.now() + STUCK_AFTER));
                    }
                    Some(Ok(Part::Watches)) => return Err(exited("the Kubernetes watches")),
                    Some(Ok(Part::Lease(_))) => return Err(exited("leader election")),
                    Some(Ok(Part::Listener)) => return Err(exited("a listener")),
                    Some(Err(error)) => return Err(failed(&format!("a task of the controller failed: {error}"))),
                    None => return Err(exited("every task of the controller")),
                },
            }
        }
    }

    /// The loop has ended; everybody else follows.
    async fn end(mut self, ended: Ended, mut lost: Option<String>) -> Result<(), Failure> {
        let limit = self.clock.now() + STUCK_AFTER;
        self.dismiss(limit, &mut lost).await;
        let farewell = match ended.abandoned {
            0 => Farewell::Release,
            abandoned => {
                tracing::warn!(count = abandoned, "lease not released: requests in flight");
                Farewell::Keep
            }
        };
        // Whoever has lost the lease listens no more.
        let _ = self.farewell.take().map(|line| line.send(farewell));
        self.close.send_replace(true);
        let others = async {
            while let Some(part) = self.parts.join_next().await {
                note_lost_lease(part, &mut lost);
            }
        };
        tokio::select! {
            () = others => {}
            () = self.clock.sleep_until(limit) => tracing::warn!("shutdown timed out: some tasks did not stop"),
        }
        match ended.why {
            Why::Asked => Ok(()),
            Why::LeadershipLost => {
                let why = lost.unwrap_or_else(|| "not renewed in time".to_owned());
                Err(Failure {
                    code: exit::LEASE,
                    error: anyhow::anyhow!("lease lost: {why}"),
                    hint: Some(
                        "restart the process, as the kubelet does; another replica takes over meanwhile"
                            .into(),
                    ),
                })
            }
        }
    }
}

impl Crew {
    /// Ends those that are no longer needed. They only read, so none of them can keep the Lease.
    async fn dismiss(&mut self, limit: Time, lost: &mut Option<String>) {
        self.dispensable.iter().for_each(AbortHandle::abort);
        let Crew { parts, dispensable, .. } = self;
        let gone = async {
            while !dispensable.iter().all(AbortHandle::is_finished) {
                let Some(part) = parts.join_next().await else { break };
                note_lost_lease(part, lost);
            }
        };
        tokio::select! {
            () = gone => {}
            () = self.clock.sleep_until(limit) => {}
        }
    }
}

/// The loop may end before the part that knows why the lease was lost.
fn note_lost_lease(ended: Result<Part, JoinError>, lost: &mut Option<String>) {
    if let Ok(Part::Lease(LeaseEnd::Lost(why))) = ended {
        *lost = Some(why);
    }
}

/// Without an election nobody competes, so the lease is held for good.
async fn lead_alone(handle: Handle, heard: oneshot::Receiver<Farewell>) -> Part {
    tracing::warn!("leader election is disabled; run exactly one replica");
    handle.fence(Some(Time::NEVER));
    // A loop that has ended needs no leader.
    let _ = handle.post(Event::LeadershipGained).await;
    let _ = heard.await;
    Part::Lease(LeaseEnd::Released)
}

fn exited(task: &str) -> Failure {
    failed(&format!("{task} exited unexpectedly"))
}

fn failed(what: &str) -> Failure {
    Failure {
        code: exit::FAILED,
        error: anyhow::anyhow!("{what}; shutting down"),
        hint: Some("this is a bug in Sluice; report it with the log above".into()),
    }
}

/// What the loop runs with.
fn settings(config: &Config, cluster_id: &str) -> sluice_controller::Config {
    sluice_controller::Config {
        engine: config.engine(cluster_id),
        updaters: config.updaters(),
        limits: config.limits(),
        seed: prepare::seed(),
        seeded: Seeded::NONE,
    }
}

#[cfg(test)]
mod tests {
    use sluice_controller::Tally;

    use super::*;

    /// A crew without a controller, and the end of the line at which its leader listens.
    fn crew() -> (Crew, oneshot::Receiver<Farewell>) {
        let (handle, inbox) = Inbox::open(1);
        let mut parts = JoinSet::new();
        let eyes = parts.spawn(async move {
            // As long as there are watches there is somebody to tell.
            let _inbox = inbox;
            std::future::pending().await
        });
        let (farewell, heard) = oneshot::channel();
        let close = watch::channel(false).0;
        let (grace, clock) = (Duration::from_secs(1), Monotonic::start());
        (
            Crew { parts, handle, dispensable: vec![eyes], farewell: Some(farewell), close, grace, clock },
            heard,
        )
    }

    async fn end_of(crew: Crew) -> Result<(), Failure> {
        crew.watch_over(&mut Signals::listen().unwrap(), &|_| ()).await
    }

    fn ended(why: Why, abandoned: usize) -> Part {
        Part::Loop(Ended { why, abandoned, tally: Tally::default() })
    }

    #[tokio::test]
    async fn a_part_that_panics_or_ends_by_itself_ends_the_process() {
        let (mut one, _heard) = crew();
        one.parts.spawn(async { panic!("a part that was told to panic") });
        let failure = end_of(one).await.unwrap_err();
        let text = failure.error.to_string();
        assert!(failure.code == exit::FAILED && text.contains("a task of the controller failed"), "{text}");

        for (part, words) in [
            (Part::Watches, "the Kubernetes watches exited unexpectedly; shutting down"),
            (Part::Listener, "a listener exited unexpectedly"),
            (Part::Lease(LeaseEnd::Kept), "leader election exited unexpectedly"),
        ] {
            let (mut one, _heard) = crew();
            one.parts.spawn(async { part });
            let failure = end_of(one).await.unwrap_err();
            assert!(failure.error.to_string().contains(words), "{:#}", failure.error);
        }
    }

    #[tokio::test]
    async fn the_lease_is_given_back_only_when_nothing_is_on_the_wire() {
        for (abandoned, expected) in [(0, Farewell::Release), (2, Farewell::Keep)] {
            let (mut one, heard) = crew();
            one.parts.spawn(async move { ended(Why::Asked, abandoned) });
            end_of(one).await.unwrap();
            assert_eq!(heard.await, Ok(expected));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_lease_is_said_with_its_reason_when_the_loop_has_ended() {
        let (mut one, _heard) = crew();
        one.parts.spawn(async { Part::Lease(LeaseEnd::Lost("another replica holds it".into())) });
        one.parts.spawn(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            ended(Why::LeadershipLost, 0)
        });
        let failure = end_of(one).await.unwrap_err();
        assert_eq!(
            (failure.code, failure.error.to_string().as_str()),
            (exit::LEASE, "lease lost: another replica holds it")
        );
    }

    #[tokio::test(start_paused = true)]
    async fn watches_that_end_before_the_loop_has_said_why_it_ends_are_no_failure() {
        for (why, code) in [(Why::Asked, None), (Why::LeadershipLost, Some(exit::LEASE))] {
            let (mut one, _heard) = crew();
            // The inbox goes, so that nobody is left to be told.
            one.dispensable.drain(..).for_each(|eyes| eyes.abort());
            assert!(one.parts.join_next().await.is_some_and(|it| it.is_err_and(|it| it.is_cancelled())));
            one.parts.spawn(async { Part::Watches });
            one.parts.spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                ended(why, 0)
            });
            let end = end_of(one).await;
            assert_eq!(end.err().map(|failure| failure.code), code);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_is_stuck_does_not_keep_a_process_that_has_lost_its_lease() {
        let (mut one, _heard) = crew();
        one.parts.spawn(async { Part::Lease(LeaseEnd::Lost("another replica holds it".into())) });
        let failure = end_of(one).await.unwrap_err();
        assert_eq!(failure.code, exit::LEASE);
    }
}
