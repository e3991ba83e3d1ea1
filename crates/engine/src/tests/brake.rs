//! Stories about the brake: which deletions it holds, which evidence releases them, and the operator's consent.

use std::format;
use std::string::String;

use expect_test::expect;

use super::story::check;

/// One line for each of eight services, with the number in place of `$`.
fn eight(line: &str) -> String {
    (1..=8).map(|number| format!("{}\n", line.replace('$', &format!("{number}")))).collect()
}

#[test]
fn egresses_whose_last_pod_a_standby_watched_go_are_not_held() {
    check(
        &format!(
            "node node-a 192.168.0.1\n{}{}pods relisted\n{}show notices\nlead\ntick 1\nstate e8",
            eight("azure has egress=e$"),
            eight("pod p$ known egress=e$ ip=10.1.0.$ node=node-a"),
            eight("pod p$ deleted"),
        ),
        expect![[r#"
            #1 deprovision e1: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #2 deprovision e2: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #3 deprovision e3: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #4 deprovision e4: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #5 deprovision e5: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #6 deprovision e6: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #7 deprovision e7: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            #8 deprovision e8: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because last address left
            e8 is DeletionInProgress
        "#]],
    );
}

#[test]
fn egresses_whose_teardown_had_begun_are_not_held_by_the_next_leader() {
    check(
        &format!(
            "{}azure has egress=e9 public-ip\nshow notices\nlead\ntick 1",
            eight("azure has egress=e$ public-ip nat-gateway registration cleared")
        ),
        expect![[r#"
            #1 deprovision e1: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #2 deprovision e2: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #3 deprovision e3: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #4 deprovision e4: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #5 deprovision e5: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #6 deprovision e6: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #7 deprovision e7: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #8 deprovision e8: detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #9 inspect e9: read-nat-gateway, read-registration   because orphaned
        "#]],
    );
}

#[test]
fn egresses_of_which_only_a_part_is_left_are_not_held_while_they_are_read_again() {
    for left in ["public-ip", "public-ip registration cleared"] {
        let story = format!("{}show notices\nlead\ntick 1", eight(&format!("azure has egress=e$ {left}")));
        let effects = super::story::told(&story).shown();
        assert!(effects.contains("inspect e8"), "{left}: {effects}");
        assert!(!effects.contains("MassDeletionHeld"), "{left}: {effects}");
    }
}

#[test]
fn services_that_are_no_load_balancer_any_more_are_not_held_by_the_next_leader() {
    check(
        &format!("{}{}show notices\nlead", eight("service s$ known clusterip"), eight("azure has s$")),
        expect![[r#"
            #1 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #2 deprovision s2: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision s3: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 deprovision s4: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 deprovision s5: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #6 deprovision s6: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #7 deprovision s7: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #8 deprovision s8: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
        "#]],
    );
}

#[test]
fn services_that_vanish_from_a_newer_list_are_held() {
    check(
        &format!(
            "show notices\n{}{}lead\n{}services relisted\n{}state s1\nstate s8\ntick 4000\nstate s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("service s$ vanishes"),
            eight("#$ gone"),
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6, service/shop/s7, service/shop/s8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            #1 ask whether s1 is gone   because service no longer wanted
            #2 ask whether s2 is gone   because service no longer wanted
            #3 ask whether s3 is gone   because service no longer wanted
            #4 ask whether s4 is gone   because service no longer wanted
            #5 ask whether s5 is gone   because service no longer wanted
            #6 ask whether s6 is gone   because service no longer wanted
            #7 ask whether s7 is gone   because service no longer wanted
            #8 ask whether s8 is gone   because service no longer wanted
            s1 is DeletionPending
            s8 is DeletionPending
            s8 is DeletionPending
        "#]],
    );
}

#[test]
fn services_that_vanish_from_a_newer_list_and_were_seen_deleting_are_not_held() {
    check(
        &format!(
            "show notices\n{}{}lead\nplans fail Busy 503\n{}{}services relisted\nstate s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("service s$ applied deleting"),
            eight("service s$ vanishes"),
        ),
        expect![[r#"
            #1 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #2 deprovision s2: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #3 deprovision s3: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #4 deprovision s4: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #5 deprovision s5: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #6 deprovision s6: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #7 deprovision s7: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #8 deprovision s8: clear, delete-load-balancer, unregister, delete-public-ip   because last address left
            #9 ask whether s1 is gone   because service no longer wanted
            #10 ask whether s2 is gone   because service no longer wanted
            #11 ask whether s3 is gone   because service no longer wanted
            #12 ask whether s4 is gone   because service no longer wanted
            #13 ask whether s5 is gone   because service no longer wanted
            #14 ask whether s6 is gone   because service no longer wanted
            #15 ask whether s7 is gone   because service no longer wanted
            #16 ask whether s8 is gone   because service no longer wanted
            #17 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #18 deprovision s2: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #19 deprovision s3: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #20 deprovision s4: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #21 deprovision s5: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            #22 deprovision s6: clear, delete-load-balancer, unregister, delete-public-ip   because retry due
            s8 is DeletionInProgress
        "#]],
    );
}

#[test]
fn services_that_vanished_and_exist_after_all_are_neither_held_nor_torn_down() {
    check(
        &format!(
            "show notices\n{}{}lead\n{}services relisted\n{}{}tick 100\nexplain s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("service s$ vanishes"),
            eight("service s$ known"),
            "services relisted\n",
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6, service/shop/s7, service/shop/s8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            #1 ask whether s1 is gone   because service no longer wanted
            #2 ask whether s2 is gone   because service no longer wanted
            #3 ask whether s3 is gone   because service no longer wanted
            #4 ask whether s4 is gone   because service no longer wanted
            #5 ask whether s5 is gone   because service no longer wanted
            #6 ask whether s6 is gone   because service no longer wanted
            #7 ask whether s7 is gone   because service no longer wanted
            #8 ask whether s8 is gone   because service no longer wanted
            s8 is Created, wanted, live, 20.1.2.8
        "#]],
    );
}

#[test]
fn egresses_whose_pods_vanish_from_a_newer_list_are_held_with_their_addresses() {
    check(
        &format!(
            "show notices\nnode node-a 192.168.0.1\n{}{}{}lead\n{}pods relisted\ntick 4000\nexplain e8\n\
             pod p8 egress=e8 ip=10.1.0.8 node=node-a\nexplain e8",
            eight("pod p$ known egress=e$ ip=10.1.0.$ node=node-a"),
            eight("azure has egress=e$"),
            eight("azure has address 10.1.0.$ at 192.168.0.1 for egress=e$"),
            eight("pod p$ vanishes"),
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: egress/e1, egress/e2, egress/e3, egress/e4, egress/e5, egress/e6, egress/e7, egress/e8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            e8 is DeletionPending, not wanted, live, 20.1.2.8, addresses: 0 wanted, 1 programmed, 1 mapped
              waits for consent to a mass deletion
            e8 is Created, wanted, live, 20.1.2.8, 1 pods, addresses: 1 wanted, 1 programmed, 1 mapped
        "#]],
    );
}

#[test]
fn egresses_whose_terminating_pods_are_missing_from_a_newer_list_are_not_held() {
    check(
        &format!(
            "show notices\nnode node-a 192.168.0.1\n{}{}lead\n{}{}pods relisted\nstate e8",
            eight("pod p$ known egress=e$ ip=10.1.0.$ node=node-a"),
            eight("azure has egress=e$"),
            eight("pod p$ egress=e$ ip=10.1.0.$ node=node-a terminating"),
            eight("pod p$ vanishes"),
        ),
        expect![[r#"
            #1 push 10.1.0.1 to node-a for e1, push 10.1.0.2 to node-a for e2, push 10.1.0.3 to node-a for e3, push 10.1.0.4 to node-a for e4, push 10.1.0.5 to node-a for e5, push 10.1.0.6 to node-a for e6, push 10.1.0.7 to node-a for e7, push 10.1.0.8 to node-a for e8   because service became ready
            e8 is DeletionPending
        "#]],
    );
}

#[test]
fn consent_releases_exactly_the_services_that_it_names() {
    check(
        &format!(
            "show notices\n{}lead\ntick 1\nallow deletion except e8\nstate e7\ntick 4000\nexplain e8\n\
             allow deletion",
            eight("azure has egress=e$")
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: egress/e1, egress/e2, egress/e3, egress/e4, egress/e5, egress/e6, egress/e7, egress/e8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 1 gateway service: egress/e8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            #1 deprovision e1: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #2 deprovision e2: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #3 deprovision e3: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #4 deprovision e4: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #5 deprovision e5: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #6 deprovision e6: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            #7 deprovision e7: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            e7 is DeletionInProgress
            e8 is DeletionPending, not wanted, live, 20.1.2.8
              waits for consent to a mass deletion
            #8 deprovision e8: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
        "#]],
    );
}

#[test]
fn consent_that_is_taken_back_releases_nothing_more() {
    check(
        &format!(
            "config slots=1\n{}lead\ntick 1\nallow deletion\nallow deletion of nothing\n#1 done\nexplain e2",
            eight("azure has egress=e$")
        ),
        expect![[r#"
            #1 deprovision e1: clear, detach-nat-gateway, unregister, delete-nat-gateway, delete-public-ip   because orphaned
            e2 is DeletionPending, not wanted, live, 20.1.2.2
              waits for consent to a mass deletion
        "#]],
    );
}

#[test]
fn egresses_that_linger_after_a_restart_are_held_when_that_is_over() {
    check(
        &format!(
            "config linger=60\nshow notices\n{}lead\ntick 1\nstate e8\ntick 100\nstate e8",
            eight("azure has egress=e$")
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: egress/e1, egress/e2, egress/e3, egress/e4, egress/e5, egress/e6, egress/e7, egress/e8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            e8 is Created
            e8 is DeletionPending
        "#]],
    );
}

#[test]
fn egresses_whose_pods_vanish_from_a_newer_list_during_their_creation_are_held() {
    let created: String = (9..=16).map(|number| format!("#{number} done\n")).collect();
    check(
        &format!(
            "show notices\nnode node-a 192.168.0.1\nlead\n{}{}{}pods relisted\n{created}explain e8",
            eight("pod p$ egress=e$ ip=10.1.0.$ node=node-a"),
            eight("#$ done"),
            eight("pod p$ vanishes"),
        ),
        expect![[r#"
            #1 inspect e1: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #2 inspect e2: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #3 inspect e3: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #4 inspect e4: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #5 inspect e5: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #6 inspect e6: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #7 inspect e7: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #8 inspect e8: read-public-ip, read-public-ip, read-nat-gateway, read-registration   because pods came
            #9 provision e1: public-ip, nat-gateway, register   because pods came
            #10 provision e2: public-ip, nat-gateway, register   because pods came
            #11 provision e3: public-ip, nat-gateway, register   because pods came
            #12 provision e4: public-ip, nat-gateway, register   because pods came
            #13 provision e5: public-ip, nat-gateway, register   because pods came
            #14 provision e6: public-ip, nat-gateway, register   because pods came
            #15 provision e7: public-ip, nat-gateway, register   because pods came
            #16 provision e8: public-ip, nat-gateway, register   because pods came
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: egress/e1, egress/e2, egress/e3, egress/e4, egress/e5, egress/e6, egress/e7, egress/e8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            e8 is DeletionPending, not wanted, live, 20.1.2.8
              waits for consent to a mass deletion
        "#]],
    );
}

#[test]
fn consent_is_used_up_when_what_it_names_exists_after_all() {
    check(
        &format!(
            "config slots=1\n{}{}lead\n{}services relisted\n{}allow deletion\n{}services relisted\n\
             {}services relisted\n{}explain s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("service s$ vanishes"),
            eight("#$ gone"),
            eight("service s$ known"),
            eight("service s$ vanishes"),
            (10..=17).map(|number| format!("#{number} gone\n")).collect::<String>(),
        ),
        expect![[r#"
            #1 ask whether s1 is gone   because service no longer wanted
            #2 ask whether s2 is gone   because service no longer wanted
            #3 ask whether s3 is gone   because service no longer wanted
            #4 ask whether s4 is gone   because service no longer wanted
            #5 ask whether s5 is gone   because service no longer wanted
            #6 ask whether s6 is gone   because service no longer wanted
            #7 ask whether s7 is gone   because service no longer wanted
            #8 ask whether s8 is gone   because service no longer wanted
            #9 deprovision s1: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            #10 ask whether s1 is gone   because service no longer wanted
            #11 ask whether s2 is gone   because service no longer wanted
            #12 ask whether s3 is gone   because service no longer wanted
            #13 ask whether s4 is gone   because service no longer wanted
            #14 ask whether s5 is gone   because service no longer wanted
            #15 ask whether s6 is gone   because service no longer wanted
            #16 ask whether s7 is gone   because service no longer wanted
            #17 ask whether s8 is gone   because service no longer wanted
            s8 is DeletionPending, not wanted, live
              waits for consent to a mass deletion
        "#]],
    );
}

#[test]
fn consent_is_used_up_when_the_next_leader_finds_what_it_names_wanted() {
    check(
        &format!(
            "show notices\n{}{}allow deletion of {}\nlead\n{}services relisted\n{}explain s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("s$@20.1.2.$").replace('\n', " "),
            eight("service s$ vanishes"),
            eight("#$ gone"),
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6, service/shop/s7, service/shop/s8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            #1 ask whether s1 is gone   because service no longer wanted
            #2 ask whether s2 is gone   because service no longer wanted
            #3 ask whether s3 is gone   because service no longer wanted
            #4 ask whether s4 is gone   because service no longer wanted
            #5 ask whether s5 is gone   because service no longer wanted
            #6 ask whether s6 is gone   because service no longer wanted
            #7 ask whether s7 is gone   because service no longer wanted
            #8 ask whether s8 is gone   because service no longer wanted
            s8 is DeletionPending, not wanted, live
              waits for consent to a mass deletion
        "#]],
    );
}

#[test]
fn orphans_whose_deletion_is_allowed_do_not_hold_others() {
    check(
        &format!(
            "show notices\n{}service s9 known\nazure has s9\nservice new known\nallow deletion of {}\nlead\n\
             service s9 vanishes\nservices relisted\n#2 gone\nstate s9",
            eight("azure has egress=e$"),
            eight("e$@20.1.2.$").replace('\n', " "),
        ),
        expect![[r#"
            #1 provision new: public-ip, load-balancer, register   because service applied
            #2 ask whether s9 is gone   because service no longer wanted
            #3 deprovision s9: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            s9 is DeletionInProgress
        "#]],
    );
}

#[test]
fn nothing_is_held_any_more_once_all_have_come_back() {
    check(
        &format!(
            "show notices\n{}{}lead\n{}services relisted\n{}service s8 vanishes\nservices relisted\n\
             #9 gone\nstate s8",
            eight("service s$ known"),
            eight("azure has s$"),
            eight("service s$ vanishes"),
            eight("service s$ applied"),
        ),
        expect![[r#"
            warn cluster: MassDeletionHeld: Mass-deletion guard: held deletion of 8 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6, service/shop/s7, service/shop/s8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
            #1 ask whether s1 is gone   because service no longer wanted
            #2 ask whether s2 is gone   because service no longer wanted
            #3 ask whether s3 is gone   because service no longer wanted
            #4 ask whether s4 is gone   because service no longer wanted
            #5 ask whether s5 is gone   because service no longer wanted
            #6 ask whether s6 is gone   because service no longer wanted
            #7 ask whether s7 is gone   because service no longer wanted
            #8 ask whether s8 is gone   because service no longer wanted
            #9 ask whether s8 is gone   because service no longer wanted
            #10 deprovision s8: clear, delete-load-balancer, unregister, delete-public-ip   because orphaned
            s8 is DeletionInProgress
        "#]],
    );
}

#[test]
fn egresses_that_are_made_while_they_linger_are_held_if_their_pods_vanished_before_the_first_listing() {
    check(
        &format!(
            "config linger=600\nnode node-a 192.168.0.1\n{}hold lists\nlead\n{}pods relisted\nrelease lists\n{}{}\
             tick 700\nexplain e8",
            eight("pod p$ known egress=e$ ip=10.1.0.$ node=node-a"),
            eight("pod p$ vanishes"),
            (1..=6).map(|number| format!("#{number} done\n")).collect::<String>(),
            (7..=14).map(|number| format!("#{number} done\n")).collect::<String>(),
        ),
        expect![[r#"
            #1 list gateway   because start-up
            #2 list registrations   because start-up
            #3 list locations   because start-up
            #4 list load-balancers   because start-up
            #5 list nat-gateways   because start-up
            #6 list public-ips   because start-up
            #7 provision e1: public-ip, nat-gateway, register   because pods came
            #8 provision e2: public-ip, nat-gateway, register   because pods came
            #9 provision e3: public-ip, nat-gateway, register   because pods came
            #10 provision e4: public-ip, nat-gateway, register   because pods came
            #11 provision e5: public-ip, nat-gateway, register   because pods came
            #12 provision e6: public-ip, nat-gateway, register   because pods came
            #13 provision e7: public-ip, nat-gateway, register   because pods came
            #14 provision e8: public-ip, nat-gateway, register   because pods came
            e8 is DeletionPending, not wanted, live, 20.1.2.8
              waits for consent to a mass deletion
        "#]],
    );
}
