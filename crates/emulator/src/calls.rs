//! What a request to the resource manager is about, read off its method and path alone.
//!
//! The surface reads the same path with much more care. This reading is for rules and for the request
//! log, which also have to name requests that the surface never gets to see.

use http::Method;
use percent_encoding::percent_decode_str;

/// The words for what a request does, as in the model.
pub(crate) const CALLS: [&str; 8] =
    ["Get", "List", "Put", "PatchTags", "Delete", "UpdateServices", "UpdateLocations", "Poll"];

/// The words for what it is about, as in ids.
pub(crate) const KINDS: [&str; 11] = [
    "resourceGroups",
    "virtualNetworks",
    "subnets",
    "publicIPAddresses",
    "loadBalancers",
    "natGateways",
    "serviceGateways",
    "services",
    "addressLocations",
    "operations",
    "usages",
];

/// What a request is about.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Described {
    /// One of [`CALLS`], if it is any of them.
    pub(crate) call: Option<&'static str>,
    /// One of [`KINDS`], if it is any of them.
    pub(crate) kind: Option<&'static str>,
    /// The resource's own name; of a list of services or locations the gateway's, of a poll the
    /// operation's.
    pub(crate) name: Option<String>,
}

/// Reads method and path.
pub(crate) fn describe(method: &Method, path: &str) -> Described {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let kind = |word: &str| KINDS.into_iter().find(|kind| kind.eq_ignore_ascii_case(word));
    let same = |part: Option<&&str>, word: &str| part.is_some_and(|part| part.eq_ignore_ascii_case(word));
    let name = |part: &str| Some(percent_decode_str(part).decode_utf8_lossy().into_owned());
    let Some((last, before)) = parts.split_last() else { return Described::default() };
    if method == Method::POST {
        let call = match () {
            () if last.eq_ignore_ascii_case("updateServices") => "UpdateServices",
            () if last.eq_ignore_ascii_case("updateAddressLocations") => "UpdateLocations",
            () => return Described::default(),
        };
        let gateway = before.last().and_then(|part| name(part));
        return Described { call: Some(call), kind: Some("serviceGateways"), name: gateway };
    }
    // A resource has its kind right before its name; a list ends with the kind.
    if let Some(kind) = before.last().and_then(|word| kind(word)) {
        let call = match *method {
            Method::GET | Method::HEAD if kind == "operations" => Some("Poll"),
            Method::GET | Method::HEAD => Some("Get"),
            Method::PUT => Some("Put"),
            Method::PATCH => Some("PatchTags"),
            Method::DELETE => Some("Delete"),
            _ => None,
        };
        return Described { call, kind: Some(kind), name: name(last) };
    }
    let Some(kind) = kind(last) else {
        // `operationResults` is where `Location` points to.
        if same(before.last(), "operationResults") && method == Method::GET {
            return Described { call: Some("Poll"), kind: Some("operations"), name: name(last) };
        }
        return Described::default();
    };
    let gateway = matches!(kind, "services" | "addressLocations").then(|| before.last()).flatten();
    let call = matches!(*method, Method::GET | Method::HEAD).then_some("List");
    Described { call, kind: Some(kind), name: gateway.and_then(|part| name(part)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn method_and_path_say_what_a_request_is_about() {
        let network = "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network";
        for (method, path, call, kind, name) in [
            (Method::PUT, "/subscriptions/s/resourcegroups/rg", "Put", "resourceGroups", Some("rg")),
            (Method::GET, &format!("{network}/loadbalancers/web"), "Get", "loadBalancers", Some("web")),
            (Method::GET, &format!("{network}/loadBalancers"), "List", "loadBalancers", None),
            (Method::DELETE, &format!("{network}/natGateways/a%2Db"), "Delete", "natGateways", Some("a-b")),
            (
                Method::PUT,
                &format!("{network}/virtualNetworks/v/subnets/pods"),
                "Put",
                "subnets",
                Some("pods"),
            ),
            (Method::GET, &format!("{network}/virtualNetworks/v/subnets"), "List", "subnets", None),
            (Method::GET, &format!("{network}/serviceGateways/gw/services"), "List", "services", Some("gw")),
            (
                Method::GET,
                &format!("{network}/serviceGateways/gw/addressLocations"),
                "List",
                "addressLocations",
                Some("gw"),
            ),
            (
                Method::POST,
                &format!("{network}/serviceGateways/gw/updateServices"),
                "UpdateServices",
                "serviceGateways",
                Some("gw"),
            ),
            (
                Method::POST,
                &format!("{network}/serviceGateways/gw/updateAddressLocations"),
                "UpdateLocations",
                "serviceGateways",
                Some("gw"),
            ),
            (
                Method::GET,
                "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operations/1",
                "Poll",
                "operations",
                Some("1"),
            ),
            (
                Method::GET,
                "/subscriptions/s/providers/Microsoft.Network/locations/eastus/operationResults/1",
                "Poll",
                "operations",
                Some("1"),
            ),
        ] {
            let expected =
                Described { call: Some(call), kind: Some(kind), name: name.map(ToOwned::to_owned) };
            assert_eq!(describe(&method, path), expected, "{method} {path}");
        }
        for path in ["", "/", "/subscriptions/s", "/nothing/at/all"] {
            assert_eq!(describe(&Method::GET, path), Described::default(), "{path}");
        }
    }
}
