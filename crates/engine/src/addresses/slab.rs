//! Records under small numbers that are used again once they are free.
//!
//! Storage grows by chunks, so that a table of a million records never needs room for itself twice
//! while it grows. Numbers are typed: the number of a node does not open a place.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::{Index, IndexMut};

/// A small number that names a record of one table.
pub(super) trait Key: Copy {
    /// The key of the record at `index`.
    fn at(index: usize) -> Self;
    /// The index of the record.
    fn index(self) -> usize;
}

macro_rules! key {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        $visibility struct $name(pub(super) u32);

        impl crate::addresses::slab::Key for $name {
            fn at(index: usize) -> $name {
                $name(u32::try_from(index).unwrap_or(u32::MAX))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}
pub(super) use key;

const CHUNK: usize = 256;

/// A table of records.
pub(super) struct Slab<K, T> {
    chunks: Vec<Vec<Option<T>>>,
    free: Vec<u32>,
    /// How many numbers were ever given out.
    end: usize,
    key: PhantomData<K>,
}

impl<K: Key, T> Slab<K, T> {
    pub(super) const fn new() -> Slab<K, T> {
        Slab { chunks: Vec::new(), free: Vec::new(), end: 0, key: PhantomData }
    }

    pub(super) fn insert(&mut self, record: T) -> K {
        if let Some(index) = self.free.pop() {
            let key = K::at(index as usize);
            self.chunks[index as usize / CHUNK][index as usize % CHUNK] = Some(record);
            return key;
        }
        if self.end.is_multiple_of(CHUNK) {
            // The first chunk grows as it needs; a small cluster stays small.
            self.chunks.push(if self.end == 0 { Vec::new() } else { Vec::with_capacity(CHUNK) });
        }
        self.chunks[self.end / CHUNK].push(Some(record));
        self.end += 1;
        K::at(self.end - 1)
    }

    pub(super) fn remove(&mut self, key: K) -> Option<T> {
        let record = self.chunks.get_mut(key.index() / CHUNK)?.get_mut(key.index() % CHUNK)?.take();
        if record.is_some() {
            self.free.push(key.index() as u32);
        }
        record
    }

    pub(super) fn get(&self, key: K) -> Option<&T> {
        self.chunks.get(key.index() / CHUNK)?.get(key.index() % CHUNK)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut T> {
        self.chunks.get_mut(key.index() / CHUNK)?.get_mut(key.index() % CHUNK)?.as_mut()
    }

    /// Every record, by number.
    pub(super) fn iter(&self) -> impl Iterator<Item = (K, &T)> {
        let records = self.chunks.iter().flatten().enumerate();
        records.filter_map(|(index, record)| Some((K::at(index), record.as_ref()?)))
    }

    /// Every number in use, in order.
    pub(super) fn keys(&self) -> Vec<K> {
        self.iter().map(|(key, _)| key).collect()
    }
}

impl<K: Key, T> Index<K> for Slab<K, T> {
    type Output = T;
    fn index(&self, key: K) -> &T {
        self.get(key).expect("keys inside the module name live records")
    }
}

impl<K: Key, T> IndexMut<K> for Slab<K, T> {
    fn index_mut(&mut self, key: K) -> &mut T {
        self.get_mut(key).expect("keys inside the module name live records")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    key!(Number);

    #[test]
    fn a_freed_number_is_used_again_and_names_nothing_meanwhile() {
        let mut slab: Slab<Number, u64> = Slab::new();
        let keys: Vec<Number> = (0..1000).map(|value| slab.insert(value)).collect();
        assert_eq!(slab.remove(keys[700]), Some(700));
        assert_eq!(slab.get(keys[700]), None);
        assert_eq!(slab.remove(keys[700]), None);
        assert_eq!(slab.insert(7), keys[700]);
        assert_eq!(slab[keys[700]], 7);
        assert_eq!(slab.get(Number(5000)), None);
        assert_eq!(slab.keys().len(), 1000);
    }
}
