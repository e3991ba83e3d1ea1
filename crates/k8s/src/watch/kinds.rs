//! The four kinds: where each is found, and how it is told.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use sluice_model::ObjectName;
use sluice_model::event::{Event, Relist};
use sluice_model::kube::{Kind, NodeObject, PodObject, ServiceObject, Slice};

use crate::convert::{self, Selection, Unreadable, Words};
use crate::light;
use crate::seen::LastSeen;
use crate::strings::EGRESS_LABEL;

/// What the reading of an object needs besides the object.
#[derive(Debug)]
pub(crate) struct Context {
    /// Which Services are ours.
    pub(crate) selection: Selection,
    /// Words that come again and again.
    pub(crate) words: Words,
}

/// A kind that is listed and watched.
pub(crate) trait Watched: Send + Sync + 'static {
    /// The object as it arrives.
    type Light: DeserializeOwned;
    /// The object as it is told.
    type Object: Send + Sync + 'static;
    /// Which kind.
    const KIND: Kind;
    /// Its resource, as it stands in a ClusterRole.
    const RESOURCE: &'static str;
    /// Where all of them are.
    const PATH: &'static str;
    /// Only those are wanted.
    const SELECTOR: Option<&'static str> = None;

    /// The object in the engine's words.
    fn read(light: &Self::Light, context: &mut Context) -> Result<Self::Object, Unreadable>;
    /// Under which name it stands; two objects never have the same at the same time.
    fn name(object: &Self::Object) -> ObjectName;
    /// Its version.
    fn version(object: &Self::Object) -> u64;
    /// Gives it another.
    fn set_version(object: &mut Self::Object, version: u64);
    /// The event of an object that is there.
    fn applied(object: Self::Object) -> Event;
    /// The event of an object that is gone, or does not match the selector any more.
    fn deleted(object: Self::Object) -> Event;
    /// The body of a list.
    fn relist(objects: Vec<Self::Object>) -> Relist;
    /// An object has come, told under this version, or is gone (`None`): keeps what a write to it starts from.
    fn note(_object: &Self::Object, _version: u64, _raw: Option<&RawValue>, _seen: &LastSeen) {}
    /// These and no others are there.
    fn note_all(_objects: &[Self::Object], _seen: &LastSeen) {}
}

/// One object of a list or a watch; if it cannot be read, a sentence that says why.
pub(crate) fn read<K: Watched>(raw: &RawValue, context: &mut Context) -> Result<K::Object, String> {
    let light = serde_json::from_str::<K::Light>(raw.get())
        .map_err(|error| format!("unreadable object in {} skipped: {error}", K::RESOURCE))?;
    K::read(&light, context).map_err(|why| why.to_string())
}

/// All Services, ours or not.
///
/// The engine must know of those that are nothing to us: a load balancer whose Service lives but is not
/// ours any more can be torn down without asking, while one whose Service it has never heard of would be
/// asked about for ever. They cost it a UID each.
pub(crate) struct Services;

impl Watched for Services {
    type Light = light::Service;
    type Object = ServiceObject;
    const KIND: Kind = Kind::Service;
    const RESOURCE: &'static str = "services";
    const PATH: &'static str = "/api/v1/services";

    fn read(light: &light::Service, context: &mut Context) -> Result<ServiceObject, Unreadable> {
        convert::service(light, &context.selection, &mut context.words)
    }

    fn name(object: &ServiceObject) -> ObjectName {
        object.name.clone()
    }

    fn version(object: &ServiceObject) -> u64 {
        object.version
    }

    fn set_version(object: &mut ServiceObject, version: u64) {
        object.version = version;
    }

    fn applied(object: ServiceObject) -> Event {
        Event::ServiceApplied(object)
    }

    fn deleted(object: ServiceObject) -> Event {
        Event::ServiceDeleted { uid: object.uid, name: object.name }
    }

    fn relist(objects: Vec<ServiceObject>) -> Relist {
        Relist::Services(objects)
    }

    fn note(object: &ServiceObject, version: u64, raw: Option<&RawValue>, seen: &LastSeen) {
        let managed = object.selected || object.is_left_to_us();
        match raw.filter(|_| managed) {
            Some(raw) => seen.watched(object.uid, version, raw.get()),
            None => seen.forget(object.uid),
        }
    }

    fn note_all(objects: &[ServiceObject], seen: &LastSeen) {
        seen.keep_only(&objects.iter().map(|object| object.uid).collect());
    }
}

/// All EndpointSlices.
pub(crate) struct Slices;

impl Watched for Slices {
    type Light = light::EndpointSlice;
    type Object = Slice;
    const KIND: Kind = Kind::Slice;
    const RESOURCE: &'static str = "endpointslices.discovery.k8s.io";
    const PATH: &'static str = "/apis/discovery.k8s.io/v1/endpointslices";

    fn read(light: &light::EndpointSlice, context: &mut Context) -> Result<Slice, Unreadable> {
        convert::slice(light, &mut context.words)
    }

    fn name(object: &Slice) -> ObjectName {
        object.name.clone()
    }

    fn version(object: &Slice) -> u64 {
        object.version
    }

    fn set_version(object: &mut Slice, version: u64) {
        object.version = version;
    }

    fn applied(object: Slice) -> Event {
        Event::SliceApplied(object)
    }

    fn deleted(object: Slice) -> Event {
        Event::SliceDeleted(object.name)
    }

    fn relist(objects: Vec<Slice>) -> Relist {
        Relist::Slices(objects)
    }
}

/// All Nodes.
pub(crate) struct Nodes;

impl Watched for Nodes {
    type Light = light::Node;
    type Object = NodeObject;
    const KIND: Kind = Kind::Node;
    const RESOURCE: &'static str = "nodes";
    const PATH: &'static str = "/api/v1/nodes";

    fn read(light: &light::Node, context: &mut Context) -> Result<NodeObject, Unreadable> {
        convert::node(light, &mut context.words)
    }

    fn name(object: &NodeObject) -> ObjectName {
        ObjectName::new("", Arc::clone(&object.name))
    }

    fn version(object: &NodeObject) -> u64 {
        object.version
    }

    fn set_version(object: &mut NodeObject, version: u64) {
        object.version = version;
    }

    fn applied(object: NodeObject) -> Event {
        Event::NodeApplied(object)
    }

    fn deleted(object: NodeObject) -> Event {
        Event::NodeDeleted(object.name)
    }

    fn relist(objects: Vec<NodeObject>) -> Relist {
        Relist::Nodes(objects)
    }
}

/// Pods with the egress label; one that loses it arrives as deleted.
pub(crate) struct Pods;

impl Watched for Pods {
    type Light = light::Pod;
    type Object = PodObject;
    const KIND: Kind = Kind::Pod;
    const RESOURCE: &'static str = "pods";
    const PATH: &'static str = "/api/v1/pods";
    const SELECTOR: Option<&'static str> = Some(EGRESS_LABEL);

    fn read(light: &light::Pod, context: &mut Context) -> Result<PodObject, Unreadable> {
        convert::pod(light, &mut context.words)
    }

    fn name(object: &PodObject) -> ObjectName {
        object.name.clone()
    }

    fn version(object: &PodObject) -> u64 {
        object.version
    }

    fn set_version(object: &mut PodObject, version: u64) {
        object.version = version;
    }

    fn applied(object: PodObject) -> Event {
        Event::PodApplied(object)
    }

    fn deleted(object: PodObject) -> Event {
        Event::PodDeleted { uid: object.uid }
    }

    fn relist(objects: Vec<PodObject>) -> Relist {
        Relist::Pods(objects)
    }
}
