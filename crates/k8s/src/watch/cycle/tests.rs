//! The state machine of a list and watch, answer by answer.

use super::*;

const AT_ONCE: Turn = Turn::Ask { after: Duration::ZERO };
const FAILED: Answer = Answer::Failed { suspicious: false, retry_after: None };
const SUSPICIOUS: Answer = Answer::Failed { suspicious: true, retry_after: None };

fn page(version: u64, next: Option<&str>) -> Answer {
    Answer::Page { version, next: next.map(String::from) }
}

fn after(ms: u64) -> Turn {
    Turn::Ask { after: Duration::from_millis(ms) }
}

fn ask_page(token: Option<&str>, limit: u32) -> Ask {
    Ask::Page { token: token.map(String::from), limit }
}

fn watching(from: u64) -> Cycle {
    let mut cycle = Cycle::new(true);
    assert_eq!(cycle.heard(Answer::ListEnded { version: from }), Turn::Complete { version: from });
    cycle
}

#[test]
fn a_streamed_list_becomes_the_watch() {
    let mut cycle = Cycle::new(true);
    assert_eq!(cycle.ask(), Ask::Stream);
    assert_eq!(cycle.heard(Answer::Moved { version: 3 }), Turn::GoOn, "objects of the list come first");
    assert!(!cycle.is_watching());
    assert_eq!(cycle.heard(Answer::ListEnded { version: 9 }), Turn::Complete { version: 9 });
    assert_eq!(cycle.heard(Answer::Moved { version: 12 }), Turn::GoOn);
    assert_eq!(cycle.heard(Answer::Ended { brief: false }), AT_ONCE);
    assert_eq!(cycle.ask(), Ask::Watch { from: 12 });
}

#[test]
fn a_server_that_does_not_stream_is_asked_for_pages() {
    let mut cycle = Cycle::new(true);
    assert_eq!(cycle.heard(Answer::Unsupported), AT_ONCE);
    assert_eq!(cycle.ask(), ask_page(None, 500));
    assert_eq!(cycle.heard(page(9, Some("a"))), AT_ONCE);
    assert_eq!(cycle.ask(), ask_page(Some("a"), 500));
    assert!(!cycle.ask().begins_list());
    assert_eq!(cycle.heard(page(9, None)), Turn::Complete { version: 9 });
    assert_eq!(cycle.ask(), Ask::Watch { from: 9 });
    assert_eq!(cycle.heard(Answer::Expired), AT_ONCE);
    assert_eq!(cycle.ask(), ask_page(None, 500), "it is remembered");
    assert!(cycle.ask().begins_list());
}

#[test]
fn a_stream_that_never_ends_its_list_is_given_up_for_pages() {
    let mut cycle = Cycle::new(true);
    assert_eq!(cycle.heard(Answer::Quiet), AT_ONCE);
    assert_eq!(cycle.ask(), ask_page(None, 500));
}

#[test]
fn a_streamed_list_that_breaks_off_is_begun_anew_and_at_last_in_pages() {
    let mut cycle = Cycle::new(true);
    for pause in [800, 1_600] {
        assert_eq!(cycle.heard(Answer::Ended { brief: false }), after(pause));
        assert_eq!(cycle.ask(), Ask::Stream);
    }
    assert_eq!(cycle.heard(Answer::Ended { brief: true }), after(3_200));
    assert_eq!(cycle.ask(), ask_page(None, 500));
    // A server that cannot be reached says nothing about streams.
    let mut away = Cycle::new(true);
    for _ in 0..9 {
        away.heard(FAILED);
    }
    assert_eq!(away.ask(), Ask::Stream);
}

#[test]
fn a_token_that_expires_begins_the_list_anew_with_larger_pages() {
    let mut cycle = Cycle::new(false);
    cycle.heard(page(9, Some("a")));
    assert_eq!(cycle.heard(Answer::Expired), after(800));
    assert_eq!(cycle.ask(), ask_page(None, 2_000));
    for _ in 0..4 {
        cycle.heard(page(9, Some("a")));
        cycle.heard(Answer::Expired);
    }
    assert_eq!(cycle.ask(), ask_page(None, 8_000), "but never so large that memory is in danger");
    cycle.heard(page(9, None));
    cycle.heard(Answer::Expired);
    assert_eq!(cycle.ask(), ask_page(None, 500), "a success ends that");
}

#[test]
fn a_page_that_fails_is_asked_for_again() {
    let mut cycle = Cycle::new(false);
    cycle.heard(page(9, Some("a")));
    assert_eq!(cycle.heard(FAILED), after(800));
    assert_eq!(cycle.ask(), ask_page(Some("a"), 500));
    assert_eq!(cycle.heard(FAILED), after(1_600));
    assert_eq!(cycle.heard(page(9, None)), Turn::Complete { version: 9 });
}

#[test]
fn a_token_that_the_server_does_not_know_any_more_begins_the_list_anew() {
    let mut cycle = Cycle::new(false);
    cycle.heard(page(9, Some("a")));
    for _ in 1..REFUSALS_MAX {
        cycle.heard(SUSPICIOUS);
        cycle.heard(FAILED);
        assert_eq!(cycle.ask(), ask_page(Some("a"), 500));
    }
    cycle.heard(page(9, Some("b")));
    for _ in 1..REFUSALS_MAX {
        cycle.heard(SUSPICIOUS);
    }
    assert_eq!(cycle.ask(), ask_page(Some("b"), 500), "a page that came ended the count");
    cycle.heard(SUSPICIOUS);
    assert_eq!(cycle.ask(), ask_page(None, 500));
    // However long a server is away, the token is kept.
    cycle.heard(page(9, Some("c")));
    for _ in 0..100 {
        cycle.heard(FAILED);
    }
    assert_eq!(cycle.ask(), ask_page(Some("c"), 500));
}

#[test]
fn pages_that_disagree_are_watched_from_the_oldest() {
    let mut cycle = Cycle::new(false);
    cycle.heard(page(9, Some("a")));
    cycle.heard(page(20, Some("b")));
    assert_eq!(cycle.heard(page(15, None)), Turn::Complete { version: 9 });
    assert_eq!(cycle.ask(), Ask::Watch { from: 9 });
}

#[test]
fn a_watch_never_goes_back() {
    let mut cycle = watching(9);
    cycle.heard(Answer::Moved { version: 12 });
    cycle.heard(Answer::Moved { version: 11 });
    assert_eq!(cycle.heard(FAILED), after(800));
    assert_eq!(cycle.ask(), Ask::Watch { from: 12 });
    assert_eq!(cycle.heard(Answer::ListEnded { version: 14 }), Turn::GoOn, "there is no list to end");
    assert_eq!(cycle.heard(Answer::Ended { brief: false }), AT_ONCE);
    assert_eq!(cycle.ask(), Ask::Watch { from: 14 });
}

#[test]
fn a_watch_without_a_sound_goes_on_when_the_server_stands_where_we_do_and_else_a_list_follows() {
    let mut cycle = watching(9);
    for version in [9, 12] {
        assert_eq!(cycle.heard(Answer::Quiet), AT_ONCE);
        assert_eq!(cycle.ask(), Ask::Probe);
        assert!(cycle.is_watching() && !cycle.ask().begins_list(), "we still stand on the list");
        assert_eq!(cycle.heard(Answer::Probed { version }), AT_ONCE);
        assert_eq!(cycle.ask(), Ask::Watch { from: 9 }, "only a watch brings what happened in between");
    }
    cycle.heard(Answer::Quiet);
    assert_eq!(cycle.heard(Answer::Probed { version: 8 }), AT_ONCE);
    assert_eq!(cycle.ask(), Ask::Stream);
}

#[test]
fn a_probe_that_fails_does_not_keep_us_from_watching() {
    for answer in [FAILED, SUSPICIOUS] {
        let mut cycle = watching(9);
        cycle.heard(Answer::Quiet);
        assert_eq!(cycle.heard(answer), after(800));
        assert_eq!(cycle.ask(), Ask::Watch { from: 9 });
    }
}

#[test]
fn a_list_that_is_not_believed_is_asked_for_again_with_growing_pauses() {
    let mut cycle = watching(9);
    for pause in [0, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
        assert_eq!(cycle.heard(Answer::ListOlder), after(pause));
        assert!(!cycle.is_watching() && cycle.ask() == Ask::Stream);
        cycle.heard(Answer::ListEnded { version: 4 });
    }
}

#[test]
fn pauses_double_up_to_their_limit_and_a_success_ends_them() {
    let mut cycle = watching(9);
    for pause in [800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000] {
        assert_eq!(cycle.heard(FAILED), after(pause));
    }
    cycle.heard(Answer::Moved { version: 10 });
    assert_eq!(cycle.heard(FAILED), after(800));
    let asked = Answer::Failed { suspicious: false, retry_after: Some(Duration::from_secs(7)) };
    assert_eq!(cycle.heard(asked), after(7_000), "the server's wish counts when it is longer");
}

#[test]
fn a_watch_that_hardly_lives_is_not_asked_for_in_a_hot_loop() {
    let mut cycle = watching(9);
    assert_eq!(cycle.heard(Answer::Ended { brief: true }), after(800));
    assert_eq!(cycle.heard(Answer::Ended { brief: true }), after(1_600));
    assert_eq!(cycle.ask(), Ask::Watch { from: 9 });
    assert_eq!(cycle.heard(Answer::Ended { brief: false }), AT_ONCE);
    assert_eq!(cycle.heard(Answer::Ended { brief: true }), after(800));
}

#[test]
fn lists_that_settle_nothing_are_spaced_out() {
    let mut cycle = watching(9);
    for (pause_ms, asked) in [(0, true), (800, false), (1_600, true), (3_200, false)] {
        assert_eq!(cycle.patience(), Duration::from_millis(pause_ms));
        match asked {
            // Whoever asked has been patient, and was told all changes meanwhile.
            true => assert_eq!(cycle.heard(Answer::RelistAsked), AT_ONCE),
            false => assert_eq!(cycle.heard(Answer::Expired), after(pause_ms)),
        }
        assert_eq!(cycle.ask(), Ask::Stream);
        cycle.heard(Answer::ListEnded { version: 9 });
        // Single events prove nothing: a stale list's watch brings them too.
        cycle.heard(Answer::Moved { version: 10 });
    }
    cycle.heard(Answer::Ended { brief: false });
    assert_eq!(cycle.patience(), Duration::ZERO);
}

#[test]
fn a_list_under_way_is_not_begun_anew_because_one_is_asked_for() {
    let mut cycle = Cycle::new(false);
    cycle.heard(page(9, Some("a")));
    assert_eq!(cycle.heard(Answer::RelistAsked), Turn::GoOn);
    assert_eq!(cycle.ask(), ask_page(Some("a"), 500));
}

#[test]
fn a_version_that_the_server_keeps_refusing_is_given_up_for_a_list() {
    let mut cycle = watching(9);
    for _ in 0..REFUSALS_MAX - 1 {
        cycle.heard(SUSPICIOUS);
        assert_eq!(cycle.ask(), Ask::Watch { from: 9 });
    }
    cycle.heard(SUSPICIOUS);
    assert_eq!(cycle.ask(), Ask::Stream);
    // What has nothing to do with the version never costs a list.
    let mut forbidden = watching(9);
    for _ in 0..50 {
        forbidden.heard(FAILED);
    }
    assert_eq!(forbidden.ask(), Ask::Watch { from: 9 });
}

#[test]
fn jitter_stays_within_a_quarter() {
    let second = Duration::from_secs(1);
    for random in [0, 1, 499, 500, 999, 1_000, u64::MAX] {
        let pause = jittered(second, random);
        assert!(pause >= second * 3 / 4 && pause < second * 5 / 4, "{pause:?}");
    }
    assert_eq!(jittered(Duration::ZERO, 7), Duration::ZERO);
}
