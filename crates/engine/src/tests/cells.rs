//! Every reachable cell of the lifecycle table, and the story that shows it.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::story::{Cells, cells_met};
use super::{adoption, deletion, drift, fencing, inbound, outbound, rejected, retry, teardown, updates};
use crate::state::State::*;
use crate::state::Trigger::*;
use crate::state::{State, Trigger, cell};

/// Where to look for an example of each cell.
const SHOWN_BY: &[(State, Trigger, fn())] = &[
    (NotStarted, Desired, inbound::an_applied_service_starts_one_plan),
    (
        NotStarted,
        NoLongerDesired,
        deletion::a_creation_that_failed_halfway_is_torn_down_when_it_is_not_wanted_any_more,
    ),
    (NotStarted, CreationStarted, inbound::an_applied_service_starts_one_plan),
    (NotStarted, FoundInSync, adoption::what_is_already_right_is_adopted_without_a_write),
    (
        NotStarted,
        FoundOutOfSync,
        adoption::what_is_registered_but_different_is_updated_and_its_addresses_are_kept_meanwhile,
    ),
    (NotStarted, FoundRejected, adoption::what_is_registered_and_invalid_is_live_and_waits_for_its_owner),
    (NotStarted, RejectedUnserved, rejected::what_a_failed_creation_has_left_is_torn_down),
    (NotStarted, SpecChanged, retry::a_change_of_spec_ends_a_park_at_once),
    (NotStarted, DriftFound, drift::drift_is_found_while_a_creation_is_parked),
    (NotStarted, OperationSucceeded, retry::an_unknown_outcome_is_looked_at_before_anything_else),
    (NotStarted, OperationFailed, retry::a_look_that_fails_is_repeated_with_backoff),
    (NotStarted, OutcomeUnknown, retry::a_look_that_fails_is_repeated_with_backoff),
    (NotStarted, RetryDue, retry::a_failed_creation_is_tried_again_and_resumes_at_the_step_that_failed),
    (NotStarted, AddressesChanged, retry::endpoints_that_come_during_a_park_wait_with_it),
    (NotStarted, FullyDeleted, deletion::a_service_that_never_started_is_forgotten_without_a_call),
    (
        CreationInProgress,
        NoLongerDesired,
        deletion::a_deletion_during_the_creation_lets_it_end_and_it_never_becomes_created,
    ),
    (
        CreationInProgress,
        RejectedUnserved,
        rejected::a_service_rejected_during_its_creation_is_torn_down_and_never_published,
    ),
    (
        CreationInProgress,
        SpecChanged,
        updates::a_spec_that_changes_during_the_creation_is_applied_when_it_ends,
    ),
    (CreationInProgress, OperationSucceeded, inbound::an_applied_service_starts_one_plan),
    (
        CreationInProgress,
        OperationFailed,
        retry::a_failed_creation_is_tried_again_and_resumes_at_the_step_that_failed,
    ),
    (CreationInProgress, OutcomeUnknown, retry::an_unknown_outcome_is_looked_at_before_anything_else),
    (
        CreationInProgress,
        AddressesChanged,
        outbound::five_pods_that_come_before_their_nat_gateway_are_sent_together_when_it_is_registered,
    ),
    (
        Created,
        NoLongerDesired,
        deletion::a_deleted_service_drains_first_then_is_torn_down_in_order_then_its_finalizer_goes,
    ),
    (Created, FoundInSync, updates::a_change_that_does_not_matter_is_no_write),
    (Created, FoundOutOfSync, updates::a_changed_port_is_one_write_of_the_load_balancer),
    (
        Created,
        RejectedUnserved,
        rejected::a_live_service_that_lost_its_registration_and_its_status_is_torn_down,
    ),
    (Created, FoundRejected, updates::an_invalid_change_leaves_the_live_load_balancer_as_it_is),
    (Created, SpecChanged, updates::a_changed_port_is_one_write_of_the_load_balancer),
    (Created, DriftFound, drift::a_changed_load_balancer_is_changed_back),
    (
        Created,
        OperationSucceeded,
        updates::wanted_again_while_a_look_is_running_it_is_compared_when_the_look_ends,
    ),
    (Created, OperationFailed, updates::a_look_that_fails_while_created_is_repeated),
    (Created, OutcomeUnknown, updates::a_look_that_fails_while_created_is_repeated),
    (Created, RetryDue, updates::a_look_that_fails_while_created_is_repeated),
    (Created, AddressesChanged, inbound::endpoints_of_a_created_service_are_sent_at_once),
    (UpdateInProgress, NoLongerDesired, deletion::a_deletion_during_an_update_waits_for_its_end),
    (UpdateInProgress, UpdateStarted, updates::a_changed_port_is_one_write_of_the_load_balancer),
    (UpdateInProgress, FoundInSync, updates::a_difference_that_goes_by_itself_needs_no_write),
    (
        UpdateInProgress,
        FoundOutOfSync,
        updates::drift_that_is_found_while_an_update_is_parked_is_mended_by_its_next_attempt,
    ),
    (
        UpdateInProgress,
        RejectedUnserved,
        rejected::an_update_of_what_lost_its_registration_ends_when_it_is_rejected,
    ),
    (UpdateInProgress, FoundRejected, rejected::an_update_that_waits_is_not_made_for_a_rejected_spec),
    (UpdateInProgress, SpecChanged, updates::a_spec_that_changes_during_an_update_is_applied_next),
    (
        UpdateInProgress,
        DriftFound,
        updates::drift_that_is_found_while_an_update_is_parked_is_mended_by_its_next_attempt,
    ),
    (UpdateInProgress, OperationSucceeded, updates::a_changed_port_is_one_write_of_the_load_balancer),
    (UpdateInProgress, OperationFailed, updates::an_update_that_fails_stays_and_is_tried_again),
    (
        UpdateInProgress,
        OutcomeUnknown,
        updates::an_update_of_unknown_outcome_is_looked_at_before_it_is_repeated,
    ),
    (UpdateInProgress, RetryDue, updates::an_update_that_fails_stays_and_is_tried_again),
    (
        UpdateInProgress,
        AddressesChanged,
        updates::a_live_service_keeps_its_addresses_in_sync_while_its_update_runs,
    ),
    (DeletionPending, Desired, teardown::a_service_wanted_again_before_its_teardown_keeps_everything),
    (
        DeletionPending,
        NoLongerDesired,
        teardown::a_service_wanted_and_unwanted_again_while_its_begun_teardown_waits_is_torn_down,
    ),
    (DeletionPending, SpecChanged, teardown::a_service_wanted_again_before_its_teardown_keeps_everything),
    (DeletionPending, DriftFound, teardown::drift_while_draining_leaves_less_to_tear_down),
    (
        DeletionPending,
        OperationSucceeded,
        deletion::a_deletion_during_the_creation_lets_it_end_and_it_never_becomes_created,
    ),
    (
        DeletionPending,
        OperationFailed,
        deletion::a_creation_that_fails_after_the_deletion_is_looked_at_and_torn_down,
    ),
    (
        DeletionPending,
        OutcomeUnknown,
        deletion::a_creation_of_unknown_outcome_is_looked_at_before_it_is_torn_down,
    ),
    (DeletionPending, RetryDue, deletion::a_look_that_fails_during_a_deletion_is_repeated_after_a_wait),
    (DeletionPending, AddressesChanged, deletion::endpoints_that_come_in_a_deletion_are_not_sent),
    (
        DeletionPending,
        Drained,
        deletion::a_deleted_service_drains_first_then_is_torn_down_in_order_then_its_finalizer_goes,
    ),
    (DeletionPending, FullyDeleted, teardown::a_service_that_others_tore_down_while_it_drained_is_let_go),
    (
        DeletionPending,
        DeletedButDesired,
        teardown::a_teardown_that_had_begun_and_has_nothing_left_is_made_anew_if_wanted,
    ),
    (
        DeletionInProgress,
        Desired,
        teardown::a_service_wanted_again_in_the_middle_of_its_teardown_is_made_anew_when_that_has_ended,
    ),
    (
        DeletionInProgress,
        NoLongerDesired,
        teardown::wanted_and_unwanted_again_in_the_middle_of_a_teardown_ends_forgotten,
    ),
    (
        DeletionInProgress,
        SpecChanged,
        teardown::wanted_and_unwanted_again_in_the_middle_of_a_teardown_ends_forgotten,
    ),
    (DeletionInProgress, DriftFound, teardown::drift_in_a_parked_teardown_leaves_less_to_tear_down),
    (
        DeletionInProgress,
        OperationSucceeded,
        deletion::a_deleted_service_without_addresses_is_torn_down_at_once,
    ),
    (DeletionInProgress, OperationFailed, teardown::a_teardown_that_fails_goes_on_where_it_stopped),
    (DeletionInProgress, OutcomeUnknown, teardown::a_teardown_step_of_unknown_outcome_is_repeated),
    (DeletionInProgress, RetryDue, teardown::a_teardown_that_fails_goes_on_where_it_stopped),
    (DeletionInProgress, AddressesChanged, deletion::endpoints_that_come_in_a_deletion_are_not_sent),
    (
        DeletionInProgress,
        StillMapped,
        teardown::addresses_that_azure_still_has_send_the_teardown_back_to_wait_for_them,
    ),
    (DeletionInProgress, FullyDeleted, fencing::a_service_that_vanished_is_asked_for_before_it_is_torn_down),
    (
        DeletionInProgress,
        DeletedButDesired,
        outbound::a_pod_that_comes_while_its_egress_is_torn_down_is_served_when_that_has_ended,
    ),
];

/// The cells that one story meets.
fn met_by(story: fn()) -> Cells {
    cells_met();
    story();
    cells_met()
}

#[test]
fn every_reachable_cell_is_met_by_the_story_that_is_named_for_it() {
    let mut missed: Vec<String> = Vec::new();
    for (state, trigger, story) in SHOWN_BY {
        if met_by(*story)[*state as usize][*trigger as usize] == 0 {
            missed.push(format!("{state} × {trigger} is not met by its story"));
        }
    }
    for state in State::ALL {
        for trigger in Trigger::ALL {
            let named = SHOWN_BY.iter().filter(|(s, t, _)| (*s, *t) == (state, trigger)).count();
            match (cell(state, trigger).is_reachable(), named) {
                (true, 0) => missed.push(format!("{state} × {trigger} has no story")),
                (true, 1) | (false, 0) => {}
                (true, _) => missed.push(format!("{state} × {trigger} has more than one story")),
                (false, _) => missed.push(format!("{state} × {trigger} cannot happen and has a story")),
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
