//! The shipped budget: what leaves at once, when pacing begins, and what never leaves.

use std::vec;
use std::vec::Vec;

use core::time::Duration;

use sluice_model::azure::{LocationUpdate, Provisioning};
use sluice_model::call::{Answer, Body, Method, Payload, Reply};
use sluice_model::effect::Cause;
use sluice_model::seeded::Seeded;
use sluice_model::{Action, Effect, EffectId, Event, Outcome, Step, Time};

use super::story::{load_balancer, plan, public_ip, put_load_balancer, put_public_ip, registration, scope};
use crate::{Config, Output, Updaters};

/// Updaters on an Azure that answers every request at once, with success.
struct Instant {
    updaters: Updaters,
    now: Time,
    effects: u64,
    /// When each write was sent; `true` for those of addresses.
    writes: Vec<(Time, bool)>,
    /// When addresses may be sent again; what the engine goes by.
    next_location: Time,
}

impl Instant {
    fn with(config: Config) -> Instant {
        let mut updaters = Updaters::new(config, scope(), 7, Seeded::NONE);
        updaters.fence(Some(Time::NEVER));
        Instant { updaters, now: Time::ZERO, effects: 0, writes: Vec::new(), next_location: Time::ZERO }
    }

    fn start(&mut self, action: Action) {
        self.begin(action);
        self.drain();
    }

    fn begin(&mut self, action: Action) {
        self.effects += 1;
        self.updaters
            .start(self.now, &Effect { id: EffectId(self.effects), action, cause: Cause::Requested });
    }

    fn drain(&mut self) {
        while let Some(output) = self.updaters.next_output(self.now) {
            match output {
                Output::Send { call, request, .. } => {
                    self.writes.push((self.now, request.method == Method::UpdateLocations));
                    let payload = match request.body {
                        Body::PublicIp(_) => public_ip("web", Provisioning::Succeeded),
                        Body::LoadBalancer(_) => load_balancer("web"),
                        _ => Payload::None,
                    };
                    let reply = Reply::Answered(Answer::new(200, payload));
                    self.updaters.replied(self.now, call, reply);
                }
                Output::Report(Event::EffectFinished {
                    outcome: Outcome::Locations { next_at, .. }, ..
                }) => {
                    self.next_location = next_at;
                }
                // Plans have all the slots they want.
                Output::Report(Event::SlotWanted(id)) => self.begin(Action::ResumePlan(id)),
                Output::Report(_) => {}
            }
        }
    }

    fn until(&mut self, at: Time) {
        while let Some(due) = self.updaters.next_deadline().filter(|due| *due <= at) {
            self.now = self.now.max(due);
            self.updaters.tick(self.now);
            self.drain();
        }
        self.now = self.now.max(at);
        self.updaters.tick(self.now);
        self.drain();
    }

    fn services(&mut self, count: usize) {
        for _ in 0..count {
            self.start(Action::RunPlan(plan(vec![put_load_balancer("web")])));
        }
    }

    fn sync(&mut self) {
        let location = LocationUpdate { location: [10, 0, 0, 1].into(), full: false, addresses: Vec::new() };
        self.start(Action::SyncLocations(vec![location]));
    }

    fn sent(&self, locations: bool) -> usize {
        self.writes.iter().filter(|(_, of_locations)| *of_locations == locations).count()
    }

    /// The most writes in any five minutes, and the most of them that were location calls.
    fn busiest(&self) -> (usize, usize) {
        let window = Duration::from_secs(300);
        let (mut all, mut locations) = (0, 0);
        for (first, (from, _)) in self.writes.iter().enumerate() {
            let within: Vec<_> =
                self.writes[first..].iter().take_while(|(at, _)| *at < *from + window).collect();
            all = all.max(within.len());
            locations = locations.max(within.iter().filter(|(_, of_locations)| *of_locations).count());
        }
        (all, locations)
    }
}

/// A pod changes every `interval_ms`, so many times; returns how long each change waited. Changes that find the lane
/// paced ride together.
fn churn(story: &mut Instant, interval_ms: u64, changes: u64) -> Vec<Duration> {
    let mut waits = Vec::new();
    let mut pending: Vec<Time> = Vec::new();
    let began = story.now;
    let mut change = 0;
    while change < changes || !pending.is_empty() {
        let due = began + Duration::from_millis(interval_ms * change);
        let at = if change < changes && (pending.is_empty() || due <= story.next_location) {
            change += 1;
            pending.push(due);
            due
        } else {
            story.next_location
        };
        story.until(at);
        if story.now >= story.next_location {
            story.sync();
            waits.extend(pending.drain(..).map(|since| story.now.since(since)));
        }
    }
    waits
}

#[test]
fn services_borrow_the_tokens_of_the_locations_in_the_first_burst() {
    let mut story = Instant::with(Config::default());
    story.services(200);
    // 160 are our share of Azure's 200; four of the locations' 48 stay theirs.
    assert_eq!(story.sent(false), 156);
    story.sync();
    assert_eq!(story.sent(true), 1, "and addresses leave at once all the same");
}

#[test]
fn locations_borrow_the_tokens_of_the_services_in_the_first_burst() {
    let mut story = Instant::with(Config::default());
    for _ in 0..100 {
        story.sync();
        assert_eq!(story.next_location, Time::ZERO);
    }
    // 48 are their own.
    assert_eq!(story.sent(true), 100);
}

#[test]
fn a_change_leaves_at_once_although_services_have_just_used_their_burst() {
    let mut story = Instant::with(Config::default());
    story.services(112);
    story.sync();
    assert_eq!((story.sent(true), story.next_location), (1, Time::ZERO));
}

#[test]
fn fifty_services_with_a_hundred_pods_each_are_created_without_a_wait() {
    let mut story = Instant::with(Config::default());
    for _ in 0..50 {
        story.start(Action::RunPlan(plan(vec![put_public_ip("web"), put_load_balancer("web")])));
    }
    // Registrations ride together, and so do pods.
    for _ in 0..10 {
        story.start(Action::RunPlan(plan(vec![Step::Register(registration("web"))])));
        story.sync();
        assert_eq!(story.next_location, Time::ZERO);
    }
    assert_eq!((story.sent(false), story.sent(true), story.now), (110, 10, Time::ZERO));
}

#[test]
fn a_hundred_single_changes_after_the_first_sync_leave_at_once() {
    let mut story = Instant::with(Config::default());
    story.services(130);
    (0..20).for_each(|_| story.sync());
    let waits = churn(&mut story, 600, 100);
    assert_eq!(waits, vec![Duration::ZERO; 100]);
}

#[test]
fn pacing_begins_when_half_of_the_share_is_used() {
    let mut story = Instant::with(Config::default());
    // They have used so much that they lend nothing for the moment.
    story.services(100);
    for call in 1..=120 {
        // Within the bucket's rate of eight a second.
        story.until(Time::from_millis(100 * call));
        assert!(story.next_location <= story.now, "call {call}");
        story.sync();
    }
    let wait = story.next_location.since(story.now).as_millis();
    assert!((1_000..=3_000).contains(&wait), "120 calls are left for about 290 s: {wait} ms");
}

#[test]
fn twenty_changes_a_second_keep_to_the_share_and_all_are_sent() {
    for (share_permille, all_max) in [(800, 800), (50, 50)] {
        let mut story = Instant::with(Config { share_permille, ..Config::default() });
        let waits = churn(&mut story, 50, 6_000);
        assert_eq!(waits.len(), 6_000);
        let (all, locations) = story.busiest();
        let own = all_max * 3 / 10;
        assert!(all <= all_max && locations > own, "{all} and {locations} of {all_max}");
    }
}

#[test]
fn locations_have_their_own_share_and_no_more_while_services_use_theirs() {
    for (share_permille, all_max) in [(800, 800), (50, 50)] {
        let mut story = Instant::with(Config { share_permille, ..Config::default() });
        story.services(1_000);
        churn(&mut story, 50, 6_000);
        let (all, locations) = story.busiest();
        assert!(all <= all_max && locations <= all_max * 3 / 10, "{all} and {locations} of {all_max}");
    }
}
