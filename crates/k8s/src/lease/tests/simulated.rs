//! Several electors around one Lease, in a world where clocks drift, answers get lost and processes
//! freeze: never may two act at once, and when all is well again somebody leads.

use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

/// Milliseconds of true time in one step of the world.
const STEP_MS: u64 = 50;

/// A small generator of numbers, so that a case is its seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn once_in(&mut self, times: u64) -> bool {
        self.roll(times) == 0
    }
}

struct Process {
    elector: Elector,
    /// Its clock shows `start + true time * speed / 1000`.
    start: u64,
    speed: u64,
    /// Its time of day is off by so many seconds, or stands still.
    skew: i64,
    stands_still: bool,
    frozen_until: u64,
    waiting: Option<Waiting>,
}

/// A request that the process waits for, by its own clock.
struct Waiting {
    number: u64,
    gives_up: Time,
}

impl Process {
    fn now(&self, true_ms: u64) -> Time {
        Time::from_millis(self.start + true_ms * self.speed / 1000)
    }

    fn wall(&self, true_ms: u64) -> Timestamp {
        let passed = if self.stands_still { 0 } else { true_ms as i64 };
        Timestamp::from_millisecond(1_800_000_000_000 + self.skew * 1000 + passed).unwrap()
    }
}

/// A request or an answer on its way.
struct Carried {
    at: u64,
    process: usize,
    number: u64,
    what: Load,
}

enum Load {
    Request(Request, Option<u64>),
    Answer(Answer),
}

struct World {
    dice: Dice,
    true_ms: u64,
    processes: Vec<Process>,
    stored: Option<Lease>,
    version: u64,
    carried: VecDeque<Carried>,
    numbers: u64,
    born: u64,
    faults: bool,
    led_ms: u64,
    takeovers: u64,
    last_leader: Option<String>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut world = World {
            dice: Dice(seed),
            true_ms: 0,
            processes: Vec::new(),
            stored: None,
            version: 0,
            carried: VecDeque::new(),
            numbers: 0,
            born: 0,
            faults: true,
            led_ms: 0,
            takeovers: 0,
            last_leader: None,
        };
        for _ in 0..3 {
            let process = world.born();
            world.processes.push(process);
        }
        world
    }

    fn born(&mut self) -> Process {
        self.born += 1;
        Process {
            elector: elector(&format!("process-{}", self.born)),
            start: self.dice.roll(1_000_000),
            // Up to 15 % too fast or too slow.
            speed: 850 + self.dice.roll(301),
            skew: self.dice.roll(200_000) as i64 - 100_000,
            stands_still: self.dice.once_in(4),
            frozen_until: 0,
            waiting: None,
        }
    }

    fn step(&mut self) {
        self.true_ms += STEP_MS;
        if self.faults {
            self.disturb();
        }
        self.deliver();
        for index in 0..self.processes.len() {
            self.act(index);
        }
        self.judge();
    }

    fn disturb(&mut self) {
        let index = self.dice.roll(self.processes.len() as u64) as usize;
        // Each about once in so many seconds of true time.
        if self.dice.once_in(30_000 / STEP_MS) {
            self.processes[index].frozen_until = self.true_ms + self.dice.roll(60_000);
        }
        if self.dice.once_in(60_000 / STEP_MS) {
            // Killed; what it has on the wire stays there, and its successor has another name.
            self.processes[index] = self.born();
        }
        if self.dice.once_in(90_000 / STEP_MS) {
            let wall = self.processes[index].wall(self.true_ms);
            if let Some(request) = self.processes[index].elector.release(wall) {
                self.send(index, request, Time::NEVER);
            }
            self.processes[index] = self.born();
        }
        if self.dice.once_in(45_000 / STEP_MS)
            && let Some(lease) = &mut self.stored
        {
            // Somebody puts an annotation on it.
            self.version += 1;
            lease.metadata.resource_version = Some(self.version.to_string());
        }
    }

    fn act(&mut self, index: usize) {
        let true_ms = self.true_ms;
        let process = &mut self.processes[index];
        if true_ms < process.frozen_until {
            return;
        }
        let (now, wall) = (process.now(true_ms), process.wall(true_ms));
        if let Some(waiting) = &process.waiting {
            if now < waiting.gives_up {
                return;
            }
            process.waiting = None;
            process.elector.heard(now, Answer::Failed(Trouble::Unavailable("no answer".into())));
        }
        if let Next::Ask(request) = process.elector.next(now, wall) {
            let gives_up = now + Timing::default().call_limit();
            self.send(index, request, gives_up);
        }
    }

    fn send(&mut self, index: usize, request: Request, gives_up: Time) {
        self.numbers += 1;
        let number = self.numbers;
        self.processes[index].waiting = Some(Waiting { number, gives_up });
        let (mut there, mut back) = (self.dice.roll(200), Some(self.dice.roll(200)));
        if self.faults {
            match self.dice.roll(10) {
                // Lost on the way.
                0 => return,
                // Answered into the void.
                1 => back = None,
                // Long after nobody waits for it any more.
                2 => there += self.dice.roll(30_000),
                3 => back = Some(self.dice.roll(5_000)),
                _ => {}
            }
        }
        let what = Load::Request(request, back);
        self.carried.push_back(Carried { at: self.true_ms + there, process: index, number, what });
    }

    fn deliver(&mut self) {
        loop {
            let due = self.carried.iter().position(|it| it.at <= self.true_ms);
            let Some(due) = due.and_then(|at| self.carried.remove(at)) else { return };
            match due.what {
                Load::Request(request, back) => {
                    let answer = self.serve(request);
                    if let Some(back) = back {
                        let at = self.true_ms + back;
                        self.carried.push_back(Carried { at, what: Load::Answer(answer), ..due });
                    }
                }
                Load::Answer(answer) => {
                    let process = &mut self.processes[due.process];
                    // What a frozen process is told waits in its socket.
                    if self.true_ms < process.frozen_until {
                        let at = process.frozen_until;
                        self.carried.push_back(Carried { at, what: Load::Answer(answer), ..due });
                        continue;
                    }
                    let now = process.now(self.true_ms);
                    // Thawed, it may see the answer before it sees that its patience is over.
                    if process.waiting.as_ref().is_some_and(|it| it.number == due.number) {
                        process.waiting = None;
                        process.elector.heard(now, answer);
                    }
                }
            }
        }
    }

    /// What an API server does: a write counts only over the version that it names.
    fn serve(&mut self, request: Request) -> Answer {
        match request {
            Request::Read => match &self.stored {
                Some(lease) => Answer::Found(Box::new(lease.clone())),
                None => Answer::Missing,
            },
            Request::Create(lease) if self.stored.is_none() => self.store(*lease),
            Request::Create(_) => Answer::Conflict,
            Request::Replace(lease) => {
                let current = self.stored.as_ref().map(|it| it.metadata.resource_version.clone());
                if current != Some(lease.metadata.resource_version.clone()) {
                    return Answer::Conflict;
                }
                if self.stored.as_ref() == Some(&*lease) {
                    return Answer::Written(lease);
                }
                self.store(*lease)
            }
        }
    }

    fn store(&mut self, mut lease: Lease) -> Answer {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.stored = Some(lease.clone());
        Answer::Written(Box::new(lease))
    }

    /// Frozen or not: whoever may act by its own clock counts.
    fn judge(&mut self) {
        let leaders: Vec<String> = self
            .processes
            .iter()
            .filter(|it| it.elector.leads(it.now(self.true_ms)))
            .map(|it| it.elector.identity().to_string())
            .collect();
        assert!(leaders.len() <= 1, "at {} ms two may act: {leaders:?}", self.true_ms);
        if let [leader] = leaders.as_slice() {
            self.led_ms += STEP_MS;
            if self.last_leader.as_ref() != Some(leader) {
                self.takeovers += 1;
                self.last_leader = Some(leader.clone());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn never_may_two_act_at_once_and_in_the_end_somebody_leads(seed in any::<u64>()) {
        let mut world = World::new(seed);
        while world.true_ms < 600_000 {
            world.step();
        }
        world.faults = false;
        for process in &mut world.processes {
            process.frozen_until = 0;
        }
        // What was sent before may still come, within 30 s; then one lease and a few tries.
        let calm = world.true_ms + 30_000 + 25_000;
        while world.true_ms < calm {
            world.step();
        }
        let leader = world.last_leader.clone();
        for _ in 0..200 {
            world.step();
            prop_assert!(world.processes.iter().any(|it| it.elector.leads(it.now(world.true_ms))));
        }
        prop_assert_eq!(&world.last_leader, &leader, "a calm leader stays");
    }
}

/// The property would hold for electors that never lead.
#[test]
fn the_simulated_worlds_have_leaders_and_takeovers() {
    let (mut led, mut takeovers) = (0, 0);
    for seed in 0..20 {
        let mut world = World::new(seed);
        while world.true_ms < 600_000 {
            world.step();
        }
        led += world.led_ms;
        takeovers += world.takeovers;
    }
    assert!(led > 20 * 200_000, "led for {led} ms");
    assert!(takeovers > 20 * 3, "{takeovers} takeovers");
}
