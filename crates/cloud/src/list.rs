//! Lists, page by page.
//!
//! A page token says after which item to go on, not how many to skip: what comes and goes between two
//! pages moves nothing else onto the wrong one.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use core::ops::Bound;

use sluice_model::azure::{ArmId, Gateway, LoadBalancer, NatGateway, PublicIp, Subnet};
use sluice_model::call::{Answer, Page, PageToken, Payload, Request};

use crate::cloud::{Cloud, not_found};
use crate::contents::{Contents, lower};
use crate::lag::Readable;
use crate::place::{Kind, Place, group_of, lies_in};
use crate::refusal::Refusal;

/// How a page is cut.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Cut {
    /// As configured; the last page has no successor.
    #[default]
    Usual,
    /// After so many items, and always with a successor.
    Short(usize),
}

impl Cloud {
    pub(crate) fn list(&self, request: &Request, place: &Place, cut: Cut) -> Result<Answer, Refusal> {
        self.require_group(&request.target)?;
        let pager = Pager::new(request, cut, self.config.page_size)?;
        let payload = match place {
            Place::Collection(Kind::PublicIp) => Payload::PublicIps(self.resources::<PublicIp>(&pager)?),
            Place::Collection(Kind::LoadBalancer) => {
                Payload::LoadBalancers(self.resources::<LoadBalancer>(&pager)?)
            }
            Place::Collection(Kind::NatGateway) => {
                Payload::NatGateways(self.resources::<NatGateway>(&pager)?)
            }
            Place::Collection(Kind::Gateway) => Payload::Gateways(self.resources::<Gateway>(&pager)?),
            Place::Collection(Kind::VirtualNetwork) => {
                let networks = pager.in_scope(&self.state.virtual_networks)?;
                Payload::Networks(pager.page(networks.map(|(id, _)| id.clone()), ArmId::to_string))
            }
            Place::Subnets { network } => {
                self.require(network, &Place::Resource(Kind::VirtualNetwork))?;
                Payload::Subnets(self.resources::<Subnet>(&pager)?)
            }
            Place::Services { gateway } => {
                let contents = self.contents(gateway)?;
                let rest = contents.registrations_after(pager.after);
                Payload::Registrations(pager.page(rest.cloned(), |it| lower(&it.name).to_string()))
            }
            Place::Locations { gateway } => {
                let contents = self.contents(gateway)?;
                let after = match pager.after {
                    Some(text) => Some(text.parse::<IpAddr>().map_err(|_| Refusal::bad_page(text))?),
                    None => None,
                };
                let rest = contents.locations_after(after);
                Payload::Locations(pager.page(rest, |it| it.location.to_string()))
            }
            _ => return Err(Refusal::no_place(&request.target)),
        };
        Ok(Answer::new(200, payload))
    }

    /// What a gateway knows, as a read sees it.
    fn contents(&self, gateway: &ArmId) -> Result<Cow<'_, Contents>, Refusal> {
        if self.lags.read::<Gateway>(&self.state, gateway).is_none() {
            return Err(not_found(gateway, &Place::Resource(Kind::Gateway)));
        }
        Ok(match self.lags.read::<Contents>(&self.state, gateway) {
            Some(contents) => Cow::Borrowed(contents),
            None => Cow::Owned(Contents::default()),
        })
    }

    /// A page of resources, as a read sees them.
    fn resources<T: Readable>(&self, pager: &Pager<'_>) -> Result<Page<T>, Refusal> {
        // The oldest shadow is what a read sees, so it is laid on last.
        let shadows: BTreeMap<&ArmId, &Option<T>> = self.lags.of_kind::<T>().rev().collect();
        let truth = pager.in_scope(T::all(&self.state))?.filter(|(id, _)| !shadows.contains_key(id));
        let shades = shadows.iter().filter(|(id, _)| pager.is_ahead(id));
        let shades = shades.filter_map(|(&id, before)| Some((id, before.as_ref()?)));
        let page = pager.page(in_order(truth, shades), |(id, _)| id.to_string());
        Ok(Page { items: page.items.into_iter().map(|(_, it)| it.clone()).collect(), next: page.next })
    }
}

/// Two rows in order become one, without looking further ahead than is taken from it.
fn in_order<'a, T: 'a>(
    one: impl Iterator<Item = (&'a ArmId, &'a T)>,
    other: impl Iterator<Item = (&'a ArmId, &'a T)>,
) -> impl Iterator<Item = (&'a ArmId, &'a T)> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    core::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some((first, _)), Some((second, _))) if second < first => other.next(),
        (None, _) => other.next(),
        _ => one.next(),
    })
}

/// One page to be cut.
struct Pager<'a> {
    target: &'a ArmId,
    /// The group's collection, or the whole subscription.
    scope: ArmId,
    /// The key of the last item of the page before.
    after: Option<&'a str>,
    size: usize,
    always_next: bool,
}

impl<'a> Pager<'a> {
    fn new(request: &'a Request, cut: Cut, page_size: usize) -> Result<Pager<'a>, Refusal> {
        let word = request.target.name();
        let after = match &request.page {
            None => None,
            Some(token) => match token.0.split_once('|') {
                Some((list, after)) if list.eq_ignore_ascii_case(word) => Some(after),
                _ => return Err(Refusal::bad_page(&token.0)),
            },
        };
        let (size, always_next) = match cut {
            Cut::Usual => (page_size.max(1), false),
            Cut::Short(items) => (items.min(page_size), true),
        };
        let after = after.filter(|after| !after.is_empty());
        let target = &request.target;
        let scope = match group_of(target) {
            Some(_) => target.clone(),
            None => target.parent("subscriptions").unwrap_or_else(|| target.clone()),
        };
        Ok(Pager { target, scope, after, size, always_next })
    }

    /// What is in the scope and not on an earlier page.
    fn in_scope<'m, T>(
        &self,
        all: &'m BTreeMap<ArmId, T>,
    ) -> Result<impl Iterator<Item = (&'m ArmId, &'m T)>, Refusal> {
        let from = match self.after {
            Some(after) if lies_in(&ArmId::new(after), &self.scope) => Bound::Excluded(ArmId::new(after)),
            Some(after) => return Err(Refusal::bad_page(after)),
            // With the slash, so that what only begins alike does not stand in between.
            None => Bound::Included(ArmId::new(format!("{}/", self.scope))),
        };
        // Of one kind, everything in one scope is in a row.
        let scope = self.scope.clone();
        Ok(all.range((from, Bound::Unbounded)).take_while(move |(id, _)| lies_in(id, &scope)))
    }

    /// Whether this one is in the scope and not on an earlier page.
    fn is_ahead(&self, id: &ArmId) -> bool {
        lies_in(id, &self.scope) && self.after.is_none_or(|after| ArmId::new(after) < *id)
    }

    /// Takes a page off the front of the rest.
    fn page<T>(&self, mut rest: impl Iterator<Item = T>, key: impl Fn(&T) -> String) -> Page<T> {
        let items: Vec<T> = rest.by_ref().take(self.size).collect();
        let goes_on = self.always_next || rest.next().is_some();
        let last = items.last().map(key).or_else(|| self.after.map(ToString::to_string)).unwrap_or_default();
        let next = goes_on.then(|| PageToken(format!("{}|{last}", self.target.name()).into()));
        Page { items, next }
    }
}
