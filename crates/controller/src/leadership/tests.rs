//! What the leader reads on its Lease reaches the loop.

use std::sync::Mutex;

use k8s_openapi::api::coordination::v1::Lease;
use sluice_model::ServiceKey;
use sluice_model::allow_deletion::Fingerprint;

use super::*;
use crate::clock::Monotonic;
use crate::inbox::{Inbox, Mail};

/// A Lease that an operator annotates between two renewals.
#[derive(Default)]
struct Annotated {
    lease: Mutex<Lease>,
    annotation: Mutex<Option<String>>,
}

impl LeaseDoor for Annotated {
    async fn ask(&self, request: Request) -> Answer {
        let mut lease = self.lease.lock().unwrap();
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        match request {
            Request::Read => return Answer::Found(Box::new(lease.clone())),
            Request::Create(new) | Request::Replace(new) => *lease = *new,
        }
        // The operator's patch comes right before our write, which the API server then refuses.
        lease.metadata.resource_version = Some(format!("{version}1"));
        if let Some(text) = self.annotation.lock().unwrap().take() {
            let annotations = lease.metadata.annotations.get_or_insert_default();
            annotations.insert(allow_deletion::ANNOTATION.into(), text);
            return Answer::Conflict;
        }
        Answer::Written(Box::new(lease.clone()))
    }
}

#[tokio::test(start_paused = true)]
async fn consent_on_the_lease_is_told_once_and_is_kept_by_renewals() {
    let clock = Monotonic::start();
    let door = Arc::new(Annotated::default());
    let (handle, mut inbox) = Inbox::open(16);
    let wall = || Timestamp::UNIX_EPOCH;
    let timing = Timing::default();
    let leadership = Leadership::new("pod-a_1", timing, Arc::clone(&door), clock, wall, handle.clone());
    let (_farewell, heard) = oneshot::channel();
    let running = leadership.unwrap().run(heard);
    let key = ServiceKey::from_identity("blue").unwrap();
    let consent: AllowedDeletions = [Fingerprint::of(&key, None)].into_iter().collect();
    let mut facts = Vec::new();
    let listening = async {
        let until = Time::from_millis(60_000);
        while clock.now() < until {
            if let Mail::Fact(event) = inbox.next(&clock, Some(until)).await {
                if event == Event::LeadershipGained {
                    *door.annotation.lock().unwrap() = Some(consent.annotation());
                }
                facts.push(event);
            }
        }
    };
    tokio::select! {
        end = running => panic!("{end:?}"),
        () = listening => {}
    }
    assert_eq!(facts, [Event::LeadershipGained, Event::DeletionAllowed(consent.clone())]);
    let annotations = door.lease.lock().unwrap().metadata.annotations.clone().unwrap();
    assert_eq!(annotations.get(allow_deletion::ANNOTATION), Some(&consent.annotation()));
}
