//! Reads that lag behind writes.
//!
//! A lagging write leaves a shadow: the resource as it was before. Reads see the oldest shadow that has
//! not run out, lists see the shadows laid over the truth. The shadow of a gateway's two lists is a copy of
//! both; that is dear in a large gateway, but no request pays for it that has not this fault.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use sluice_model::Time;
use sluice_model::azure::{ArmId, Gateway, LoadBalancer, NatGateway, PublicIp, Subnet};

use crate::contents::Contents;
use crate::operation::Lane;
use crate::place::{Kind, Place, place};
use crate::state::State;

/// A resource as it was; `None` inside means that it was not there.
#[derive(Clone, Debug)]
pub(crate) enum Shadow {
    PublicIp(Option<PublicIp>),
    LoadBalancer(Option<LoadBalancer>),
    NatGateway(Option<NatGateway>),
    Gateway(Option<Gateway>),
    Subnet(Option<Subnet>),
    Contents(Option<Contents>),
}

/// What can be read one by one and be behind the truth.
pub(crate) trait Readable: Sized + Clone + 'static {
    fn all(state: &State) -> &BTreeMap<ArmId, Self>;
    fn from_shadow(shadow: &Shadow) -> Option<&Option<Self>>;
    fn into_shadow(before: Option<Self>) -> Shadow;
}

macro_rules! readable {
    ($($kind:ident in $all:ident),* $(,)?) => {$(
        impl Readable for $kind {
            fn all(state: &State) -> &BTreeMap<ArmId, $kind> {
                &state.$all
            }
            fn from_shadow(shadow: &Shadow) -> Option<&Option<$kind>> {
                match shadow {
                    Shadow::$kind(before) => Some(before),
                    _ => None,
                }
            }
            fn into_shadow(before: Option<$kind>) -> Shadow {
                Shadow::$kind(before)
            }
        }
    )*};
}

readable! {
    PublicIp in public_ips,
    LoadBalancer in load_balancers,
    NatGateway in nat_gateways,
    Gateway in gateways,
    Subnet in subnets,
    Contents in contents,
}

/// All shadows, oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lags(Vec<(ArmId, Time, Shadow)>);

impl Lags {
    /// Keeps what a write is about to change, until then.
    pub(crate) fn keep(&mut self, state: &State, target: &ArmId, lane: Lane, until: Time) {
        fn before<T: Readable>(state: &State, id: &ArmId) -> Shadow {
            T::into_shadow(T::all(state).get(id).cloned())
        }
        let shadow = match (lane, place(target)) {
            (Lane::Services | Lane::Locations, _) => before::<Contents>(state, target),
            (_, Some(Place::Resource(Kind::PublicIp))) => before::<PublicIp>(state, target),
            (_, Some(Place::Resource(Kind::LoadBalancer))) => before::<LoadBalancer>(state, target),
            (_, Some(Place::Resource(Kind::NatGateway))) => before::<NatGateway>(state, target),
            (_, Some(Place::Resource(Kind::Gateway))) => before::<Gateway>(state, target),
            (_, Some(Place::Subnet { .. })) => before::<Subnet>(state, target),
            // Of groups and networks nothing is read but whether they are there.
            _ => return,
        };
        self.0.push((target.clone(), until, shadow));
    }

    pub(crate) fn expire(&mut self, now: Time) {
        self.0.retain(|(_, until, _)| now < *until);
    }

    /// When the first shadow goes.
    pub(crate) fn next_end(&self) -> Option<Time> {
        self.0.iter().map(|(_, until, _)| *until).min()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// One resource, as a read sees it.
    pub(crate) fn read<'a, T: Readable>(&'a self, state: &'a State, id: &ArmId) -> Option<&'a T> {
        match self.of_kind::<T>().find(|(shaded, _)| *shaded == id) {
            Some((_, before)) => before.as_ref(),
            None => T::all(state).get(id),
        }
    }

    /// The shadows of a kind, oldest first.
    pub(crate) fn of_kind<T: Readable>(&self) -> impl DoubleEndedIterator<Item = (&ArmId, &Option<T>)> {
        self.0.iter().filter_map(|(id, _, shadow)| Some((id, T::from_shadow(shadow)?)))
    }
}
