//! `updateServices`, and the list of what is registered.

use serde_json::{Value, json};
use sluice_model::azure::{ArmId, Direction, Registration, ServiceRequest};

use super::fields::{Given, Object, read_id};
use super::full_update;
use super::kinds::View;
use super::refused::{Refused, printable};

/// Whether a list is all there should be, or only what changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Partial,
    Full,
}

impl Action {
    /// Reads the field; left out, it means a partial update.
    pub(crate) fn read(object: &Object<'_>, field: &str) -> Result<Action, Refused> {
        Ok(match object.word(field, &["PartialUpdate", "FullUpdate"])? {
            Some("FullUpdate") => Action::Full,
            _ => Action::Partial,
        })
    }
}

/// Reads the body of `updateServices`.
pub(crate) fn read(view: View<'_>, gateway: &ArmId, body: &Value) -> Result<Vec<ServiceRequest>, Refused> {
    let object = Object::body(body)?;
    only(&object, &["action", "serviceRequests"])?;
    let action = Action::read(&object, "action")?;
    let listed = match object.objects("serviceRequests")? {
        Some(listed) => listed,
        // All services would go, by a field that was forgotten.
        None if action == Action::Full => {
            return Err(Refused::unreadable("serviceRequests", "A full update needs a list."));
        }
        None => Vec::new(),
    };
    let requests = listed.iter().map(|one| read_one(view, gateway, one, action));
    let requests = requests.collect::<Result<Vec<_>, _>>()?;
    Ok(match action {
        Action::Partial => requests,
        Action::Full => full_update::of_services(view.state().registrations(gateway), requests),
    })
}

fn read_one(
    view: View<'_>,
    gateway: &ArmId,
    one: &Object<'_>,
    action: Action,
) -> Result<ServiceRequest, Refused> {
    only(one, &["isDelete", "service"])?;
    let is_delete = one.flag("isDelete")?.unwrap_or(false);
    let Some(service) = one.object("service")? else {
        return Err(Refused::unreadable(&one.at("service"), "A request has no service."));
    };
    let Some(name) = service.text("name")?.filter(|name| !name.is_empty()) else {
        return Err(Refused::unreadable(&service.at("name"), "A service has no name."));
    };
    let is_odd = |c: char| !c.is_ascii_graphic() || "/\\%?#&<>|\"'".contains(c);
    if name.len() > 80 || name.contains(is_odd) {
        return Err(Refused::bad_name(name));
    }
    // What a partial update leaves out stays as it is.
    let there = view.state().registration(gateway, name).filter(|_| action == Action::Partial);
    let mut registration = there.cloned().unwrap_or_else(|| Registration {
        name: name.into(),
        direction: Direction::Inbound,
        is_default: false,
        pools: Vec::new(),
        nat_gateway: None,
    });
    if is_delete {
        return Ok(ServiceRequest { is_delete, service: registration });
    }
    let Some(given) = service.object("properties")? else {
        return if there.is_some() {
            Ok(ServiceRequest { is_delete, service: registration })
        } else {
            Err(Refused::unreadable(&service.at("properties"), "A service has no properties."))
        };
    };
    match given.word("serviceType", &["Inbound", "Outbound", "InboundOutbound"])? {
        Some("Inbound") => registration.direction = Direction::Inbound,
        Some("Outbound") => registration.direction = Direction::Outbound,
        Some(_) => registration.direction = Direction::InboundOutbound,
        None if there.is_some() => {}
        None => return Err(Refused::unreadable(&given.at("serviceType"), "A service has no type.")),
    }
    if let Some(is_default) = given.flag("isDefault")? {
        registration.is_default = is_default;
    }
    if let Some(pools) = given.references("loadBalancerBackendPools")? {
        registration.pools = pools;
    }
    let path = given.at("publicNatGatewayId");
    let nat_gateway = match given.raw("publicNatGatewayId") {
        None => Given::Absent,
        Some(Value::Null) => Given::Null,
        Some(Value::String(id)) => Given::Value(read_id(id, &path)?),
        Some(_) => return Err(Refused::unreadable(&path, "Expected a string.")),
    };
    registration.nat_gateway = nat_gateway.or_keep(registration.nat_gateway.take());
    Ok(ServiceRequest { is_delete, service: registration })
}

/// Refuses fields that no reader of an action knows.
pub(crate) fn only(object: &Object<'_>, known: &[&str]) -> Result<(), Refused> {
    let is_known = |key: &str| known.iter().any(|name| name.eq_ignore_ascii_case(key));
    match object.map().keys().find(|key| !is_known(key)) {
        None => Ok(()),
        Some(key) => {
            let why = format!("Could not find member '{}' on the object.", printable(key));
            Err(Refused::unreadable(&object.at(&printable(key)), &why))
        }
    }
}

/// A registered service.
pub(crate) fn show(it: &Registration) -> Value {
    let direction = match it.direction {
        Direction::Inbound => "Inbound",
        Direction::Outbound => "Outbound",
        Direction::InboundOutbound => "InboundOutbound",
    };
    let pools = it.pools.iter().map(|pool| json!({ "name": pool.name(), "id": pool.as_str() }));
    let mut properties = json!({
        "serviceType": direction,
        "isDefault": it.is_default,
        "loadBalancerBackendPools": pools.collect::<Vec<_>>(),
    });
    if let Some(nat_gateway) = &it.nat_gateway {
        properties["publicNatGatewayId"] = nat_gateway.as_str().into();
    }
    json!({ "name": &*it.name, "properties": properties })
}
