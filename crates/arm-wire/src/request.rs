//! A request as HTTP parts.
//!
//! Whatever does not fit together is refused here: the wrong body for a target, a list of
//! something that has no list. Such a request is a mistake of ours, and Azure need not see it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use sluice_model::azure::ArmId;
use sluice_model::call::{Body, Method, Request};

use crate::bodies::{
    container, gateway, load_balancer, locations, nat_gateway, public_ip, services, subnet, tags_json,
};
use crate::place::{Kind, Place, place};
use crate::{Dialect, HttpRequest, Unwritable, url};

/// Groups belong to another provider, with versions of its own.
const GROUPS_API_VERSION: &str = "2021-04-01";

pub(crate) fn write(dialect: &Dialect, request: &Request) -> Result<HttpRequest, Unwritable> {
    Ok(HttpRequest {
        method: verb(request.method),
        url: url_of(dialect, request)?,
        if_match: if_match(request)?,
        body: body(dialect, request)?,
    })
}

/// The method as HTTP calls it.
pub(crate) const fn verb(method: Method) -> &'static str {
    match method {
        Method::Get | Method::List | Method::Poll => "GET",
        Method::Put => "PUT",
        Method::PatchTags => "PATCH",
        Method::Delete => "DELETE",
        Method::UpdateServices | Method::UpdateLocations => "POST",
    }
}

fn url_of(dialect: &Dialect, request: &Request) -> Result<String, Unwritable> {
    let target = &request.target;
    match (request.method, &request.page) {
        (Method::Poll, _) => return url::given(&dialect.endpoint, target.as_str()),
        (Method::List, Some(page)) => {
            fitting_place(request)?;
            return url::given(&dialect.endpoint, &page.0);
        }
        (_, Some(_)) => return Err(Unwritable(format!("{target} is not a list and has no pages"))),
        (_, None) => {}
    }
    let api_version = match fitting_place(request)? {
        Place::One(Kind::Group) => GROUPS_API_VERSION,
        _ => &dialect.api_version,
    };
    let tail = match request.method {
        Method::UpdateServices => "/updateServices",
        Method::UpdateLocations => "/updateAddressLocations",
        _ => "",
    };
    url::of_id(&dialect.endpoint, target.as_str(), tail, api_version)
}

/// What the target is, if the method can be used on it.
fn fitting_place(request: &Request) -> Result<Place, Unwritable> {
    let found = place(&request.target);
    let fits = match (request.method, found) {
        (Method::Get | Method::Put | Method::Delete, Some(Place::One(_))) => true,
        (Method::PatchTags, Some(Place::One(kind))) => kind != Kind::Subnet,
        (Method::List, Some(Place::All(_) | Place::Services | Place::Locations)) => true,
        (Method::UpdateServices | Method::UpdateLocations, Some(Place::One(Kind::Gateway))) => true,
        _ => false,
    };
    found.filter(|_| fits).ok_or_else(|| {
        Unwritable(format!("method {:?} is not supported for {:?}", request.method, request.target.as_str()))
    })
}

fn if_match(request: &Request) -> Result<Option<String>, Unwritable> {
    let Some(etag) = &request.if_match else { return Ok(None) };
    // The etag came with some body; a header cannot hold everything that JSON can.
    let plain = !etag.0.is_empty() && etag.0.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if !plain {
        return Err(Unwritable(format!("etag {:?} is not valid in a header", &*etag.0)));
    }
    Ok(Some(etag.0.to_string()))
}

fn body(dialect: &Dialect, request: &Request) -> Result<Option<Vec<u8>>, Unwritable> {
    let region = &*dialect.region;
    let target = &request.target;
    let kind = match place(target) {
        Some(Place::One(kind)) if request.method == Method::Put => Some(kind),
        _ => None,
    };
    let json = match (request.method, kind, &request.body) {
        (Method::Get | Method::List | Method::Poll | Method::Delete, _, Body::None) => return Ok(None),
        (Method::PatchTags, _, Body::Tags(tags)) => tags_json(tags),
        (Method::UpdateServices, _, Body::Services(requests)) => {
            services::json(requests, dialect.virtual_network.as_ref())
        }
        (Method::UpdateLocations, _, Body::Locations(updates)) => locations::json(updates),
        (_, Some(Kind::PublicIp), Body::PublicIp(body)) => public_ip::json(body, region),
        (_, Some(Kind::LoadBalancer), Body::LoadBalancer(body)) => load_balancer::json(target, body, region)?,
        (_, Some(Kind::NatGateway), Body::NatGateway(body)) => nat_gateway::json(body, region),
        (_, Some(Kind::Gateway), Body::Gateway(body)) => gateway::json(body, region),
        (_, Some(Kind::Gateway), Body::GatewayAsRead(gateway)) => gateway::as_read(gateway)?,
        (_, Some(Kind::Subnet), Body::Subnet(body)) => subnet::written(body)?,
        (_, Some(Kind::Group), Body::Container) => container::group(region),
        (_, Some(Kind::VirtualNetwork), Body::Container) => container::network(region),
        (_, _, body) => return Err(misfit(request.method, target, body)),
    };
    Ok(Some(json))
}

fn misfit(method: Method, target: &ArmId, body: &Body) -> Unwritable {
    let carried = match body {
        Body::None => "no body",
        Body::PublicIp(_) => "a public IP",
        Body::LoadBalancer(_) => "a load balancer",
        Body::ForeignLoadBalancer(_) => "an unmanaged load balancer, which Sluice does not write",
        Body::NatGateway(_) => "a NAT gateway",
        Body::Gateway(_) | Body::GatewayAsRead(_) => "a service gateway",
        Body::Subnet(_) => "a subnet",
        Body::Container => "a container",
        Body::Tags(_) => "tags",
        Body::Services(_) => "services",
        Body::Locations(_) => "locations",
    };
    Unwritable(format!("wrong body for {} {:?}: {carried}", verb(method), target.as_str()))
}
