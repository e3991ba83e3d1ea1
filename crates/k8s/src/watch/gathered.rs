//! The objects of a list that is not complete yet, each under its name once.

use std::collections::HashMap;

use sluice_model::ObjectName;

use super::kinds::Watched;

/// What a list has brought so far.
///
/// Before the bookmark that ends a streamed list, objects may come again or go; a name that comes again is
/// the newer object, be it another incarnation.
pub(crate) struct Gathered<K: Watched> {
    objects: Vec<K::Object>,
    places: HashMap<ObjectName, usize>,
}

impl<K: Watched> Default for Gathered<K> {
    fn default() -> Self {
        Gathered { objects: Vec::new(), places: HashMap::new() }
    }
}

impl<K: Watched> Gathered<K> {
    /// An object is there.
    pub(crate) fn put(&mut self, object: K::Object) {
        let name = K::name(&object);
        match self.places.get(&name).and_then(|place| self.objects.get_mut(*place)) {
            Some(before) => *before = object,
            None => {
                self.places.insert(name, self.objects.len());
                self.objects.push(object);
            }
        }
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, name: &ObjectName) {
        let Some(place) = self.places.remove(name) else { return };
        self.objects.swap_remove(place);
        if let Some(moved) = self.objects.get(place) {
            self.places.insert(K::name(moved), place);
        }
    }

    /// All of them; nothing is left behind.
    pub(crate) fn take(&mut self) -> Vec<K::Object> {
        self.places = HashMap::new();
        std::mem::take(&mut self.objects)
    }
}

#[cfg(test)]
mod tests {
    use sluice_model::kube::NodeObject;

    use super::super::kinds::Nodes;
    use super::*;

    fn node(name: &str, version: u64) -> NodeObject {
        NodeObject { name: name.into(), version, internal_ips: vec![] }
    }

    #[test]
    fn a_name_stands_once_with_its_newest_object() {
        let mut gathered = Gathered::<Nodes>::default();
        for (name, version) in [("a", 1), ("b", 2), ("c", 3), ("a", 4)] {
            gathered.put(node(name, version));
        }
        gathered.remove(&ObjectName::new("", "a"));
        gathered.remove(&ObjectName::new("", "unknown"));
        gathered.put(node("c", 5));
        gathered.put(node("b", 6));
        gathered.remove(&ObjectName::new("", "c"));
        gathered.put(node("d", 7));
        let mut names: Vec<_> = gathered.take().iter().map(|it| (it.name.to_string(), it.version)).collect();
        names.sort();
        assert_eq!(names, [("b".to_string(), 6), ("d".to_string(), 7)]);
        assert!(gathered.take().is_empty());
    }
}
