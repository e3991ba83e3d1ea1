//! Stories about trouble: what is desired and not programmed is said, while it is so and in one set of words.

use expect_test::expect;
use sluice_model::reason::Reason;

use super::story::{check, told};

const LIVE: &str = "
    node node-a 192.168.0.1
    service web applied
    #1 done
    endpoints web 10.0.0.4@node-a
    #2 done
";

#[test]
fn addresses_that_cannot_be_sent_are_said_after_half_a_minute_and_no_longer_than_needed() {
    check(
        "show status
         node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         #2 done
         show times
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a 10.0.0.6@node-a
         #3 failed InternalServerError 500
         trouble web
         tick 1
         #4 failed InternalServerError 500
         syncs fail ServerBusy 503
         tick 20
         trouble web
         tick 100
         trouble web
         syncs stop failing
         tick 30
         last done
         trouble web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
            t=0.9 #3 push 10.0.0.6 to node-a for web   because addresses changed
            t=1.1 web is in no trouble
            t=1.7 #4 push 10.0.0.6 to node-a for web   because addresses changed
            t=3.7 #5 push 10.0.0.6 to node-a for web   because addresses changed
            t=7.2 #6 push 10.0.0.6 to node-a for web   because addresses changed
            t=14.4 #7 push 10.0.0.6 to node-a for web   because addresses changed
            t=22.6 web is in no trouble
            t=25.1 #8 push 10.0.0.6 to node-a for web   because addresses changed
            t=30.9 (write status of web: 20.1.2.1, Provisioning AzureUnavailable of Addresses, Serving Provisioned)
            t=51.2 #9 push 10.0.0.6 to node-a for web   because addresses changed
            t=75.3 #10 push 10.0.0.6 to node-a for web   because addresses changed
            t=96.0 #11 push 10.0.0.6 to node-a for web   because addresses changed
            t=122.8 web: AzureUnavailable of Addresses: 1 of 3 addresses are not programmed in Azure. Address updates fail and are retried. ServerBusy (transient): as the story says.
            t=125.1 #12 push 10.0.0.6 to node-a for web   because addresses changed
            t=153.1 (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            t=153.2 web is in no trouble
        "#]],
    );
}

#[test]
fn pods_that_were_replaced_while_updates_wait_do_not_count_as_programmed() {
    check(
        "show status
         node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         #2 done
         endpoints web 10.0.0.6@node-a 10.0.0.7@node-a
         #3 throttled 600
         tick 60
         trouble web
         explain web
         tick 600
         #3 done
         trouble web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
            #3 remove 10.0.0.4 10.0.0.5 from node-a, push 10.0.0.6 10.0.0.7 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, Provisioning AzureUnavailable of Addresses, not Serving AzureUnavailable of Addresses)
            web: AzureUnavailable of Addresses: 2 of 2 addresses are not programmed in Azure. The address update in flight has not ended for over 1 min
            web is Created, wanted, live, 20.1.2.1, addresses: 2 wanted, 0 programmed, 4 mapped
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is in no trouble
        "#]],
    );
}

#[test]
fn a_service_without_a_single_programmed_address_does_not_serve() {
    check(
        "show status
         node node-a 192.168.0.1
         service web applied
         #1 done
         syncs fail InternalServerError 500
         hide status
         endpoints web 10.0.0.4@node-a
         show status
         tick 60
         trouble web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            #4 push 10.0.0.4 to node-a for web   because addresses changed
            #5 push 10.0.0.4 to node-a for web   because addresses changed
            #6 push 10.0.0.4 to node-a for web   because addresses changed
            #7 push 10.0.0.4 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, Provisioning AzureUnavailable of Addresses, not Serving AzureUnavailable of Addresses)
            #8 push 10.0.0.4 to node-a for web   because addresses changed
            web: AzureUnavailable of Addresses: 1 of 1 addresses are not programmed in Azure. Address updates fail and are retried. InternalServerError (transient): as the story says.
        "#]],
    );
}

#[test]
fn a_short_row_of_failures_is_no_trouble() {
    let mut story = told(LIVE);
    story.play("show status\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\n#3 failed ServerBusy 503\ntick 2\n#4 failed ServerBusy 503\ntick 4\n#5 done\ntick 100");
    let shown = story.shown();
    assert!(!shown.contains("write status"), "{shown}");
}

#[test]
fn an_address_update_that_does_not_end_is_trouble_after_a_minute() {
    let mut story = told(LIVE);
    story.play("show status\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\ntick 59");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0);
    story.play("tick 1");
    assert_eq!(story.engine.gauges().trouble[Reason::AzureUnavailable as usize], 1, "{}", story.shown());
    story.play("#3 lost");
    assert_eq!(story.engine.gauges().trouble[Reason::AzureUnavailable as usize], 1, "{}", story.shown());
    story.play("tick 2\n#4 done");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0, "{}", story.shown());
}

#[test]
fn the_reason_says_what_address_updates_fail_with() {
    for (code, status, reason) in [
        ("AuthorizationFailed", 403, Reason::Forbidden),
        ("InternalServerError", 500, Reason::AzureUnavailable),
        ("PublicIPCountLimitReached", 400, Reason::QuotaExceeded),
    ] {
        let mut story = told(LIVE);
        story.play(&std::format!(
            "syncs fail {code} {status}\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\ntick 60"
        ));
        assert_eq!(story.engine.gauges().trouble[reason as usize], 1, "{code}: {}", story.shown());
    }
}

#[test]
fn a_credential_that_is_not_accepted_is_told_apart_from_a_missing_permission() {
    let about_credential = |input: &str| {
        let story = told(input);
        let view = story.engine.view_of(&story.key("web")).expect("a service of the story");
        let trouble = view.trouble.unwrap_or_else(|| panic!("no trouble: {}", story.shown()));
        assert_eq!(trouble.reason, Reason::Forbidden, "{}", trouble.text);
        let is_about_credential = trouble.is_about_credential.expect("a failure is known");
        assert_eq!(trouble.text.contains("credential not accepted"), is_about_credential);
        is_about_credential
    };
    let parked = |code: &str| std::format!("service web applied\n#1 failed {code}");
    assert!(about_credential(&parked("ExpiredAuthenticationToken 401")));
    assert!(!about_credential(&parked("AuthorizationFailed 403")));
    let behind = |code: &str| {
        std::format!("{LIVE}syncs fail {code}\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\ntick 60")
    };
    assert!(about_credential(&behind("InvalidAuthenticationTokenTenant 401")));
    assert!(!about_credential(&behind("AuthorizationFailed 403")));
    let untagged = |code: &str| {
        std::format!("{LIVE}azure untags load-balancer web\ntick 1900\nlast failed {code}\nlast done")
    };
    assert!(about_credential(&untagged("ExpiredAuthenticationToken 401")));
    assert!(!about_credential(&untagged("AuthorizationFailed 403")));
}

#[test]
fn conditions_are_not_written_again_by_retries() {
    let mut story = told(LIVE);
    story.play(
        "syncs fail InternalServerError 500
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         show status
         tick 3600",
    );
    let writes = story.shown().matches("write status").count();
    assert_eq!(writes, 1, "{}", story.shown());
}

#[test]
fn five_retries_of_an_operation_write_the_trouble_once() {
    for code in ["ServerBusy 503", "AuthorizationFailed 403", "QuotaExceeded 400", "InvalidRequest 400"] {
        let mut story = told(&std::format!("plans fail {code}\nshow status\nservice web applied"));
        story.play("tick 14400");
        let shown = story.shown();
        let attempts = shown.lines().filter(|line| line.starts_with('#')).count();
        assert!(attempts > 5, "{code}: {shown}");
        // The first is `Provisioning`.
        assert_eq!(shown.matches("write status").count(), 2, "{code}: {shown}");
    }
}

#[test]
fn an_outage_that_mixes_errors_writes_the_conditions_once() {
    let mixed = |kind: &str, story: &mut super::story::Story| {
        for _ in 0..10 {
            story.play(&std::format!("{kind} fail ServerBusy 503\ntick 40"));
            story.play(&std::format!("{kind} fail TooManyRequests 429\ntick 40"));
        }
    };
    let mut story = told(LIVE);
    story.play("syncs fail ServerBusy 503\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\nshow status");
    mixed("syncs", &mut story);
    assert_eq!(story.shown().matches("write status").count(), 1, "{}", story.shown());
    assert_eq!(story.engine.gauges().trouble[Reason::AzureUnavailable as usize], 1);
    // What needs people is said at once.
    story.play("syncs fail AuthorizationFailed 403\ntick 40");
    assert_eq!(story.engine.gauges().trouble[Reason::Forbidden as usize], 1, "{}", story.shown());

    let mut story = told("plans fail ServerBusy 503\nshow status\nservice web applied\ntick 20");
    mixed("plans", &mut story);
    let statuses = story.shown().matches("write status").count();
    assert_eq!(statuses, 2, "provisioning, then trouble: {}", story.shown());
    assert_eq!(story.engine.gauges().trouble[Reason::AzureUnavailable as usize], 1);
}

#[test]
fn failures_of_changes_that_became_unnecessary_are_no_trouble_of_the_next_change() {
    let mut story = told(LIVE);
    story.play(
        "syncs fail ServerBusy 503
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         tick 60",
    );
    assert_eq!(story.engine.gauges().trouble[Reason::AzureUnavailable as usize], 1, "{}", story.shown());
    story.play("endpoints web 10.0.0.4@node-a\ntick 60\nsyncs stop failing");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0, "{}", story.shown());
    story.play("endpoints web 10.0.0.4@node-a 10.0.0.6@node-a");
    let shown = story.shown();
    assert!(shown.ends_with("push 10.0.0.6 to node-a for web   because addresses changed\n"), "{shown}");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0, "{shown}");
}

#[test]
fn a_deletion_in_an_outage_says_that_it_is_stuck() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         #2 done
         syncs fail InternalServerError 500
         show status
         show times
         service web applied deleting
         tick 60
         hide status
         trouble web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            t=1.0 (write status of web: not 20.1.2.1, Provisioning Draining, not Serving Draining)
            t=1.0 #3 remove node-a   because addresses changed
            t=1.7 #4 remove node-a   because addresses changed
            t=3.2 #5 remove node-a   because addresses changed
            t=6.7 #6 remove node-a   because addresses changed
            t=13.8 #7 remove node-a   because addresses changed
            t=24.6 #8 remove node-a   because addresses changed
            t=31.0 (write status of web: not 20.1.2.1, Provisioning AzureUnavailable of Deletion, not Serving AzureUnavailable of Deletion)
            t=50.7 #9 remove 10.0.0.4 from node-a   because addresses changed
            t=61.3 web: AzureUnavailable of Deletion: Deletion is waiting for 1 address to be removed from the gateway. Address updates fail and are retried. InternalServerError (transient): as the story says.
        "#]],
    );
}

#[test]
fn a_deletion_whose_operation_fails_is_trouble_from_the_third_failure_on() {
    check(
        "service web applied
         #1 done
         show status
         service web applied deleting
         #2 failed ServerBusy 503
         tick 5
         #3 failed ServerBusy 503
         trouble web
         tick 5
         #4 failed ServerBusy 503
         trouble web
         tick 10
         trouble web
         #5 done",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: not 20.1.2.1, Provisioning Deleting, not Serving Deleting)
            #2 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            web is in no trouble
            #4 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            (write status of web: not 20.1.2.1, Provisioning AzureUnavailable of Deletion, not Serving AzureUnavailable of Deletion)
            web: AzureUnavailable of Deletion: ServerBusy (transient): as the story says.
            #5 deprovision web: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            web: AzureUnavailable of Deletion: ServerBusy (transient): as the story says.
            (write status of web: nothing)
            #6 remove finalizer from web   because operation ended
        "#]],
    );
}

#[test]
fn a_deletion_that_waits_for_long_is_trouble() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         endpoints web 10.0.0.4@node-a
         #2 done
         service web applied deleting
         #3 refused
         last refused
         trouble web
         show status
         tick 310
         last refused
         trouble web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            #3 remove node-a   because addresses changed
            #4 remove node-a   because addresses changed
            web is in no trouble
            (write status of web: not 20.1.2.1, Provisioning Draining of Deletion, not Serving Draining of Deletion)
            #5 remove node-a   because addresses changed
            #6 remove node-a   because addresses changed
            web: Draining of Deletion: Deletion is waiting for 1 address to be removed from the gateway: 10.0.0.4 on node IP 192.168.0.1
        "#]],
    );
}

#[test]
fn a_refused_address_is_trouble_and_stays_so_while_it_is_tried_again() {
    check(
        "node node-a 192.168.0.1
         service web applied
         #1 done
         show status
         endpoints web 10.0.0.4@node-a 10.0.0.5@node-a
         #2 refused
         #3 refused
         #4 done
         trouble web
         tick 300
         trouble web
         last refused
         trouble web
         tick 300
         last done
         trouble web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 10.0.0.5 to node-a for web   because addresses changed
            #3 push 10.0.0.4 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, Provisioning Rejected of Addresses, not Serving Rejected of Addresses)
            #4 push 10.0.0.5 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, Provisioning Rejected of Addresses, Serving Provisioned)
            web: Rejected of Addresses: 1 of 2 addresses are not programmed in Azure. Azure rejected 1 address, which Sluice retries. InvalidRequest (rejected): as the story says.
            #5 push 10.0.0.4 to node-a for web   because addresses changed
            web: Rejected of Addresses: 1 of 2 addresses are not programmed in Azure. Azure rejected 1 address, which Sluice retries. InvalidRequest (rejected): as the story says.
            web: Rejected of Addresses: 1 of 2 addresses are not programmed in Azure. Azure rejected 1 address, which Sluice retries. InvalidRequest (rejected): as the story says.
            #6 push 10.0.0.4 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is in no trouble
        "#]],
    );
}

#[test]
fn a_park_is_trouble_until_an_operation_succeeds_also_while_it_is_tried_again() {
    check(
        "show status
         service web applied
         #1 failed QuotaExceeded 400
         trouble web
         tick 720
         trouble web
         #2 done
         trouble web
         #3 done
         trouble web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            (write status of web: Provisioning QuotaExceeded, not Serving QuotaExceeded)
            web: QuotaExceeded of Resources: QuotaExceeded (quota): as the story says.
            #2 inspect web: read-public-ip   because outcome unknown
            web: QuotaExceeded of Resources: QuotaExceeded (quota): as the story says.
            #3 provision web: public-ip, load-balancer, register   because retry due
            web: QuotaExceeded of Resources: QuotaExceeded (quota): as the story says.
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is in no trouble
        "#]],
    );
}

#[test]
fn three_failures_in_a_row_are_trouble_and_one_is_not() {
    check(
        "show status
         service web applied
         #1 failed AnotherOperationInProgress 409
         tick 2
         last failed AnotherOperationInProgress 409
         trouble web
         tick 5
         last failed AnotherOperationInProgress 409
         trouble web
         tick 10
         last done
         last done
         trouble web",
        expect![[r#"
            (write status of web: Provisioning Provisioning, not Serving Provisioning)
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 inspect web: read-public-ip   because outcome unknown
            web is in no trouble
            #3 inspect web: read-public-ip   because outcome unknown
            (write status of web: Provisioning AzureUnavailable, not Serving AzureUnavailable)
            web: AzureUnavailable of Resources: AnotherOperationInProgress (transient): as the story says.
            #4 inspect web: read-public-ip   because outcome unknown
            #5 provision web: public-ip, load-balancer, register   because retry due
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is in no trouble
        "#]],
    );
}

#[test]
fn azure_that_cannot_be_listed_is_trouble_of_every_service() {
    check(
        "show status
         hold lists
         service web known published=20.1.2.1 ingress=20.1.2.1
         service new known
         lead
         #1 failed ServerBusy 503
         tick 1
         last failed ServerBusy 503
         trouble web
         tick 29
         last failed ServerBusy 503
         trouble web
         trouble new",
        expect![[r#"
            #1 list gateway   because start-up
            #2 list registrations   because start-up
            #3 list locations   because start-up
            #4 list load-balancers   because start-up
            #5 list nat-gateways   because start-up
            #6 list public-ips   because start-up
            #7 list gateway   because start-up
            web is in no trouble
            #8 list gateway   because start-up
            (write status of new: Provisioning AzureUnavailable, not Serving AzureUnavailable)
            (write status of web: 20.1.2.1, Provisioning AzureUnavailable, not Serving AzureUnavailable)
            web: AzureUnavailable of Resources: Cannot read the gateway from Azure, so no change is made. ServerBusy (transient): as the story says.
            new: AzureUnavailable of Resources: Cannot read the gateway from Azure, so no change is made. ServerBusy (transient): as the story says.
        "#]],
    );
}

#[test]
fn a_new_leader_goes_on_saying_what_the_last_one_said() {
    check(
        "show status
         node node-a 192.168.0.1
         service web known published=20.1.2.1 ingress=20.1.2.1 stuck=addresses
         endpoints web 10.0.0.4@node-a
         azure has web
         lead
         trouble web
         #1 failed InternalServerError 500
         trouble web
         tick 2
         #2 done
         trouble web",
        expect![[r#"
            (write status of web: 20.1.2.1, Provisioning AzureUnavailable of Addresses, not Serving AzureUnavailable of Addresses)
            #1 push 10.0.0.4 to node-a for web   because service became ready
            web: AzureUnavailable of Addresses: 1 of 1 addresses are not programmed in Azure. No address update has succeeded since the leader changed
            web: AzureUnavailable of Addresses: 1 of 1 addresses are not programmed in Azure. No address update has succeeded since the leader changed
            #2 push 10.0.0.4 to node-a for web   because addresses changed
            (write status of web: 20.1.2.1, not Provisioning Provisioned, Serving Provisioned)
            web is in no trouble
        "#]],
    );
}

#[test]
fn a_new_leader_goes_on_saying_that_a_deletion_is_stuck() {
    let mut story = told(
        "node node-a 192.168.0.1
         service web known deleting stuck=deletion
         azure has web
         azure has address 10.0.0.4 at 192.168.0.1 for web
         lead
         trouble web",
    );
    assert!(story.shown().contains("web: Draining of Deletion"), "{}", story.shown());
    story.play("#1 done\ntrouble web");
    assert!(story.shown().ends_with("web is in no trouble\n"), "{}", story.shown());
}

#[test]
fn a_standby_and_a_leader_that_lost_its_lease_say_nothing_of_trouble() {
    let mut story = told(LIVE);
    story.play("syncs fail InternalServerError 500\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\ntick 60");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 1);
    story.play("show status\nleadership lost");
    assert_eq!(story.engine.gauges().trouble.iter().sum::<u64>(), 0);
    let shown = story.shown();
    assert!(!shown.contains("write status"), "{shown}");
}

#[test]
fn tags_that_cannot_be_written_or_are_removed_again_are_trouble_until_they_are_back() {
    let mut story = told(
        "service web applied
         #1 done
         azure untags load-balancer web
         tick 1900
         #2 failed AuthorizationFailed 403
         #3 done",
    );
    let key = story.key("web");
    let trouble = |story: &super::story::Story| story.engine.view_of(&key).and_then(|view| view.trouble);
    let forbidden = trouble(&story).expect("its tags cannot be written");
    assert_eq!(forbidden.reason, Reason::Forbidden);
    assert!(
        forbidden.text.starts_with("tagging /") && forbidden.text.contains(" failed: AuthorizationFailed ("),
        "{}",
        forbidden.text
    );
    story.play("tick 400\n#4 done\ntick 10");
    assert_eq!(trouble(&story), None, "{}", story.shown());
    story.play("azure untags load-balancer web\ntick 1900");
    let removed = trouble(&story).expect("its tags were removed again");
    assert_eq!(removed.reason, Reason::Conflict);
    story.play("azure adopts web\ntick 1900");
    assert_eq!(trouble(&story), None, "{}", story.shown());
}

#[test]
fn an_object_that_kubernetes_does_not_let_us_write_is_trouble() {
    check(
        "show notices
         service web applied nofinalizer
         #1 refused
         tick 1
         #2 unavailable
         trouble web
         tick 2
         #3 unavailable
         trouble web
         tick 4
         #4 done
         trouble web",
        expect![[r#"
            #1 add finalizer to web   because service applied
            warn web: KubernetesRejected: The API server rejected the patch: a webhook said no. Sluice retries; grant the permission, or exempt its service account from the webhook or policy
            #2 add finalizer to web   because service applied
            web is in no trouble
            #3 add finalizer to web   because service applied
            web: KubernetesRejected of Resources: The API server rejects writes to the Service, or does not answer. Retrying
            #4 add finalizer to web   because service applied
            #5 provision web: public-ip, load-balancer, register   because service applied
            web is in no trouble
        "#]],
    );
}

#[test]
fn who_looks_at_changes_is_shown_when_trouble_begins_and_ends() {
    let mut story = told(LIVE);
    story.play("syncs fail InternalServerError 500\nendpoints web 10.0.0.4@node-a 10.0.0.5@node-a\ntick 25");
    let seen = story.engine.change_number();
    story.play("tick 10");
    assert_eq!(story.engine.changed_since(seen), Some(std::vec![story.key("web")]));
    let seen = story.engine.change_number();
    story.play("syncs stop failing\ntick 30\nlast done");
    assert_eq!(story.engine.changed_since(seen), Some(std::vec![story.key("web")]));
}

#[test]
fn a_sentence_about_trouble_has_one_colon_at_most() {
    let guard: std::string::String = (1..=8).map(|it| std::format!("azure has egress=e{it}\n")).collect();
    for (input, name) in [
        (std::format!("{LIVE}syncs fail ServerBusy 503\nendpoints web 10.0.0.5@node-a\ntick 60"), "web"),
        (std::format!("{LIVE}endpoints web 10.0.0.4@node-a 10.0.0.5@node-a\n#3 refused"), "web"),
        ("hold lists\nservice web known\nlead\n#1 failed ServerBusy 503\ntick 40".into(), "web"),
        (std::format!("{guard}lead\ntick 1"), "e1"),
    ] {
        let story = told(&input);
        let trouble = story.engine.view_of(&story.key(name)).and_then(|view| view.trouble);
        let text = trouble.unwrap_or_else(|| panic!("no trouble: {}", story.shown())).text;
        for sentence in text.split(". ") {
            assert!(sentence.matches(": ").count() <= 1, "{text}");
        }
        assert_eq!(name == "e1", text.contains("`sluice allow-deletion`"), "{text}");
    }
}

#[test]
fn a_conflict_that_is_read_again_is_told_by_the_missing_tags() {
    let mut story = told("service web known\nazure has web public-ip foreign\nlead\ntick 61");
    story.play("trouble web");
    let shown = story.shown();
    let words = "Conflict of Resources: An unmanaged resource with the required name was found";
    assert!(shown.contains("#1 inspect web") && shown.contains(words), "{shown}");
}

#[test]
fn ports_that_disagree_for_seconds_do_not_hide_failing_address_updates() {
    check(
        "node node-a 192.168.0.1
         endpoints web 10.0.0.4@node-a port=8080
         service web applied port=80->http
         #1 done
         #2 done
         syncs fail InternalServerError 500
         endpoints web 10.0.0.4@node-a 10.0.0.6@node-a port=8080
         tick 60
         trouble web
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         trouble web",
        expect![[r#"
            #1 provision web: public-ip, load-balancer, register   because service applied
            #2 push 10.0.0.4 to node-a for web   because service became ready
            #3 push 10.0.0.6 to node-a for web   because addresses changed
            #4 push 10.0.0.6 to node-a for web   because addresses changed
            #5 push 10.0.0.6 to node-a for web   because addresses changed
            #6 push 10.0.0.6 to node-a for web   because addresses changed
            #7 push 10.0.0.6 to node-a for web   because addresses changed
            #8 push 10.0.0.6 to node-a for web   because addresses changed
            #9 push 10.0.0.6 to node-a for web   because addresses changed
            web: AzureUnavailable of Addresses: 1 of 2 addresses are not programmed in Azure. Address updates fail and are retried. InternalServerError (transient): as the story says.
            #10 push 10.0.0.6 10.0.0.5 to node-a for web   because addresses changed
            web: AzureUnavailable of Addresses: 2 of 3 addresses are not programmed in Azure. Address updates fail and are retried. InternalServerError (transient): as the story says.
        "#]],
    );
}

#[test]
fn a_new_leader_says_at_once_that_a_port_is_still_unresolved() {
    check(
        "node node-a 192.168.0.1
         show notices
         endpoints web 10.0.0.4@node-a port=8080
         endpoints web 10.0.0.5@node-a port=9090 slice=2
         service web known port=80->http stuck=ports
         lead
         trouble web
         tick 70
         trouble web",
        expect![[r#"
            web: PortUnresolved of Resources: Ready endpoints define different numbers for targetPort "http"
            web: PortUnresolved of Resources: Ready endpoints define different numbers for targetPort "http"
        "#]],
    );
}
