//! A map from 32 bits to 32 bits that costs one cache line to ask.
//!
//! With a million addresses, what a lookup costs is the lines of memory that it touches. Keys and values
//! lie side by side in one array, probed in a straight line, so a lookup touches one line where a general
//! map touches two; and an entry takes 8 bytes and no more than 8/7 of that are in use at best. The order
//! of the entries means nothing: whoever shows them sorts them.
//!
//! One value is set aside to mark vacant slots, and is never stored.

use alloc::boxed::Box;
use alloc::vec;
use core::hint::black_box;
use core::mem::take;

use super::slab::{Key, key};

/// A value that can stand in a [`Table`].
pub(super) trait Value: Copy + PartialEq {
    /// Marks a slot that is free.
    const VACANT: Self;
}

key!(
    /// A part of a hash, for keys that are longer than 32 bits. Several may share one.
    pub(super) Fingerprint
);

impl Fingerprint {
    pub(super) const fn of(hash: u64) -> Fingerprint {
        Fingerprint((hash >> 32) as u32)
    }
}

#[derive(Clone, Copy)]
struct Slot<K, V> {
    key: K,
    value: V,
}

/// The map.
pub(super) struct Table<K, V> {
    /// None at all, or a power of two.
    slots: Box<[Slot<K, V>]>,
    len: u32,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Table<K, V> {
        Table { slots: Box::default(), len: 0 }
    }
}

const CAPACITY_MIN: usize = 4;

impl<K: Key + PartialEq, V: Value> Table<K, V> {
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Where a key would like to be. Nearby addresses end up far apart, so runs stay short.
    fn home(&self, key: K) -> usize {
        let key = key.index() as u32;
        let mut mixed = key ^ key >> 16;
        mixed = mixed.wrapping_mul(0x7feb_352d);
        mixed ^= mixed >> 15;
        mixed = mixed.wrapping_mul(0x846c_a68b);
        (mixed ^ mixed >> 16) as usize & self.mask()
    }

    /// Only asked of a table with slots.
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    /// The slot of the first entry with this key that is the one meant.
    fn position(&self, key: K, is_meant: impl Fn(V) -> bool) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mut at = self.home(key);
        loop {
            let slot = &self.slots[at];
            if slot.value == V::VACANT {
                return None;
            }
            if slot.key == key && is_meant(slot.value) {
                return Some(at);
            }
            at = (at + 1) & self.mask();
        }
    }

    /// Has the memory behind a key brought near, without looking at it.
    pub(super) fn touch(&self, key: K) {
        if !self.slots.is_empty() {
            black_box(self.slots[self.home(key)].key.index());
        }
    }

    pub(super) fn get(&self, key: K) -> Option<V> {
        self.find(key, |_| true)
    }

    /// The value under a key that may stand for several: the one that is meant.
    pub(super) fn find(&self, key: K, is_meant: impl Fn(V) -> bool) -> Option<V> {
        self.position(key, is_meant).map(|at| self.slots[at].value)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let at = self.position(key, |_| true)?;
        Some(&mut self.slots[at].value)
    }

    /// Adds or replaces the value of a key.
    pub(super) fn insert(&mut self, key: K, value: V) {
        match self.get_mut(key) {
            Some(old) => *old = value,
            None => self.insert_another(key, value),
        }
    }

    /// Adds a value, whatever else its key stands for.
    pub(super) fn insert_another(&mut self, key: K, value: V) {
        if (self.len() + 1) * 8 > self.slots.len() * 7 {
            self.grow();
        }
        let mut at = self.home(key);
        while self.slots[at].value != V::VACANT {
            at = (at + 1) & self.mask();
        }
        self.slots[at] = Slot { key, value };
        self.len += 1;
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        self.remove_meant(key, |_| true)
    }

    /// Removes the value under a key that may stand for several: the one that is meant.
    pub(super) fn remove_meant(&mut self, key: K, is_meant: impl Fn(V) -> bool) -> Option<V> {
        let mut hole = self.position(key, is_meant)?;
        let value = self.slots[hole].value;
        self.len -= 1;
        if self.len == 0 {
            *self = Table::default();
            return Some(value);
        }
        // What was pushed on by the one that leaves moves up, so that no run has a gap.
        let mut at = hole;
        loop {
            at = (at + 1) & self.mask();
            let slot = self.slots[at];
            if slot.value == V::VACANT {
                break;
            }
            let wished = self.home(slot.key);
            if (at.wrapping_sub(wished) & self.mask()) >= (at.wrapping_sub(hole) & self.mask()) {
                self.slots[hole] = slot;
                hole = at;
            }
        }
        self.slots[hole].value = V::VACANT;
        Some(value)
    }

    fn grow(&mut self) {
        let capacity = (self.slots.len() * 2).max(CAPACITY_MIN);
        let old = take(&mut self.slots);
        self.slots = vec![Slot { key: K::at(0), value: V::VACANT }; capacity].into_boxed_slice();
        self.len = 0;
        for slot in old.iter().filter(|slot| slot.value != V::VACANT) {
            self.insert_another(slot.key, slot.value);
        }
    }

    /// Every key with its value, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, V)> {
        self.slots.iter().filter(|slot| slot.value != V::VACANT).map(|slot| (slot.key, slot.value))
    }

    /// Every value to be changed, in no order.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (K, &mut V)> {
        let slots = self.slots.iter_mut().filter(|slot| slot.value != V::VACANT);
        slots.map(|slot| (slot.key, &mut slot.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    impl Value for u32 {
        const VACANT: u32 = u32::MAX;
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_map(steps in prop::collection::vec((0..60u32, 0..1000u32, any::<bool>()), 0..400)) {
            let mut table: Table<Fingerprint, u32> = Table::default();
            let mut map = BTreeMap::new();
            for (key, value, adds) in steps {
                // Keys that share their low bits, so that runs meet.
                let key = Fingerprint(key << 26);
                if adds {
                    table.insert(key, value);
                    map.insert(key, value);
                } else {
                    prop_assert_eq!(table.remove(key), map.remove(&key));
                }
                prop_assert_eq!(table.len(), map.len());
                prop_assert_eq!(table.iter().collect::<BTreeMap<_, _>>(), map.clone());
            }
            for key in 0..60u32 {
                let key = Fingerprint(key << 26);
                prop_assert_eq!(table.get(key), map.get(&key).copied());
            }
        }
    }

    #[test]
    fn a_key_may_stand_for_several_values() {
        let mut table: Table<Fingerprint, u32> = Table::default();
        for value in 0..10 {
            table.insert_another(Fingerprint(7), value);
        }
        assert_eq!(table.find(Fingerprint(7), |value| value == 8), Some(8));
        assert_eq!(table.remove_meant(Fingerprint(7), |value| value == 8), Some(8));
        assert_eq!(table.find(Fingerprint(7), |value| value == 8), None);
        let mut left: Vec<u32> = table.iter().map(|(_, value)| value).collect();
        left.sort_unstable();
        assert_eq!(left, [0, 1, 2, 3, 4, 5, 6, 7, 9]);
    }
}
