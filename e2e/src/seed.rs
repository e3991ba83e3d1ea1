//! Random numbers that a seed decides, so that a failed story can be run again with the same kills.

/// A small generator (splitmix64): good enough to choose moments, and the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Seeded(u64);

impl Seeded {
    /// Begins from a seed and a name, so that two stories of one run do not move in step.
    pub(crate) fn new(seed: u64, name: &str) -> Seeded {
        // FNV-1a; the standard hasher may differ between versions of the compiler.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Seeded(seed ^ hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        it ^ (it >> 31)
    }

    /// A number below the limit.
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_name_give_the_same_numbers_and_another_name_others() {
        let numbers = |seed, name: &str| {
            let mut seeded = Seeded::new(seed, name);
            (0..8).map(|_| seeded.below(1_000)).collect::<Vec<u64>>()
        };
        assert_eq!(numbers(7, "web"), numbers(7, "web"));
        assert_ne!(numbers(7, "web"), numbers(8, "web"));
        assert_ne!(numbers(7, "web"), numbers(7, "blue"));
    }
}
