//! The one source of chance: a small seeded generator.
//!
//! Everything random in a run follows from one seed, so that a run can be replayed. Parts that
//! must not disturb each other draw from streams of their own, made with [`Rng::fork`]: how much
//! one stream is used changes nothing in another.
//!
//! The numbers come from SplitMix64, which is plenty for dice and useless for secrets.

/// A stream of numbers that looks random and follows from its seed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rng {
    /// What the stream was made from; forks depend on this and not on how far the stream got.
    origin: u64,
    state: u64,
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { origin: seed, state: mixed(seed) }
    }

    /// A stream of its own; the same label gives the same stream, however much was drawn here.
    pub fn fork(&self, label: &str) -> Rng {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in label.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Rng::new(mixed(self.origin).rotate_left(17) ^ mixed(hash))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.state)
    }

    /// A number below `n`; zero if there is none.
    pub fn below(&mut self, n: u64) -> u64 {
        // The high half of the product; its bias is far smaller than anything a simulation can see.
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included; `low` if they are the wrong way round.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        match high.checked_sub(low) {
            Some(u64::MAX) => self.next_u64(),
            Some(span) => low + self.below(span + 1),
            None => low,
        }
    }

    /// True so many times in a thousand.
    pub fn chance(&mut self, per_mille: u16) -> bool {
        self.below(1000) < u64::from(per_mille)
    }

    /// One of them; `None` only if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(usize::try_from(self.below(from.len() as u64)).unwrap_or(0))
    }
}

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers_and_another_seed_others() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn a_fork_does_not_depend_on_how_much_its_parent_was_used() {
        let fresh = Rng::new(1);
        let mut used = Rng::new(1);
        used.next_u64();
        assert_eq!(fresh.fork("cloud"), used.fork("cloud"));
        assert_ne!(fresh.fork("cloud"), fresh.fork("kube"));
        assert_ne!(fresh.fork("cloud"), Rng::new(2).fork("cloud"));
    }

    #[test]
    fn draws_stay_in_bounds_and_reach_both_ends() {
        let mut rng = Rng::new(3);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| rng.between(3, 5)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(rng.below(0), 0);
        assert_eq!(rng.between(5, 3), 5);
        assert_eq!(rng.pick::<u8>(&[]), None);
        assert!(!(0..100).any(|_| rng.chance(0)));
        assert!((0..100).all(|_| rng.chance(1000)));
        let half = (0..10_000).filter(|_| rng.chance(500)).count();
        assert!((4_700..5_300).contains(&half), "{half}");
    }
}
