//! The lease and the loop: who may begin something, and until when.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use sluice_controller::{Clock, Farewell, Inbox, Leadership, LeaseDoor, LeaseEnd, Monotonic, Standing, Why};
use sluice_k8s::Trouble;
use sluice_k8s::lease::{Answer, Request, Timing};
use sluice_model::allow_deletion::{ANNOTATION, AllowedDeletions, Fingerprint};
use sluice_model::{ObjectName, ServiceKey, Time};
use sluice_view::overview::Role;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::azure::Behaviour;
use crate::{World, config};

/// What becomes of a request about the Lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mood {
    Good,
    /// It is answered with an error.
    Away,
    /// It is never answered.
    Hangs,
    /// A write is done, and its answer is lost.
    Forgets,
}

/// A Lease, and an API server in a mood.
struct Shelf {
    clock: Monotonic,
    lease: Mutex<Option<Lease>>,
    mood: Mutex<Mood>,
    renewals: Mutex<Vec<Time>>,
}

impl Shelf {
    fn new(clock: Monotonic) -> Arc<Shelf> {
        let (lease, mood) = (Mutex::default(), Mutex::new(Mood::Good));
        Arc::new(Shelf { clock, lease, mood, renewals: Mutex::default() })
    }

    fn held_by(clock: Monotonic, holder: &str) -> Arc<Shelf> {
        let shelf = Shelf::new(clock);
        shelf.give_to(holder);
        shelf
    }

    fn feel(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
    }

    fn give_to(&self, holder: &str) {
        let spec = LeaseSpec { holder_identity: Some(holder.into()), ..LeaseSpec::default() };
        self.store(Lease { spec: Some(spec), ..Lease::default() });
    }

    fn holder(&self) -> Option<String> {
        self.lease.lock().unwrap().as_ref()?.spec.as_ref()?.holder_identity.clone()
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.lease.lock().unwrap().as_ref()?.metadata.annotations.as_ref()?.get(name).cloned()
    }

    /// When the writes were sent whose success was answered; the last one at the end.
    fn renewals(&self) -> Vec<Time> {
        self.renewals.lock().unwrap().clone()
    }

    fn store(&self, mut lease: Lease) -> Box<Lease> {
        let mut shelf = self.lease.lock().unwrap();
        let version = shelf.as_ref().and_then(|old| old.metadata.resource_version.as_deref());
        let version: u64 = version.map_or(0, |version| version.parse().unwrap());
        lease.metadata.resource_version = Some((version + 1).to_string());
        *shelf = Some(lease.clone());
        Box::new(lease)
    }

    fn answer(&self, request: Request) -> Answer {
        let there = self.lease.lock().unwrap().clone();
        match (request, there) {
            (Request::Read, None) => Answer::Missing,
            (Request::Read, Some(lease)) => Answer::Found(Box::new(lease)),
            (Request::Create(lease), None) => Answer::Written(self.store(*lease)),
            (Request::Replace(lease), Some(there))
                if lease.metadata.resource_version == there.metadata.resource_version =>
            {
                Answer::Written(self.store(*lease))
            }
            _ => Answer::Conflict,
        }
    }
}

impl LeaseDoor for Shelf {
    async fn ask(&self, request: Request) -> Answer {
        let mood = *self.mood.lock().unwrap();
        let sent = self.clock.now();
        self.clock.sleep_until(sent + Duration::from_millis(20)).await;
        let failed = || Answer::Failed(Trouble::Unavailable("the API server is away".into()));
        match mood {
            Mood::Good => {
                let answer = self.answer(request);
                if matches!(answer, Answer::Written(_)) {
                    self.renewals.lock().unwrap().push(sent);
                }
                answer
            }
            Mood::Away => failed(),
            Mood::Hangs => std::future::pending().await,
            Mood::Forgets => {
                self.answer(request);
                failed()
            }
        }
    }
}

/// A candidate for a world's loop.
struct Candidate {
    standing: watch::Receiver<Standing>,
    farewell: oneshot::Sender<Farewell>,
    running: JoinHandle<LeaseEnd>,
}

impl Candidate {
    fn start(world: &World, shelf: &Arc<Shelf>) -> Candidate {
        world.cluster.list_all();
        let leadership = Leadership::new(
            "pod-a_1",
            Timing::default(),
            Arc::clone(shelf),
            world.clock,
            || Timestamp::UNIX_EPOCH,
            world.handle.clone(),
        );
        let leadership = leadership.unwrap();
        let standing = leadership.standing();
        let (farewell, heard) = oneshot::channel();
        Candidate { standing, farewell, running: tokio::spawn(leadership.run(heard)) }
    }

    async fn leads(&mut self) {
        self.standing.wait_for(|it| it.role == Role::Leader).await.unwrap();
    }
}

/// Work for the loop at every moment: another Service every quarter of a second.
fn keep_busy(world: &World) -> JoinHandle<()> {
    let (cluster, clock) = (Arc::clone(&world.cluster), world.clock);
    tokio::spawn(async move {
        for number in 0_u32.. {
            let name = ObjectName::new("shop", format!("web-{number}"));
            cluster.apply_service(&name, crate::spec());
            clock.sleep_until(clock.now() + Duration::from_millis(250)).await;
        }
    })
}

#[tokio::test(start_paused = true)]
async fn who_is_alone_makes_the_lease_leads_and_renews_it() {
    let world = World::ordinary();
    let shelf = Shelf::new(world.clock);
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    world.apply("web");
    world.published(1).await;
    world.wait(Duration::from_secs(60)).await;
    assert!(world.handle.may_begin(&world.clock));
    let renewals = shelf.renewals();
    assert!((28..=33).contains(&renewals.len()), "about every two seconds: {renewals:?}");
    assert_eq!(shelf.holder().as_deref(), Some("pod-a_1"));
}

#[tokio::test(start_paused = true)]
async fn consent_that_is_used_up_is_taken_off_the_lease() {
    let world = World::ordinary();
    let shelf = Shelf::new(world.clock);
    let key = ServiceKey::from_identity("blue").unwrap();
    let spent: AllowedDeletions = [Fingerprint::of(&key, None)].into_iter().collect();
    let annotations = [(ANNOTATION, spent.annotation()), ("example.com/note", "keep".into())];
    let annotations = annotations.map(|(name, text)| (name.to_owned(), text));
    let metadata = ObjectMeta { annotations: Some(annotations.into()), ..ObjectMeta::default() };
    shelf.store(Lease { metadata, spec: None });
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    assert_eq!(shelf.annotation(ANNOTATION), Some(spent.annotation()), "Azure has not been listed yet");
    world.handle.wait_for_initial_sync().await.unwrap();
    world.wait(Duration::from_secs(6)).await;
    assert_eq!(shelf.annotation(ANNOTATION), None);
    assert_eq!(shelf.annotation("example.com/note").as_deref(), Some("keep"));
}

#[tokio::test(start_paused = true)]
async fn a_standby_watches_begins_nothing_and_takes_over_when_the_lease_has_run_out() {
    let world = World::ordinary();
    let shelf = Shelf::held_by(world.clock, "pod-b_1");
    let mut candidate = Candidate::start(&world, &shelf);
    world.apply("web");
    world.wait(Duration::from_secs(14)).await;
    assert_eq!(
        *candidate.standing.borrow(),
        Standing { role: Role::Standby, leader: Some("pod-b_1".into()) }
    );
    assert!(world.azure.arrived().is_empty(), "{:?}", world.azure.arrived());
    assert_eq!(world.handle.services().await.unwrap().len(), 1, "what a standby sees it keeps");
    candidate.leads().await;
    world.published(1).await;
    let first = world.azure.arrived()[0].at;
    assert!((15_000..17_000).contains(&first.as_millis()), "within the lease time: {first}");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_begins_nothing_past_the_deadline_and_ends() {
    for mood in [Mood::Away, Mood::Hangs, Mood::Forgets] {
        let world = World::with(config(), |_| Behaviour::Slow(Duration::from_millis(700)));
        let shelf = Shelf::new(world.clock);
        let mut candidate = Candidate::start(&world, &shelf);
        candidate.leads().await;
        let busy = keep_busy(&world);
        world.wait(Duration::from_secs(20)).await;
        shelf.feel(mood);
        let LeaseEnd::Lost(why) = candidate.running.await.unwrap() else { panic!("{mood:?}") };
        assert!(why.contains("not renewed within 10 s"), "{why}");
        let ended = world.running.await.unwrap();
        busy.abort();
        assert_eq!((ended.why, ended.abandoned), (Why::LeadershipLost, 0));
        let (last, last_renewal) =
            (world.azure.arrived().last().unwrap().at, *shelf.renewals().last().unwrap());
        // A renewal that is forgotten was stored, and still is none.
        assert!(last < last_renewal + Duration::from_secs(10), "{mood:?}: {last} after {last_renewal}");
        assert!(last > last_renewal + Duration::from_secs(8), "{mood:?}: it worked until then: {last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_was_frozen_longer_than_its_lease_begins_nothing_when_it_wakes() {
    let world = World::with(config(), |_| Behaviour::Slow(Duration::from_millis(700)));
    let shelf = Shelf::new(world.clock);
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    let busy = keep_busy(&world);
    world.wait(Duration::from_secs(20)).await;
    let before = world.azure.arrived().len();
    assert!(before > 20, "it works: {before}");
    // Everything stands still, and then everybody wakes at once, in whatever order.
    tokio::time::advance(Duration::from_secs(20)).await;
    let woke = world.clock.now();
    // Meanwhile another has the lease, as it should.
    shelf.give_to("pod-b_1");
    assert!(matches!(candidate.running.await.unwrap(), LeaseEnd::Lost(_)));
    assert_eq!(world.running.await.unwrap().why, Why::LeadershipLost);
    busy.abort();
    let arrived = world.azure.arrived();
    let late: Vec<_> = arrived.iter().filter(|it| it.at >= woke).collect();
    assert!(late.is_empty(), "begun after it woke: {late:?}");
    let finalizers = world.cluster.services().iter().filter(|it| it.finalizer).count();
    assert!(
        finalizers < world.cluster.services().len(),
        "and nothing was written to Kubernetes for the last ones"
    );
}

#[tokio::test(start_paused = true)]
async fn who_sees_another_holder_ends_at_once_although_its_time_is_not_over() {
    let world = World::ordinary();
    let shelf = Shelf::new(world.clock);
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    world.wait(Duration::from_secs(5)).await;
    shelf.give_to("pod-b_1");
    let since = world.clock.now();
    assert_eq!(candidate.running.await.unwrap(), LeaseEnd::Lost("pod-b_1 holds the lease".into()));
    assert!(!world.handle.may_begin(&world.clock));
    assert!(world.clock.now() < since + Duration::from_secs(3), "with the next renewal");
    assert_eq!(world.running.await.unwrap().why, Why::LeadershipLost);
}

#[tokio::test(start_paused = true)]
async fn a_stop_renews_while_something_is_on_the_wire_and_then_gives_the_lease_back() {
    let world = World::with(config(), |_| Behaviour::Slow(Duration::from_secs(20)));
    let shelf = Shelf::new(world.clock);
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    world.wait(Duration::from_secs(1)).await;
    assert!(!world.azure.arrived().is_empty(), "something is on the wire");
    let begun = world.azure.arrived().len();
    let asked = world.clock.now();
    world.handle.stop();
    let ended = world.running.await.unwrap();
    assert_eq!((ended.why, ended.abandoned), (Why::Asked, 0));
    assert_eq!(world.azure.arrived().len(), begun, "nothing new");
    let renewals = shelf.renewals();
    assert!(
        *renewals.last().unwrap() > asked + Duration::from_secs(15),
        "others must not begin: {renewals:?}"
    );
    assert_eq!(shelf.holder().as_deref(), Some("pod-a_1"));
    candidate.farewell.send(Farewell::Release).unwrap();
    assert_eq!(candidate.running.await.unwrap(), LeaseEnd::Released);
    assert_eq!(shelf.holder(), None);
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_left_to_run_out_when_something_may_still_be_on_the_wire() {
    let world = World::with(config(), |_| Behaviour::Hang);
    let shelf = Shelf::new(world.clock);
    let mut candidate = Candidate::start(&world, &shelf);
    candidate.leads().await;
    world.wait(Duration::from_secs(1)).await;
    world.handle.stop();
    let ended = world.running.await.unwrap();
    assert!(ended.abandoned > 0);
    candidate.farewell.send(Farewell::Keep).unwrap();
    assert_eq!(candidate.running.await.unwrap(), LeaseEnd::Kept);
    assert_eq!(shelf.holder().as_deref(), Some("pod-a_1"));
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_takes_no_mail_does_not_keep_the_lease_from_being_renewed() {
    let clock = Monotonic::start();
    let shelf = Shelf::new(clock);
    let (handle, _inbox) = Inbox::open(1);
    handle.post(sluice_model::Event::Tick).await.unwrap();
    let wall = || Timestamp::UNIX_EPOCH;
    let leadership =
        Leadership::new("pod-a_1", Timing::default(), Arc::clone(&shelf), clock, wall, handle.clone());
    let (_farewell, heard) = oneshot::channel();
    let running = tokio::spawn(leadership.unwrap().run(heard));
    clock.sleep_until(Time::from_millis(60_000)).await;
    assert!(handle.may_begin(&clock), "{:?}", shelf.renewals());
    assert!(!running.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_loop_with_a_faster_clock_is_fenced_at_the_same_real_moment() {
    let clock = Monotonic::start();
    let shelf = Shelf::new(clock);
    let (handle, _inbox) = Inbox::open(16);
    let wall = || Timestamp::UNIX_EPOCH;
    let leadership =
        Leadership::new("pod-a_1", Timing::default(), Arc::clone(&shelf), clock, wall, handle.clone());
    let leadership = leadership.unwrap().with_loop_clock(|at| Time::from_millis(at.as_millis() * 20));
    let (_farewell, heard) = oneshot::channel();
    tokio::spawn(leadership.run(heard));
    clock.sleep_until(Time::from_millis(5_000)).await;
    let last = shelf.renewals().last().unwrap().as_millis();
    assert!((3_000..5_000).contains(&last), "{last}");
    #[derive(Clone)]
    struct At(Time);
    impl Clock for At {
        fn now(&self) -> Time {
            self.0
        }
        async fn sleep_until(&self, _: Time) {}
    }
    let fence = (last + 10_000) * 20;
    assert!(handle.may_begin(&At(Time::from_millis(fence - 1))));
    assert!(!handle.may_begin(&At(Time::from_millis(fence))));
}
