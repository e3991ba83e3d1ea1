//! What every call must get past before its own rules are asked: permissions, and for writes the group,
//! locks and policies, operations that still run, and the version.

use alloc::format;
use alloc::string::String;
use core::time::Duration;

use sluice_model::azure::ArmId;
use sluice_model::call::{Method, Request};

use crate::cloud::Cloud;
use crate::operation::{Lane, holder};
use crate::place::{Place, group_of, is_name, lies_in, place};
use crate::refusal::Refusal;
use crate::tamper::{Forbidden, LockLevel};
use crate::throttle::whole_seconds;

impl Cloud {
    /// Whether the caller may do this at all.
    pub(crate) fn permitted(&self, id: &ArmId, method: Method) -> Result<(), Refusal> {
        let is_read = matches!(method, Method::Get | Method::List | Method::Poll);
        let hits = |(scope, what): (&ArmId, &Forbidden)| {
            lies_in(id, scope) && (*what == Forbidden::Everything || !is_read)
        };
        if self.forbidden.iter().any(hits) {
            return Err(Refusal::forbidden(&action(id, method), id));
        }
        Ok(())
    }

    /// What every write must get past.
    pub(crate) fn admit(&self, request: &Request, place: &Place) -> Result<(), Refusal> {
        let id = &request.target;
        let is_new_group = request.method == Method::Put && *place == Place::Group;
        if !is_new_group {
            self.require_group(id)?;
        }
        if request.method == Method::Put && *place != Place::Group && !is_name(id.name()) {
            return Err(Refusal::bad_name(id.name()));
        }
        self.unlocked(request)?;
        if let Some(group) = group_of(id).filter(|group| group != id)
            && self.operations.running(&group, Lane::Resource).is_some()
        {
            return Err(Refusal::group_going(&group));
        }
        self.idle(request)?;
        let Some(given) = request.if_match.as_ref().map(|given| plain(&given.0)) else { return Ok(()) };
        let actual = self.state.etag(id).map(|actual| &*actual.0);
        if actual.is_some_and(|actual| given == "*" || plain(actual) == given) {
            return Ok(());
        }
        Err(Refusal::wrong_version(id, &format!("W/\"{given}\""), actual))
    }

    /// Whether no other operation is in the way.
    fn idle(&self, request: &Request) -> Result<(), Refusal> {
        let id = &request.target;
        let holder = holder(id);
        let lanes: &[Lane] = match request.method {
            Method::UpdateServices => &[Lane::Resource, Lane::Services],
            Method::UpdateLocations => &[Lane::Resource, Lane::Locations],
            _ => &[Lane::Resource, Lane::Services, Lane::Locations],
        };
        let Some(running) = lanes.iter().find_map(|&lane| self.operations.running(&holder, lane)) else {
            return Ok(());
        };
        if request.method == Method::Delete || running.target != *id {
            return Err(Refusal::busy_deleting(&running.id));
        }
        // Nobody knows how long an endless operation takes, so the guess stays short.
        let wait = running.ends.since(self.now).min(Duration::from_secs(10));
        let word = format!("{} ({})", running.word(), running.id.name());
        Err(Refusal::busy_writing(&word, id, whole_seconds(wait)))
    }

    fn unlocked(&self, request: &Request) -> Result<(), Refusal> {
        let id = &request.target;
        let is_delete = request.method == Method::Delete;
        for (scope, level) in &self.locks {
            if lies_in(id, scope) && (is_delete || *level == LockLevel::ReadOnly) {
                return Err(Refusal::locked(id, if is_delete { "delete" } else { "write" }, scope));
            }
        }
        let is_write = matches!(request.method, Method::Put | Method::PatchTags);
        match self.denied.iter().find(|scope| is_write && lies_in(id, scope)) {
            Some(scope) => Err(Refusal::denied_by_policy(id, scope)),
            None => Ok(()),
        }
    }
}

/// A version as it is compared: Azure takes it with and without quotes and mark of weakness.
fn plain(etag: &str) -> &str {
    let etag = etag.trim();
    etag.strip_prefix("W/").unwrap_or(etag).trim_matches('"')
}

/// What a call does, in the words of roles: `Microsoft.Network/loadBalancers/write`.
fn action(id: &ArmId, method: Method) -> String {
    let verb = match method {
        Method::Get | Method::List | Method::Poll => "read",
        Method::Put | Method::PatchTags => "write",
        Method::Delete => "delete",
        Method::UpdateServices => "updateServices/action",
        Method::UpdateLocations => "updateAddressLocations/action",
    };
    match place(id) {
        Some(Place::Group) => format!("Microsoft.Resources/subscriptions/resourceGroups/{verb}"),
        Some(Place::Resource(kind) | Place::Collection(kind)) => {
            format!("Microsoft.Network/{}/{verb}", kind.word())
        }
        Some(Place::Subnet { .. } | Place::Subnets { .. }) => {
            format!("Microsoft.Network/virtualNetworks/subnets/{verb}")
        }
        Some(Place::Services { .. }) => format!("Microsoft.Network/serviceGateways/services/{verb}"),
        Some(Place::Locations { .. }) => format!("Microsoft.Network/serviceGateways/addressLocations/{verb}"),
        Some(Place::Operation) => format!("Microsoft.Network/locations/operations/{verb}"),
        None => format!("Microsoft.Network/locations/{}/{verb}", id.name()),
    }
}
