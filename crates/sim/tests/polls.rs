//! The table of polls: how long they delay a Service on Azures of different speed.

use core::time::Duration;

use sluice_sim::calls::polls::{Figures, measure, targets};

#[test]
fn polls_delay_no_service_beyond_the_limits() {
    let misses: Vec<String> = targets()
        .iter()
        .flat_map(|target| target.misses(&measure(target).expect("every Service gets its IP")))
        .collect();
    assert_eq!(misses, Vec::<String>::new());
}

#[test]
fn the_best_possible_counts_every_operation_and_its_retry_after() {
    let target = targets()
        .into_iter()
        .find(|it| !it.warm && it.operation == Duration::from_millis(300) && it.retry_after.is_some())
        .expect("the table has it");
    let figures = measure(&target).expect("every Service gets its IP");
    assert_eq!(figures.operations_permille, 3_000, "public IP, load balancer, registration");
    // Each may be polled a second after its answer, which takes 20 ms.
    assert_eq!(figures.best, Duration::from_millis(3 * 1_020));
}

#[test]
fn a_limit_that_is_exceeded_is_named() {
    let target = targets().into_iter().find(|it| it.warm).expect("the table has warm rows");
    let best = Duration::from_secs(1);
    let figures = |to_ip_ms, reads_permille| Figures {
        to_ip: Duration::from_millis(to_ip_ms),
        best,
        operations_permille: 3_000,
        reads_permille,
    };
    assert_eq!(target.misses(&figures(1_450, 10_000)), Vec::<String>::new());
    assert!(
        matches!(target.misses(&figures(1_451, 10_000)).as_slice(), [it] if it.contains("1451 ms > 1450 ms"))
    );
    assert!(matches!(target.misses(&figures(1_450, 10_100)).as_slice(), [it] if it.contains("10100 reads")));
}
