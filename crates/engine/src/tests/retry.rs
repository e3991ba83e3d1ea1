//! Stories about what fails: every class has its policy, and nothing is given up.

use std::time::Duration;

use expect_test::expect;
use sluice_model::Time;

use super::story::{Story, check, told};

#[test]
pub(super) fn transient_failures_back_off_from_one_second_to_half_a_minute_then_park_for_five_minutes_and_so_on()
 {
    check(
        "show times
         show notices
         service web applied
         plans fail AnotherOperationInProgress 409
         #1 failed AnotherOperationInProgress 409
         tick 1000
         plans stop failing
         tick 400
         last done
         state web",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=1.7 #2 inspect web: read-public-ip   because outcome unknown
            t=1.7 #3 provision web: public-ip, load-balancer, register   because retry due
            t=4.1 #4 inspect web: read-public-ip   because outcome unknown
            t=4.1 #5 provision web: public-ip, load-balancer, register   because retry due
            t=8.2 #6 inspect web: read-public-ip   because outcome unknown
            t=8.2 #7 provision web: public-ip, load-balancer, register   because retry due
            t=15.7 #8 inspect web: read-public-ip   because outcome unknown
            t=15.7 #9 provision web: public-ip, load-balancer, register   because retry due
            t=34.7 #10 inspect web: read-public-ip   because outcome unknown
            t=34.7 #11 provision web: public-ip, load-balancer, register   because retry due
            t=62.7 #12 inspect web: read-public-ip   because outcome unknown
            t=62.7 #13 provision web: public-ip, load-balancer, register   because retry due
            t=97.8 #14 inspect web: read-public-ip   because outcome unknown
            t=97.8 #15 provision web: public-ip, load-balancer, register   because retry due
            t=132.9 #16 inspect web: read-public-ip   because outcome unknown
            t=132.9 #17 provision web: public-ip, load-balancer, register   because retry due
            t=160.9 #18 inspect web: read-public-ip   because outcome unknown
            t=160.9 #19 provision web: public-ip, load-balancer, register   because retry due
            t=193.3 #20 inspect web: read-public-ip   because outcome unknown
            t=193.3 #21 provision web: public-ip, load-balancer, register   because retry due
            t=220.6 #22 inspect web: read-public-ip   because outcome unknown
            t=220.6 #23 provision web: public-ip, load-balancer, register   because retry due
            t=220.6 warn web: AzureUnavailable: Azure did not complete the request: AnotherOperationInProgress (transient): as the story says. Check the error of Azure; if it names no cause, check Azure Service Health and the network between the controller and Azure
            t=531.4 #24 inspect web: read-public-ip   because outcome unknown
            t=531.4 #25 provision web: public-ip, load-balancer, register   because retry due
            t=532.3 #26 inspect web: read-public-ip   because outcome unknown
            t=532.3 #27 provision web: public-ip, load-balancer, register   because retry due
            t=534.7 #28 inspect web: read-public-ip   because outcome unknown
            t=534.7 #29 provision web: public-ip, load-balancer, register   because retry due
            t=539.4 #30 inspect web: read-public-ip   because outcome unknown
            t=539.4 #31 provision web: public-ip, load-balancer, register   because retry due
            t=547.5 #32 inspect web: read-public-ip   because outcome unknown
            t=547.5 #33 provision web: public-ip, load-balancer, register   because retry due
            t=564.8 #34 inspect web: read-public-ip   because outcome unknown
            t=564.8 #35 provision web: public-ip, load-balancer, register   because retry due
            t=591.9 #36 inspect web: read-public-ip   because outcome unknown
            t=591.9 #37 provision web: public-ip, load-balancer, register   because retry due
            t=618.0 #38 inspect web: read-public-ip   because outcome unknown
            t=618.0 #39 provision web: public-ip, load-balancer, register   because retry due
            t=653.5 #40 inspect web: read-public-ip   because outcome unknown
            t=653.5 #41 provision web: public-ip, load-balancer, register   because retry due
            t=689.0 #42 inspect web: read-public-ip   because outcome unknown
            t=689.0 #43 provision web: public-ip, load-balancer, register   because retry due
            t=715.8 #44 inspect web: read-public-ip   because outcome unknown
            t=715.8 #45 provision web: public-ip, load-balancer, register   because retry due
            t=749.9 #46 inspect web: read-public-ip   because outcome unknown
            t=749.9 #47 provision web: public-ip, load-balancer, register   because retry due
            t=1099.0 #48 provision web: public-ip, load-balancer, register   because retry due
            t=1401.1 web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_park_is_a_condition_with_its_reason() {
    check(
        "show status
         service web applied
         #1 failed QuotaExceeded 400
         tick 700
         #2 done
         #3 done",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded)
            #2 inspect web: read-public-ip   because outcome unknown
            #3 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
        "#]],
    );
}

#[test]
pub(super) fn a_failed_creation_is_tried_again_and_resumes_at_the_step_that_failed() {
    check(
        "service web applied
         #1 failed AnotherOperationInProgress 409 at load-balancer
         tick 5
         #2 done
         #3 failed AnotherOperationInProgress 409 at register
         tick 5
         #4 done
         #5 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 provision web: load-balancer, register   because retry due
            #4 inspect web: read-registration   because outcome unknown
            #5 provision web: register   because retry due
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_throttled_plan_waits_as_long_as_azure_asks_and_that_is_no_attempt() {
    check(
        "show times
         service web applied
         #1 failed TooManyRequests 429 after=17
         explain web
         tick 10
         service web applied again
         tick 20
         #2 done
         #3 failed TooManyRequests 429
         explain web
         tick 3
         #4 done",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 web is NotStarted, wanted, waits: Throttled
            t=0.5   waits for its next attempt at t=17.4: Throttled
            t=17.4 #2 inspect web: read-public-ip   because outcome unknown
            t=30.9 #3 provision web: public-ip, load-balancer, register   because service applied
            t=31.1 web is NotStarted, wanted, waits: Throttled
            t=31.1   waits for its next attempt at t=32.0: Throttled
            t=32.0 #4 inspect web: read-public-ip   because outcome unknown
            t=34.3 #5 provision web: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
fn throttling_never_counts_and_never_parks() {
    let mut story = told("service web applied\nplans fail TooManyRequests 429 after=1");
    story.play("#1 failed TooManyRequests 429 after=1\ntick 60");
    assert!(story.engine.counters().plans_failed > 40);
    let view = story.engine.explain(&story.key("web")).expect("known").view;
    assert_eq!((view.attempts, view.hold.map(|hold| hold.parked)), (0, Some(false)));
    assert_eq!(story.engine.counters().parks, 0);
}

#[test]
pub(super) fn a_quota_parks_from_ten_minutes_to_an_hour_and_the_event_names_it() {
    check(
        "show times
         show notices
         service web applied
         plans fail PublicIPCountLimitReached 400
         #1 failed PublicIPCountLimitReached 400
         tick 14000
         explain web",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 warn web: QuotaExceeded: Azure quota used up: PublicIPCountLimitReached (quota): as the story says. Request a higher limit for the quota that Azure names, or delete unused resources
            t=515.5 #2 inspect web: read-public-ip   because outcome unknown
            t=515.5 #3 provision web: public-ip, load-balancer, register   because retry due
            t=1754.1 #4 provision web: public-ip, load-balancer, register   because retry due
            t=3861.6 #5 provision web: public-ip, load-balancer, register   because retry due
            t=7259.9 #6 provision web: public-ip, load-balancer, register   because retry due
            t=11107.0 #7 provision web: public-ip, load-balancer, register   because retry due
            t=14000.8 web is NotStarted, wanted, parked: QuotaExceeded, 6 failures
            t=14000.8   waits for its next attempt at t=14406.9: QuotaExceeded
        "#]],
    );
}

#[test]
pub(super) fn a_forbidden_plan_parks_from_five_minutes_to_an_hour_and_the_event_says_what() {
    check(
        "show times
         show notices
         service web applied
         plans fail AuthorizationFailed 403
         #1 failed AuthorizationFailed 403
         tick 10000
         explain web",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 warn web: Forbidden: Azure denied the request: AuthorizationFailed (forbidden): as the story says. Grant the action that Azure names to the identity of Sluice, or remove the lock or policy
            t=244.5 #2 inspect web: read-public-ip   because outcome unknown
            t=244.5 #3 provision web: public-ip, load-balancer, register   because retry due
            t=906.4 #4 inspect web: read-public-ip   because outcome unknown
            t=906.4 #5 provision web: public-ip, load-balancer, register   because retry due
            t=2133.4 #6 provision web: public-ip, load-balancer, register   because retry due
            t=4956.2 #7 provision web: public-ip, load-balancer, register   because retry due
            t=8240.1 #8 provision web: public-ip, load-balancer, register   because retry due
            t=10000.8 web is NotStarted, wanted, parked: Forbidden, 6 failures
            t=10000.8   waits for its next attempt at t=11341.9: Forbidden
        "#]],
    );
}

#[test]
pub(super) fn a_lock_and_a_policy_are_forbidden_whatever_their_status() {
    check(
        "service web applied
         service api applied
         #1 failed ScopeLocked 409
         #2 failed RequestDisallowedByPolicy 400
         explain web
         explain api",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            web is NotStarted, wanted, parked: Forbidden, 1 failures
              waits for its next attempt at t=244.3: Forbidden
            api is NotStarted, wanted, parked: Forbidden, 1 failures
              waits for its next attempt at t=269.6: Forbidden
        "#]],
    );
}

#[test]
pub(super) fn a_refusal_is_looked_at_once_more_and_then_parked() {
    check(
        "show times
         show notices
         service web applied
         #1 failed InvalidRequest 400 at load-balancer
         tick 5
         #2 done
         #3 failed InvalidRequest 400
         explain web
         tick 600
         tick 200
         last done
         last failed InvalidRequest 400
         explain web",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=1.6 #2 inspect web: read-public-ip, read-load-balancer   because outcome unknown
            t=5.7 #3 provision web: load-balancer, register   because retry due
            t=5.8 warn web: Rejected: Azure rejected the request: InvalidRequest (rejected): as the story says. Correct what the error of Azure names
            t=5.9 web is NotStarted, wanted, parked: Rejected, 2 failures
            t=5.9   waits for its next attempt at t=667.7: Rejected
            t=667.7 #4 inspect web: read-public-ip, read-load-balancer   because outcome unknown
            t=806.2 #5 provision web: load-balancer, register   because retry due
            t=806.4 web is NotStarted, wanted, parked: Rejected, 3 failures
            t=806.4   waits for its next attempt at t=2177.5: Rejected
        "#]],
    );
}

#[test]
pub(super) fn an_unknown_outcome_is_looked_at_before_anything_else() {
    check(
        "service web applied
         #1 lost applied at load-balancer
         explain web
         tick 2
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is NotStarted, wanted, waits: AzureUnavailable, 1 failures
              waits for its next attempt at t=1.4: AzureUnavailable
            #2 inspect web: read-load-balancer   because outcome unknown
            #3 provision web: register   because retry due
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_look_that_fails_is_repeated_with_backoff() {
    check(
        "show times
         service web applied
         #1 lost at load-balancer
         tick 2
         #2 failed ServerBusy 503
         state web
         tick 5
         #3 lost
         state web
         tick 9
         #4 done
         state web",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=1.5 #2 inspect web: read-load-balancer   because outcome unknown
            t=2.7 web is NotStarted
            t=4.9 #3 inspect web: read-load-balancer   because outcome unknown
            t=8.0 web is NotStarted
            t=11.9 #4 inspect web: read-load-balancer   because outcome unknown
            t=17.2 #5 provision web: load-balancer, register   because retry due
            t=17.3 web is CreationInProgress
        "#]],
    );
}

#[test]
pub(super) fn an_unknown_outcome_that_a_look_too_soon_does_not_show_is_written_again() {
    check(
        "service web applied
         #1 lost at register
         tick 2
         #2 done
         #3 done
         state web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-registration   because outcome unknown
            #3 provision web: register   because retry due
            web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_change_of_spec_ends_a_park_at_once() {
    check(
        "show times
         service web applied
         #1 failed QuotaExceeded 400
         service web applied port=81->8081
         #2 done
         #3 done
         state web",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 inspect web: read-public-ip   because outcome unknown
            t=0.6 #3 provision web: public-ip, load-balancer, register   because service applied
            t=0.8 web is Created
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_ends_a_park_at_once() {
    check(
        "show times
         service web applied
         #1 failed QuotaExceeded 400 at load-balancer
         service web applied deleting
         #2 done
         #3 done",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 #2 inspect web: read-load-balancer   because outcome unknown
            t=0.6 #3 deprovision web: delete-load-balancer, delete-public-ip   because last address left
            t=0.7 #4 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
pub(super) fn a_change_that_does_not_matter_ends_no_park() {
    check(
        "show times
         service web applied
         #1 failed QuotaExceeded 400
         service web applied
         service web applied again
         explain web",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.7 web is NotStarted, wanted, parked: QuotaExceeded, 1 failures
            t=0.7   waits for its next attempt at t=515.3: QuotaExceeded
        "#]],
    );
}

#[test]
pub(super) fn endpoints_that_come_during_a_park_wait_with_it() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 failed QuotaExceeded 400
         endpoints web 10.0.0.4@node-a
         explain web
         tick 800
         #2 done
         #3 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            web is NotStarted, wanted, parked: QuotaExceeded, 1 failures, addresses: 1 wanted, 0 programmed, 0 mapped
              waits for its next attempt at t=515.3: QuotaExceeded
            #2 inspect web: read-public-ip   because outcome unknown
            #3 provision web: public-ip, load-balancer, register   because retry due
            #4 push 10.0.0.4 to node-a for web   because service became ready
        "#]],
    );
}

#[test]
pub(super) fn one_service_that_fails_again_and_again_does_not_delay_the_others() {
    check(
        "config slots=1
         service web applied
         #1 failed ServerBusy 503
         service api applied
         #2 done
         tick 2
         service cart applied
         #3 failed ServerBusy 503
         #4 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 provision api: public-ip, load-balancer, register   because service applied
            #3 inspect web: read-public-ip   because outcome unknown
            #4 provision cart: public-ip, load-balancer, register   because service applied
        "#]],
    );
}

#[test]
pub(super) fn a_parent_that_is_missing_is_waited_for() {
    check(
        "show times
         service web applied
         #1 failed ResourceGroupNotFound 404
         explain web
         tick 3
         #2 done
         #3 done",
        expect![[r#"
            t=0.3 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.5 web is NotStarted, wanted, waits: AzureUnavailable, 1 failures
            t=0.5   waits for its next attempt at t=1.5: AzureUnavailable
            t=1.5 #2 inspect web: read-public-ip   because outcome unknown
            t=3.7 #3 provision web: public-ip, load-balancer, register   because retry due
        "#]],
    );
}

#[test]
pub(super) fn a_gateway_that_is_missing_at_the_registration_is_looked_for() {
    check(
        "hold lists
         service web applied
         #1 failed ResourceNotFound 404 at register",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 list gateway   because drift sweep
        "#]],
    );
}

#[test]
pub(super) fn a_deletion_that_is_refused_is_looked_at_parked_and_never_given_up() {
    check(
        "show times
         show notices
         service web applied
         #1 done
         service web applied deleting
         #2 refused
         tick 5
         #3 done
         #4 refused
         explain web
         tick 900
         last done
         last done
         last done
         state web",
        expect![[r#"
            t=0.4 #1 provision web: public-ip, load-balancer, register   because service applied
            t=0.6 #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            t=1.8 #3 inspect web: read-public-ip, read-load-balancer   because outcome unknown
            t=5.9 #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            t=6.0 warn web: Rejected: Azure rejected the request: InvalidRequest (rejected): as the story says. Correct what the error of Azure names
            t=6.1 web is DeletionInProgress, not wanted, live, parked: Rejected, 2 failures
            t=6.1   waits for its next attempt at t=516.2: Rejected
            t=516.2 #5 inspect web: read-public-ip, read-load-balancer   because outcome unknown
            t=906.3 #6 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            t=906.4 #7 remove finalizer from web   because operation ended
            t=906.6 web is forgotten
        "#]],
    );
}

#[test]
fn the_first_success_after_an_outage_ends_the_parks_of_its_kind_once() {
    let mut story = told(
        "service web applied
         service api applied
         plans fail ServerBusy 503
         #1 failed ServerBusy 503
         #2 failed ServerBusy 503
         tick 330",
    );
    for name in ["web", "api"] {
        assert!(until(&story, name).since(story.now) > Duration::from_secs(60), "{name} is parked");
    }
    story.play("plans stop failing\nservice cart applied\ntick 7\nlast done");
    let ends = ["web", "api"].map(|name| until(&story, name).since(story.now));
    assert!(ends.iter().all(|left| *left <= Duration::from_secs(10)), "{ends:?}");
    assert!(ends[0].abs_diff(ends[1]) > Duration::from_secs(1), "spread: {ends:?}");
    // Both fail again, for a reason of their own this time.
    story.play("plans fail ServerBusy 503\ntick 50");
    let waits = ["web", "api"].map(|name| until(&story, name));
    story.play("plans stop failing\nservice till applied\nlast done");
    assert_eq!(["web", "api"].map(|name| until(&story, name)), waits, "{}", story.shown());
}

#[test]
fn a_success_ends_no_backoff_of_another_kind() {
    let mut story = told(
        "service web applied
         service api applied
         #1 failed ServerBusy 503 at load-balancer
         #2 failed ServerBusy 503 at public-ip
         plans fail ServerBusy 503
         tick 330
         plans stop failing",
    );
    let [web, api] = ["web", "api"].map(|name| until(&story, name));
    story.play("node node-a 192.168.0.1\npod p1 egress=blue ip=10.1.0.1 node=node-a\nlast done\nlast done");
    assert!(until(&story, "api") < api, "it waits for its public IP");
    assert_eq!(until(&story, "web"), web, "it waits for its load balancer");
}

#[test]
fn a_success_ends_no_backoff_when_not_all_have_failed_for_a_minute() {
    let mut story = told("service web applied\n#1 failed ServerBusy 503\nplans fail ServerBusy 503\ntick 50");
    let retry_at = until(&story, "web");
    story.play("plans stop failing\nservice api applied\nlast done");
    assert_eq!(until(&story, "web"), retry_at, "{}", story.shown());
}

#[test]
fn the_end_of_an_outage_ends_no_wait_that_azure_asked_for() {
    let mut story = told("service web applied\nservice api applied\n#1 failed ServerBusy 503 after=300");
    let asked_for = until(&story, "web");
    story.play("tick 100\n#2 done");
    assert_eq!(until(&story, "web"), asked_for, "{}", story.shown());
}

#[test]
fn a_service_that_could_not_even_be_read_is_retried_after_the_first_write() {
    let mut story = told("service web applied\n#1 lost");
    for _ in 0..11 {
        story.play("tick 40\nlast failed ServerBusy 503");
    }
    let parked_until = until(&story, "web");
    story.play("service api applied\nlast done");
    assert!(until(&story, "web") < parked_until, "{}", story.shown());
}

/// When the next attempt for a service is due.
fn until(story: &Story, name: &str) -> Time {
    let view = story.engine.view_of(&story.key(name)).expect("known");
    view.hold.expect("its next attempt waits").until
}
