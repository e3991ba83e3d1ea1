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

use sluice_model::azure::{ArmId, Gateway, LoadBalancer, NatGateway, PublicIp};
use sluice_model::call::{Answer, Page, PageToken, Payload, Request};

use crate::cloud::{Cloud, not_found};
use crate::lag::Readable;
use crate::place::{Kind, Place, group_of, lies_in};
use crate::refusal::Refusal;
use crate::state::{Contents, lower};

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
            _ => {
                return Err(Refusal::new(
                    501,
                    "NotModelled",
                    "Lists of this kind are not part of the model.",
                ));
            }
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

    fn resources<T: Readable>(&self, pager: &Pager<'_>) -> Result<Page<T>, Refusal> {
        let all = T::all(&self.state);
        if self.lags.of_kind::<T>().next().is_none() {
            return pager.page_of(all);
        }
        let mut seen = all.clone();
        // The oldest shadow is what a read sees, so it is laid on last.
        for (id, before) in self.lags.of_kind::<T>().rev() {
            match before {
                Some(before) => drop(seen.insert(id.clone(), before.clone())),
                None => drop(seen.remove(id)),
            }
        }
        pager.page_of(&seen)
    }
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

    /// A page of resources.
    fn page_of<T: Clone>(&self, all: &BTreeMap<ArmId, T>) -> Result<Page<T>, Refusal> {
        let from = match self.after {
            Some(after) if lies_in(&ArmId::new(after), &self.scope) => Bound::Excluded(ArmId::new(after)),
            Some(after) => return Err(Refusal::bad_page(after)),
            // With the slash, so that what only begins alike does not stand in between.
            None => Bound::Included(ArmId::new(format!("{}/", self.scope))),
        };
        // Of one kind, everything in one scope is in a row.
        let rest = all.range((from, Bound::Unbounded)).take_while(|(id, _)| lies_in(id, &self.scope));
        let page = self.page(rest, |(id, _)| id.to_string());
        Ok(Page { items: page.items.into_iter().map(|(_, it)| it.clone()).collect(), next: page.next })
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
