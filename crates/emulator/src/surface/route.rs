//! Which paths are served, and what a request to one of them is.
//!
//! One table says everything: a path with its holes, and what each method does there. Words of a path differ
//! by everything but case, as Azure has it; what is in the holes keeps its case. What the table does not
//! have is answered with the word that the resource manager has for it.

use http::{Method, Uri};
use percent_encoding::percent_decode_str;
use sluice_model::azure::ArmId;
use sluice_model::call::Method as Call;

use super::refused::{Refused, printable};

/// What a path is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Group,
    PublicIp,
    LoadBalancer,
    NatGateway,
    Gateway,
    Network,
    Subnet,
    Service,
    Location,
    Usage,
    Operation,
}

impl Kind {
    /// As it stands in ids.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Kind::Group => "resourceGroups",
            Kind::PublicIp => "publicIPAddresses",
            Kind::LoadBalancer => "loadBalancers",
            Kind::NatGateway => "natGateways",
            Kind::Gateway => "serviceGateways",
            Kind::Network => "virtualNetworks",
            Kind::Subnet => "subnets",
            Kind::Service => "services",
            Kind::Location => "addressLocations",
            Kind::Usage => "usages",
            Kind::Operation => "operations",
        }
    }
}

/// What a request does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Read,
    /// Only asks whether it is there.
    Exists,
    List,
    Write,
    Tag,
    Delete,
    UpdateServices,
    UpdateLocations,
    /// `Azure-AsyncOperation`.
    Poll,
    /// `Location` of a provider's operation.
    Result,
    /// `Location` of a group's deletion.
    GroupResult,
}

impl Deed {
    /// What it is for the model.
    pub(crate) const fn call(self) -> Call {
        match self {
            Deed::Read | Deed::Exists => Call::Get,
            Deed::List => Call::List,
            Deed::Write => Call::Put,
            Deed::Tag => Call::PatchTags,
            Deed::Delete => Call::Delete,
            Deed::UpdateServices => Call::UpdateServices,
            Deed::UpdateLocations => Call::UpdateLocations,
            Deed::Poll | Deed::Result | Deed::GroupResult => Call::Poll,
        }
    }
}

/// One served path.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: &'static str,
    pub(crate) kind: Kind,
    pub(crate) deeds: &'static [(&'static str, Deed)],
}

macro_rules! in_subscription {
    ($tail:literal) => {
        concat!("/subscriptions/{subscription}", $tail)
    };
}

macro_rules! in_group {
    ($tail:literal) => {
        concat!("/subscriptions/{subscription}/resourceGroups/{group}/providers/Microsoft.Network", $tail)
    };
}

macro_rules! in_network {
    ($tail:literal) => {
        concat!("/subscriptions/{subscription}/providers/Microsoft.Network", $tail)
    };
}

const LIST: &[(&str, Deed)] = &[("GET", Deed::List)];
const RESOURCE: &[(&str, Deed)] =
    &[("GET", Deed::Read), ("PUT", Deed::Write), ("PATCH", Deed::Tag), ("DELETE", Deed::Delete)];
const CHILD: &[(&str, Deed)] = &[("GET", Deed::Read), ("PUT", Deed::Write), ("DELETE", Deed::Delete)];
const GROUP: &[(&str, Deed)] = &[
    ("GET", Deed::Read),
    ("HEAD", Deed::Exists),
    ("PUT", Deed::Write),
    ("PATCH", Deed::Tag),
    ("DELETE", Deed::Delete),
];

const fn route(path: &'static str, kind: Kind, deeds: &'static [(&'static str, Deed)]) -> Route {
    Route { path, kind, deeds }
}

/// Everything that is served.
pub(crate) const ROUTES: &[Route] = &[
    route(in_subscription!("/resourceGroups"), Kind::Group, LIST),
    route(in_subscription!("/resourceGroups/{group}"), Kind::Group, GROUP),
    route(in_subscription!("/operationresults/{operation}"), Kind::Operation, &[("GET", Deed::GroupResult)]),
    route(in_group!("/publicIPAddresses"), Kind::PublicIp, LIST),
    route(in_network!("/publicIPAddresses"), Kind::PublicIp, LIST),
    route(in_group!("/publicIPAddresses/{name}"), Kind::PublicIp, RESOURCE),
    route(in_group!("/loadBalancers"), Kind::LoadBalancer, LIST),
    route(in_network!("/loadBalancers"), Kind::LoadBalancer, LIST),
    route(in_group!("/loadBalancers/{name}"), Kind::LoadBalancer, RESOURCE),
    route(in_group!("/natGateways"), Kind::NatGateway, LIST),
    route(in_network!("/natGateways"), Kind::NatGateway, LIST),
    route(in_group!("/natGateways/{name}"), Kind::NatGateway, RESOURCE),
    route(in_group!("/virtualNetworks"), Kind::Network, LIST),
    route(in_network!("/virtualNetworks"), Kind::Network, LIST),
    route(in_group!("/virtualNetworks/{name}"), Kind::Network, RESOURCE),
    route(in_group!("/virtualNetworks/{name}/subnets"), Kind::Subnet, LIST),
    route(in_group!("/virtualNetworks/{name}/subnets/{child}"), Kind::Subnet, CHILD),
    route(in_group!("/serviceGateways"), Kind::Gateway, LIST),
    route(in_network!("/serviceGateways"), Kind::Gateway, LIST),
    route(in_group!("/serviceGateways/{name}"), Kind::Gateway, RESOURCE),
    route(in_group!("/serviceGateways/{name}/services"), Kind::Service, LIST),
    route(in_group!("/serviceGateways/{name}/addressLocations"), Kind::Location, LIST),
    route(
        in_group!("/serviceGateways/{name}/updateServices"),
        Kind::Gateway,
        &[("POST", Deed::UpdateServices)],
    ),
    route(
        in_group!("/serviceGateways/{name}/updateAddressLocations"),
        Kind::Gateway,
        &[("POST", Deed::UpdateLocations)],
    ),
    route(in_network!("/locations/{region}/usages"), Kind::Usage, LIST),
    route(in_network!("/locations/{region}/operations/{operation}"), Kind::Operation, &[("GET", Deed::Poll)]),
    route(
        in_network!("/locations/{region}/operationResults/{operation}"),
        Kind::Operation,
        &[("GET", Deed::Result)],
    ),
];

/// The versions of Microsoft.Network that are served, oldest first.
pub(crate) const NETWORK_VERSIONS: [&str; 5] =
    ["2025-05-01", "2025-07-01", "2025-09-01", "2026-01-01", "2026-03-01"];
/// From this version on the two gateway POSTs are synchronous.
const SYNCHRONOUS_SINCE: &str = "2025-09-01";
/// The oldest version of Microsoft.Resources; every later one is served as well.
const GROUPS_SINCE: &str = "2021-04-01";

/// A request that has found its way.
#[derive(Clone, Debug)]
pub(crate) struct Routed {
    pub(crate) kind: Kind,
    pub(crate) deed: Deed,
    /// The resource, the collection, or the gateway of a POST; of polls the operation.
    pub(crate) target: ArmId,
    pub(crate) subscription: String,
    pub(crate) group: Option<String>,
    pub(crate) region: Option<String>,
    /// The last part of an operation's path.
    pub(crate) operation: Option<String>,
    pub(crate) version: String,
    /// `$skiptoken`.
    pub(crate) page: Option<String>,
}

impl Routed {
    /// Whether a gateway POST of this version is synchronous.
    pub(crate) fn is_synchronous(&self) -> bool {
        self.version.as_str() >= SYNCHRONOUS_SINCE
    }

    /// The id of the group that the target lies in.
    pub(crate) fn group_id(&self) -> Option<ArmId> {
        self.target.parent("resourceGroups")
    }
}

/// Finds the way of a request.
pub(crate) fn find(method: &Method, uri: &Uri) -> Result<Routed, Refused> {
    let query = Query::read(uri.query().unwrap_or(""));
    let parts = parts(uri.path())?;
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    if !words.first().is_some_and(|word| word.eq_ignore_ascii_case("subscriptions")) || words.len() < 2 {
        return Err(Refused::no_subscription());
    }
    let version = query.version.ok_or_else(Refused::no_version)?;
    let Some((route, holes)) = ROUTES.iter().find_map(|route| Some((route, fill(route.path, &words)?)))
    else {
        return Err(unknown(&words, &version));
    };
    check_holes(&holes)?;
    check_version(route, &version)?;
    let deeds = route.deeds.iter().find(|(name, _)| *name == method.as_str());
    let Some(&(_, deed)) = deeds else { return Err(Refused::method_not_allowed(method.as_str())) };
    if let Some(name) = query.unserved {
        let what = format!("The query parameter '{}'", printable(&name));
        return Err(Refused::call_not_emulated(&what));
    }
    let hole = |name: &str| holes.iter().find(|(hole, _)| *hole == name).map(|(_, text)| (*text).to_owned());
    Ok(Routed {
        kind: route.kind,
        deed,
        target: target(route, deed, &holes),
        subscription: hole("{subscription}").unwrap_or_default(),
        group: hole("{group}"),
        region: hole("{region}"),
        operation: hole("{operation}"),
        version,
        page: query.page,
    })
}

/// The words of a path, decoded.
fn parts(path: &str) -> Result<Vec<String>, Refused> {
    let mut parts = Vec::new();
    for part in path.trim_matches('/').split('/') {
        let decoded = percent_decode_str(part).decode_utf8();
        let decoded = decoded.map_err(|_| Refused::bad_name(part))?;
        let is_odd = |c: char| !c.is_ascii() || c.is_ascii_control() || "/\\%?#&<>|\"'".contains(c);
        if decoded.is_empty() || decoded.len() > 512 || decoded.contains(is_odd) {
            return Err(if path.trim_matches('/').is_empty() {
                Refused::no_subscription()
            } else {
                Refused::bad_name(&decoded)
            });
        }
        parts.push(decoded.into_owned());
    }
    Ok(parts)
}

/// What is in the holes of a path, if the words fit it.
fn fill<'w>(path: &'static str, words: &[&'w str]) -> Option<Vec<(&'static str, &'w str)>> {
    let mut holes = Vec::new();
    let mut expected = path.trim_start_matches('/').split('/');
    for &word in words {
        let part = expected.next()?;
        if part.starts_with('{') {
            holes.push((part, word));
        } else if !part.eq_ignore_ascii_case(word) {
            return None;
        }
    }
    expected.next().is_none().then_some(holes)
}

fn check_holes(holes: &[(&str, &str)]) -> Result<(), Refused> {
    for &(hole, text) in holes {
        match hole {
            "{subscription}" if !is_subscription(text) => return Err(Refused::bad_subscription(text)),
            "{group}" if !is_group(text) => return Err(Refused::bad_group_name(text)),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a subscription may be called so.
pub(crate) fn is_subscription(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.chars().all(is_plain)
}

/// Whether a resource group may be called so.
pub(crate) fn is_group(text: &str) -> bool {
    let is_good = |c: char| is_plain(c) || matches!(c, '(' | ')');
    (1..=90).contains(&text.len()) && !text.ends_with('.') && text.chars().all(is_good)
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn check_version(route: &Route, version: &str) -> Result<(), Refused> {
    let is_group = route.kind == Kind::Group || route.deeds.iter().any(|(_, it)| *it == Deed::GroupResult);
    if is_group {
        return if is_date(version) && version >= GROUPS_SINCE {
            Ok(())
        } else {
            Err(Refused::bad_version(version, "2021-04-01 and every later one"))
        };
    }
    if NETWORK_VERSIONS.contains(&version) {
        return Ok(());
    }
    let supported = NETWORK_VERSIONS.join(", ");
    Err(if is_date(version.strip_suffix("-preview").unwrap_or(version)) {
        Refused::unserved_version(version, route.kind.word(), &supported)
    } else {
        Refused::bad_version(version, &supported)
    })
}

/// `2025-05-01`.
fn is_date(text: &str) -> bool {
    let mut parts = text.split('-');
    let mut is = |digits: usize, range: core::ops::RangeInclusive<u32>| {
        let part =
            parts.next().filter(|part| part.len() == digits && part.bytes().all(|b| b.is_ascii_digit()));
        part.and_then(|part| part.parse().ok()).is_some_and(|number: u32| range.contains(&number))
    };
    is(4, 2000..=2999) && is(2, 1..=12) && is(2, 1..=31) && parts.next().is_none()
}

/// The id that a request is about, in our spelling of the words and the client's of the names.
fn target(route: &Route, deed: Deed, holes: &[(&str, &str)]) -> ArmId {
    let mut id = String::new();
    let mut names = holes.iter();
    for part in route.path.trim_start_matches('/').split('/') {
        if matches!(part, "updateServices" | "updateAddressLocations") {
            break;
        }
        id.push('/');
        id.push_str(if part.starts_with('{') { names.next().map_or("", |(_, text)| *text) } else { part });
    }
    if matches!(deed, Deed::Result | Deed::GroupResult | Deed::Poll) {
        // The operation's own id is known only to whoever keeps the operations.
        id.clear();
    }
    ArmId::new(id)
}

/// The answer to a path that is not in the table.
fn unknown(words: &[&str], version: &str) -> Refused {
    let provider = words.iter().position(|word| word.eq_ignore_ascii_case("providers"));
    let Some(provider) = provider else {
        return Refused::call_not_emulated(&format!("The path '/{}'", printable(&words.join("/"))));
    };
    match (words.get(provider + 1), words.get(provider + 2)) {
        (Some(namespace), _) if !namespace.eq_ignore_ascii_case("Microsoft.Network") => {
            Refused::no_namespace(namespace)
        }
        (Some(_), Some(word)) => {
            let served = ROUTES.iter().any(|route| {
                let mut parts = route.path.split('/');
                parts.any(|part| part == "Microsoft.Network")
                    && parts.next().is_some_and(|part| part.eq_ignore_ascii_case(word))
            });
            if served {
                Refused::call_not_emulated(&format!("The path '/{}'", printable(&words.join("/"))))
            } else {
                Refused::no_type(word, version)
            }
        }
        _ => Refused::call_not_emulated("The list of providers"),
    }
}

/// What the query of a request says.
#[derive(Debug, Default)]
struct Query {
    version: Option<String>,
    page: Option<String>,
    /// A parameter that would change the answer and does not.
    unserved: Option<String>,
}

impl Query {
    fn read(text: &str) -> Query {
        let mut query = Query::default();
        for (name, value) in url::form_urlencoded::parse(text.as_bytes()) {
            match name.to_ascii_lowercase().as_str() {
                "api-version" => query.version = Some(value.into_owned()),
                "$skiptoken" => query.page = Some(value.into_owned()),
                "$expand" | "$filter" | "$select" | "$orderby" => query.unserved = Some(name.into_owned()),
                // `$top` may be ignored by any service, and the tokens of operation URLs say nothing to us.
                _ => {}
            }
        }
        query
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";

    fn get(path: &str) -> Result<Routed, Refused> {
        find(&Method::GET, &path.parse().unwrap())
    }

    #[test]
    fn words_differ_by_everything_but_case_and_names_keep_theirs() {
        let path = "/SUBSCRIPTIONS/s/resourcegroups/RG/Providers/microsoft.network/publicipaddresses/Web-PIP";
        let routed = get(&format!("{path}?API-VERSION=2025-05-01")).unwrap();
        assert_eq!(routed.kind, Kind::PublicIp);
        let expected =
            "/subscriptions/s/resourceGroups/RG/providers/Microsoft.Network/publicIPAddresses/Web-PIP";
        assert_eq!(routed.target.as_str(), expected);
    }

    #[test]
    fn every_way_to_miss_has_its_own_word() {
        for (path, status, code) in [
            ("/".to_owned(), 404, "MissingSubscription"),
            ("/x?api-version=2025-05-01".to_owned(), 404, "MissingSubscription"),
            ("/subscriptions/s?api-version=2025-05-01".to_owned(), 501, "NotSupportedByEmulator"),
            (format!("{NETWORK}/loadBalancers/lb"), 400, "MissingApiVersionParameter"),
            (format!("{NETWORK}/loadBalancers/lb?api-version=2019-01-01"), 400, "NoRegisteredProviderFound"),
            (format!("{NETWORK}/loadBalancers/lb?api-version=latest"), 400, "InvalidApiVersionParameter"),
            (
                "/subscriptions/s/resourceGroups/rg?api-version=2015-01-01".to_owned(),
                400,
                "InvalidApiVersionParameter",
            ),
            (format!("{NETWORK}/disks/d?api-version=2025-05-01"), 404, "InvalidResourceType"),
            (
                "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/disks/d?api-version=2025-05-01"
                    .to_owned(),
                404,
                "InvalidResourceNamespace",
            ),
            (
                format!("{NETWORK}/loadBalancers/lb/probes/p?api-version=2025-05-01"),
                501,
                "NotSupportedByEmulator",
            ),
            (
                format!("{NETWORK}/loadBalancers/lb?api-version=2025-05-01&$expand=x"),
                501,
                "NotSupportedByEmulator",
            ),
            (format!("{NETWORK}/loadBalancers/a%2Fb?api-version=2025-05-01"), 400, "InvalidResourceName"),
            ("/subscriptions/a%20b/resourceGroups/rg?api-version=2021-04-01".to_owned(), 400, "InvalidSubscriptionId"),
            ("/subscriptions/s/resourceGroups/rg.?api-version=2021-04-01".to_owned(), 400, "InvalidResourceGroup"),
        ] {
            let refused = get(&path).unwrap_err();
            assert_eq!((refused.status, refused.code.as_str()), (status, code), "{path}");
        }
        let uri = format!("{NETWORK}/loadBalancers?api-version=2025-05-01").parse().unwrap();
        assert_eq!(find(&Method::PUT, &uri).unwrap_err().status, 405);
    }

    #[test]
    fn every_served_version_is_accepted_and_the_posts_change_with_it() {
        for (at, version) in NETWORK_VERSIONS.iter().enumerate() {
            let uri = format!("{NETWORK}/serviceGateways/gw/updateServices?api-version={version}");
            let routed = find(&Method::POST, &uri.parse().unwrap()).unwrap();
            assert_eq!(routed.is_synchronous(), at >= 2, "{version}");
            assert_eq!(routed.target.name(), "gw");
        }
        for version in ["2021-04-01", "2025-04-01", "2099-12-31"] {
            assert!(get(&format!("/subscriptions/s/resourcegroups/rg?api-version={version}")).is_ok());
        }
    }
}
