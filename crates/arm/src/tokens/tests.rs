//! One token against a source that follows a script, in paused time.

use super::*;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::time::{advance, sleep};

#[derive(Clone)]
enum Step {
    /// A token that is good for so many seconds; 0 is over when it comes.
    Token(u64),
    Fail,
    /// A failure that asks for a pause of so many seconds.
    Busy(u64),
    /// A refusal that only people can mend.
    Deny,
    Hang,
    Panic,
}

/// Takes a second for every fetch. The last step repeats.
struct Script {
    steps: Mutex<VecDeque<Step>>,
    fetches: Arc<AtomicUsize>,
}

impl Source for Script {
    fn fetch(&self) -> Fetching<'_> {
        Box::pin(async {
            let number = self.fetches.fetch_add(1, Ordering::SeqCst) + 1;
            let step = {
                let mut steps = self.steps.lock().unwrap();
                if steps.len() > 1 { steps.pop_front().unwrap() } else { steps[0].clone() }
            };
            sleep(Duration::from_secs(1)).await;
            match step {
                Step::Token(life) => Ok(Fetched {
                    token: Secret::new(format!("t{number}")),
                    good_for: Some(Duration::from_secs(life)).filter(|life| !life.is_zero()),
                }),
                Step::Fail => Err(format!("failure {number}").into()),
                Step::Busy(wait) => Err(NoToken {
                    wait: Some(Duration::from_secs(wait)),
                    ..NoToken::from(format!("failure {number}"))
                }),
                Step::Deny => Err(NoToken { for_people: true, ..NoToken::from(format!("failure {number}")) }),
                Step::Hang => std::future::pending().await,
                Step::Panic => panic!("the source breaks"),
            }
        })
    }
}

struct World {
    tokens: Tokens,
    fetches: Arc<AtomicUsize>,
}

fn world(steps: impl IntoIterator<Item = Step>) -> World {
    let fetches = Arc::new(AtomicUsize::new(0));
    let steps = Mutex::new(steps.into_iter().collect());
    let tokens = Tokens::new(Script { steps, fetches: fetches.clone() }, &Limits::default());
    World { tokens, fetches }
}

impl World {
    /// The number of the token that one gets, or the text of the failure.
    async fn ask(&self) -> Result<u64, String> {
        self.tokens.bearer().await.map(|bearer| bearer.number).map_err(|why| why.text.clone())
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

/// Lets time pass, in steps that let tasks run.
async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn many_who_ask_at_once_share_one_fetch() {
    let world = world([Step::Token(3600)]);
    let (one, two, three) = tokio::join!(world.ask(), world.ask(), world.ask());
    assert_eq!((one, two, three), (Ok(1), Ok(1), Ok(1)));
    assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
}

#[tokio::test(start_paused = true)]
async fn the_header_does_not_print_the_token() {
    let bearer = world([Step::Token(3600)]).tokens.bearer().await.unwrap();
    assert_eq!(
        (bearer.header.to_str().unwrap(), format!("{:?}", bearer.header)),
        ("Bearer t1", "Sensitive".into())
    );
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_does_not_stop_the_fetch_for_the_others() {
    let world = world([Step::Token(3600)]);
    let gave_up = timeout(Duration::from_millis(500), world.ask()).await;
    assert!(gave_up.is_err());
    assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_in_the_background_when_a_fifth_of_its_life_is_left() {
    let world = world([Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    pass(3600 * 4 / 5 - 2).await;
    assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1));
    pass(3).await;
    // The old one is handed out at once; nobody waits for the new one.
    let before = Instant::now();
    assert_eq!((world.ask().await, before.elapsed()), (Ok(1), Duration::ZERO));
    pass(2).await;
    assert_eq!((world.ask().await, world.fetches()), (Ok(2), 2));
}

#[tokio::test(start_paused = true)]
async fn a_short_token_is_renewed_five_minutes_before_its_end_or_at_half_time() {
    for (life, renewal) in [(1000, 700), (60, 30)] {
        let world = world([Step::Token(life)]);
        assert_eq!(world.ask().await, Ok(1));
        pass(renewal - 1).await;
        assert_eq!((world.ask().await, world.fetches()), (Ok(1), 1), "{life}");
        pass(2).await;
        let _ = world.ask().await;
        pass(2).await;
        assert_eq!((world.ask().await, world.fetches()), (Ok(2), 2), "{life}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_leaves_the_old_token_in_use_and_is_tried_again_later() {
    let world = world([Step::Token(3600), Step::Fail, Step::Fail, Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    pass(3000).await;
    for fetches in [2, 3] {
        for _ in 0..5 {
            assert_eq!(world.ask().await, Ok(1));
            pass(2).await;
        }
        assert_eq!(world.fetches(), fetches);
        advance(RENEWAL_PAUSE).await;
    }
    assert_eq!(world.ask().await, Ok(1));
    pass(2).await;
    assert_eq!(world.ask().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_is_not_handed_out() {
    let world = world([Step::Token(3600), Step::Fail]);
    assert_eq!(world.ask().await, Ok(1));
    pass(3600 - 29).await;
    assert_eq!(world.ask().await, Err("failure 2".into()));
}

#[tokio::test(start_paused = true)]
async fn a_failure_speaks_for_all_who_ask_within_a_moment() {
    let world = world([Step::Fail, Step::Token(3600)]);
    let (one, two) = tokio::join!(world.ask(), world.ask());
    assert_eq!((one, two), (Err("failure 1".into()), Err("failure 1".into())));
    assert_eq!((world.ask().await, world.fetches()), (Err("failure 1".into()), 1));
    pass(1).await;
    assert_eq!(world.ask().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_is_left_alone_as_long_as_it_asks_and_a_while_after_it_refused_us() {
    for (step, pause) in [(Step::Busy(60), 60), (Step::Busy(0), 1), (Step::Deny, 30)] {
        let world = world([step, Step::Token(3600)]);
        assert_eq!(world.ask().await, Err("failure 1".into()));
        pass(pause).await;
        // The fetch took a second of its own before the pause began.
        assert_eq!((world.fetches(), world.ask().await), (1, Ok(1)), "{pause}");
    }
    for (step, pause) in [(Step::Busy(60), 60), (Step::Deny, 30)] {
        let world = world([step, Step::Token(3600)]);
        assert_eq!(world.ask().await, Err("failure 1".into()));
        pass(pause - 1).await;
        assert_eq!((world.ask().await, world.fetches()), (Err("failure 1".into()), 1), "{pause}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_renewal_waits_as_long_as_the_issuer_asks_while_the_old_token_is_in_use() {
    let world = world([Step::Token(3600), Step::Busy(120), Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    pass(3000).await;
    assert_eq!(world.ask().await, Ok(1));
    pass(119).await;
    assert_eq!((world.ask().await, world.fetches()), (Ok(1), 2));
    pass(3).await;
    assert_eq!(world.ask().await, Ok(1));
    pass(2).await;
    assert_eq!((world.ask().await, world.fetches()), (Ok(2), 3));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_that_hangs_ends_at_the_limit_and_one_that_breaks_ends_at_once() {
    let hangs = world([Step::Hang, Step::Token(3600)]);
    let before = Instant::now();
    let why = hangs.ask().await.unwrap_err();
    assert!(why.contains("no token within 20 s"), "{why}");
    assert_eq!(before.elapsed(), Limits::default().token);
    pass(1).await;
    assert_eq!(hangs.ask().await, Ok(1));

    let breaks = world([Step::Panic, Step::Token(3600)]);
    assert!(breaks.ask().await.unwrap_err().contains("bug"));
    assert_eq!(breaks.ask().await, Ok(1));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_seems_over_when_it_comes_is_used_all_the_same() {
    let world = world([Step::Token(0)]);
    assert_eq!((world.ask().await, world.ask().await, world.fetches()), (Ok(1), Ok(1), 1));
    pass(60).await;
    assert_eq!(world.ask().await, Ok(2));
}

#[tokio::test(start_paused = true)]
async fn the_first_refusal_drops_the_token_and_the_next_is_for_good() {
    let world = world([Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    assert_eq!(world.tokens.refused(1), Refusal::OldToken);
    assert_eq!(world.ask().await, Ok(2));
    // Calls that left with the old token do not count against the new one.
    assert_eq!(world.tokens.refused(1), Refusal::OldToken);
    assert_eq!(world.tokens.refused(2), Refusal::ForGood);
    assert_eq!(world.tokens.refused(2), Refusal::ForGood);
}

#[tokio::test(start_paused = true)]
async fn a_token_refused_for_good_is_replaced_only_after_a_while() {
    let world = world([Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    world.tokens.refused(1);
    assert_eq!(world.ask().await, Ok(2));
    world.tokens.refused(2);
    assert_eq!(world.ask().await, Ok(2));
    advance(RENEWAL_PAUSE).await;
    assert_eq!(world.tokens.refused(2), Refusal::ForGood);
    assert_eq!(world.ask().await, Ok(3));
    assert_eq!(world.tokens.refused(3), Refusal::ForGood);
}

#[tokio::test(start_paused = true)]
async fn an_acceptance_of_a_newer_token_ends_the_streak() {
    let world = world([Step::Token(3600)]);
    assert_eq!(world.ask().await, Ok(1));
    world.tokens.refused(1);
    world.tokens.accepted(1);
    assert_eq!(world.ask().await, Ok(2));
    assert_eq!(world.tokens.refused(2), Refusal::ForGood, "an old acceptance does not count");
    world.tokens.accepted(2);
    assert_eq!(world.tokens.refused(2), Refusal::OldToken);
    assert_eq!(world.ask().await, Ok(3));
}
