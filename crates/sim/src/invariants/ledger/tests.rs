//! The ledger believes what it was told, no more and no less.

use sluice_model::azure::{AddressUpdate, ETag, Location, Meta, PublicIp};
use sluice_model::call::{Answer, Body, Page, PageToken};
use sluice_model::names::Scope;

use super::*;
use crate::world::scope;

const NAME: &str = "00000000-0000-0000-0000-000000000001";

fn at(seconds: u64) -> Time {
    Time::from_millis(seconds * 1_000)
}

fn id(scope: &Scope) -> ArmId {
    scope.resource("publicIPAddresses", "x-pip")
}

fn answered(status: u16, payload: Payload) -> Reply {
    Reply::Answered(Answer::new(status, payload))
}

fn listed(scope: &Scope, ids: &[ArmId]) -> (Request, Reply) {
    let items = ids
        .iter()
        .map(|id| PublicIp {
            meta: Meta {
                id: id.clone(),
                tags: Default::default(),
                etag: ETag("1".into()),
                provisioning: Provisioning::Succeeded,
            },
            family: sluice_model::Family::V4,
            address: None,
            used_by: None,
        })
        .collect();
    let request = Request::bare(Method::List, scope.collection("publicIPAddresses"));
    (request, answered(200, Payload::PublicIps(Page { items, next: None })))
}

fn list(ledger: &mut Ledger, now: Time, call: u64, (request, reply): (Request, Reply)) {
    ledger.sent(now, call, &request);
    ledger.answered(now, call, &reply);
}

#[test]
fn a_deletion_without_an_answer_is_unsure_until_somebody_looks() {
    let (scope, mut ledger) = (scope(), Ledger::default());
    let id = id(&scope);
    list(&mut ledger, at(0), 1, listed(&scope, std::slice::from_ref(&id)));
    assert!(matches!(ledger.resource(&id), Told::Present(_)));
    ledger.sent(at(1), 2, &Request::bare(Method::Delete, id.clone()));
    ledger.answered(at(2), 2, &Reply::lost("no answer"));
    assert_eq!(ledger.resource(&id), &Told::Unsure);
    list(&mut ledger, at(3), 3, listed(&scope, &[]));
    assert_eq!(ledger.resource(&id), &Told::Absent);
}

#[test]
fn a_listing_that_lags_behind_a_confirmed_deletion_is_not_believed_and_two_later_ones_are() {
    let (scope, mut ledger) = (scope(), Ledger::default());
    let id = id(&scope);
    ledger.sent(at(0), 1, &Request::bare(Method::Delete, id.clone()));
    ledger.answered(at(1), 1, &answered(204, Payload::None));
    for (call, second) in [(2, 5), (3, 40), (4, 41)] {
        list(&mut ledger, at(second), call, listed(&scope, std::slice::from_ref(&id)));
        assert_eq!(ledger.resource(&id), &Told::Absent, "t={second}");
    }
    list(&mut ledger, at(100), 5, listed(&scope, std::slice::from_ref(&id)));
    assert!(matches!(ledger.resource(&id), Told::Present(_)));
}

#[test]
fn half_a_listing_tells_nothing() {
    let (scope, mut ledger) = (scope(), Ledger::default());
    let request = Request::bare(Method::List, scope.collection("publicIPAddresses"));
    ledger.sent(at(0), 1, &request);
    let page = Page { items: Vec::new(), next: Some(PageToken("2".into())) };
    ledger.answered(at(0), 1, &answered(200, Payload::PublicIps(page)));
    assert!(!ledger.has_listed(Listable::PublicIps));
    assert_eq!(ledger.resource(&id(&scope)), &Told::Nothing);
}

#[test]
fn an_address_that_was_sent_may_be_mapped_until_it_is_refused_or_unbound() {
    let (scope, mut ledger) = (scope(), Ledger::default());
    let (node, pod): (IpAddr, IpAddr) = ([10, 0, 0, 1].into(), [10, 244, 0, 4].into());
    let bind = |services: Vec<Arc<str>>| {
        let addresses = vec![AddressUpdate { address: pod, services }];
        let body = Body::Locations(vec![LocationUpdate { location: node, full: false, addresses }]);
        Request::with(Method::UpdateLocations, scope.gateway_id(), body)
    };
    let count = |ledger: &Ledger| ledger.mapped_to(NAME).count();
    ledger.sent(at(0), 1, &bind(vec![NAME.into()]));
    assert_eq!(count(&ledger), 1);
    ledger.answered(at(1), 1, &answered(500, Payload::None));
    assert_eq!(count(&ledger), 0);
    ledger.sent(at(2), 2, &bind(vec![NAME.into()]));
    ledger.give_up(at(70));
    assert_eq!(count(&ledger), 1, "no answer: it may be mapped");
    ledger.sent(at(71), 3, &bind(Vec::new()));
    assert_eq!(count(&ledger), 1, "not confirmed yet");
    ledger.answered(at(72), 3, &answered(200, Payload::None));
    assert_eq!(count(&ledger), 0);
}

#[test]
fn the_first_listing_of_locations_is_believed_at_once() {
    let (scope, mut ledger) = (scope(), Ledger::default());
    let collection = ArmId::new(format!("{}/addressLocations", scope.gateway_id()));
    let request = Request::bare(Method::List, collection);
    let entry = AddressUpdate { address: [10, 244, 0, 4].into(), services: vec![NAME.into()] };
    let items = vec![Location { location: [10, 0, 0, 1].into(), addresses: vec![entry] }];
    list(&mut ledger, at(0), 1, (request, answered(200, Payload::Locations(Page { items, next: None }))));
    assert_eq!(ledger.mapped_to(NAME).count(), 1);
}
