//! Every kind of event that `docs/reference/events.md` promises, and the story that shows it.

use std::format;
use std::string::String;
use std::vec::Vec;

use expect_test::expect;
use sluice_model::notices::{Place, Row, TABLE};
use sluice_model::reason::Reason;

use super::story::{check, notices_given};
use super::{adoption, deletion, drift, inbound, kubernetes, others, outbound, ownership, retry, startup};

/// Where to look for an example of each row; a row can stand at several places, and one of them is enough.
const STORIES: &[fn()] = &[
    inbound::an_applied_service_starts_one_plan,
    deletion::a_deleted_service_without_addresses_is_torn_down_at_once,
    drift::a_lost_public_ip_is_made_again_the_status_corrected_and_people_warned,
    deletion::a_deletion_that_waits_for_long_reads_the_addresses_again_and_says_which_ones_hold_it,
    kubernetes::a_port_that_is_unresolved_for_a_minute_is_warned_about_once,
    adoption::what_is_registered_and_invalid_is_live_and_waits_for_its_owner,
    outbound::labels_that_cannot_be_names_are_warned_about_once_and_nothing_is_made,
    outbound::there_are_at_most_so_many_egresses_and_the_next_one_waits_for_a_place,
    inbound::an_address_without_a_location_of_its_family_waits_and_people_are_told_once,
    a_long_pause_is_told_for_the_whole_cluster,
    retry::a_quota_parks_from_ten_minutes_to_an_hour_and_the_event_names_it,
    a_gateway_beyond_the_quota_is_told_for_the_whole_cluster,
    retry::a_forbidden_plan_parks_from_five_minutes_to_an_hour_and_the_event_says_what,
    startup::a_gateway_that_cannot_be_made_is_told_and_tried_again_every_minute_since_everything_stands_on_it,
    ownership::a_foreign_public_ip_of_our_name_is_a_conflict_and_looked_at_again,
    ownership::what_is_registered_for_somebody_elses_resource_is_shown_as_unclaimed,
    others::a_pod_whose_address_belongs_to_an_egress_of_others_is_warned_about,
    retry::a_refusal_is_looked_at_once_more_and_then_parked,
    a_gateway_that_azure_refuses_is_told_for_the_whole_cluster,
    retry::transient_failures_back_off_from_one_second_to_half_a_minute_then_park_for_five_minutes_and_so_on,
    drift::a_listing_that_fails_leads_to_no_write,
    kubernetes::a_finalizer_that_kubernetes_refuses_is_told_and_tried_again_and_nothing_is_made,
    ownership::many_teardowns_at_once_are_held_until_they_are_allowed,
    startup::a_gateway_of_another_cluster_is_refused,
];

#[test]
fn a_gateway_beyond_the_quota_is_told_for_the_whole_cluster() {
    check(
        "show notices
         azure loses gateway
         lead
         #1 failed QuotaExceeded 400",
        expect![[r#"
            #1 provision gateway: gateway   because start-up
            warn cluster: QuotaExceeded: Cannot set up the gateway: QuotaExceeded (quota): as the story says. Sluice retries; run `sluice doctor`
        "#]],
    );
}

#[test]
fn a_gateway_that_azure_refuses_is_told_for_the_whole_cluster() {
    check(
        "show notices
         azure loses gateway
         lead
         #1 refused
         tick 5
         #2 refused",
        expect![[r#"
            #1 provision gateway: gateway   because start-up
            #2 provision gateway: gateway   because start-up
            warn cluster: Rejected: Cannot set up the gateway: InvalidRequest (rejected): as the story says. Sluice retries; run `sluice doctor`
        "#]],
    );
}

#[test]
fn a_long_pause_is_told_for_the_whole_cluster() {
    check(
        "show notices
         writes throttled 61
         writes throttled 900
         writes throttled 86400",
        expect![[r#"
            warn cluster: Throttled: Azure throttled writes and deletes for 2 min; Sluice continues after that. If this happens often, see `sluice explain SGW0007`
            warn cluster: Throttled: Azure throttled writes and deletes for 15 min; Sluice continues after that. If this happens often, see `sluice explain SGW0007`
            warn cluster: Throttled: Azure throttled writes and deletes for 24 h; Sluice sends one call every 15 min to check. Look for other clients that use up the limits of the subscription
        "#]],
    );
}

#[test]
fn every_event_that_the_page_promises_is_told_by_a_story() {
    notices_given();
    for story in STORIES {
        story();
    }
    let given = notices_given();
    // No story can lead to a bug of ours, and the writer of statuses tells about the admission policy.
    let is_of_the_writer =
        |row: &Row| row.reason == Reason::KubernetesRejected && row.places == [Place::Cluster];
    let rows = TABLE.iter().filter(|row| row.reason != Reason::InternalError && !is_of_the_writer(row));
    let missed = rows.filter(|row| {
        !given.iter().any(|(reason, warning, place)| {
            (*reason, *warning) == (row.reason, row.warning) && row.places.contains(place)
        })
    });
    let missed: Vec<String> = missed.map(|row| format!("{} at {:?}", row.reason, row.places)).collect();
    assert!(missed.is_empty(), "nobody tells {}", missed.join(", "));
}
