//! The objects of a list that is not complete yet.

use std::collections::HashMap;

use sluice_model::ObjectName;

use super::kinds::Watched;

/// What a list has brought so far.
///
/// Before the bookmark that ends a streamed list, objects may still change or go. Those are few, so
/// only they are kept by name; the many others are just there.
pub(crate) struct Gathered<K: Watched> {
    objects: Vec<K::Object>,
    /// Objects that have changed, or gone, since they came.
    changed: HashMap<ObjectName, Option<K::Object>>,
}

impl<K: Watched> Default for Gathered<K> {
    fn default() -> Self {
        Gathered { objects: Vec::new(), changed: HashMap::new() }
    }
}

impl<K: Watched> Gathered<K> {
    /// An object comes for the first time.
    pub(crate) fn add(&mut self, object: K::Object) {
        if !self.changed.is_empty()
            && let Some(changed) = self.changed.get_mut(&K::name(&object))
        {
            // It has gone meanwhile, and this is its successor.
            *changed = Some(object);
        } else {
            self.objects.push(object);
        }
    }

    /// An object has changed.
    pub(crate) fn change(&mut self, object: K::Object) {
        self.changed.insert(K::name(&object), Some(object));
    }

    /// An object is gone.
    pub(crate) fn remove(&mut self, object: &K::Object) {
        self.changed.insert(K::name(object), None);
    }

    /// All of them, each name once; nothing is left behind.
    pub(crate) fn take(&mut self) -> Vec<K::Object> {
        let mut objects = std::mem::take(&mut self.objects);
        let changed = std::mem::take(&mut self.changed);
        if !changed.is_empty() {
            objects.retain(|object| !changed.contains_key(&K::name(object)));
            objects.extend(changed.into_values().flatten());
        }
        objects.shrink_to_fit();
        objects
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
        for (name, version) in [("changed", 1), ("gone", 2), ("back", 3), ("same", 4)] {
            gathered.add(node(name, version));
        }
        gathered.change(node("changed", 5));
        gathered.remove(&node("gone", 6));
        gathered.change(node("back", 7));
        gathered.remove(&node("back", 8));
        gathered.add(node("back", 9));
        gathered.add(node("late", 10));
        gathered.remove(&node("never-seen", 11));
        let mut names: Vec<_> = gathered.take().iter().map(|it| (it.name.to_string(), it.version)).collect();
        names.sort();
        let expected = [("back", 9), ("changed", 5), ("late", 10), ("same", 4)];
        assert_eq!(names, expected.map(|(name, version)| (name.to_string(), version)));
        assert!(gathered.take().is_empty());
    }
}
