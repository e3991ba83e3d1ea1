//! What texts of a certain meaning look like: names in Azure, names in Kubernetes, addresses.
//!
//! They are looked at here so that a typo is a line of the configuration and not, an hour later, a 400
//! of Azure's.

use tracing_subscriber::EnvFilter;

/// Letters, digits and a few others.
fn consists_of(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

fn begins_and_ends_well(text: &str, ends: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_alphanumeric();
    text.starts_with(is_alphanumeric) && text.ends_with(|c| is_alphanumeric(c) || ends.contains(c))
}

fn must(holds: bool, what: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("must be {what}")) }
}

/// A subscription.
pub(crate) fn subscription(text: &str) -> Result<(), String> {
    must(
        consists_of(text, "-") && text.len() <= 64,
        "a subscription ID, like 00000000-0000-0000-0000-000000000000",
    )
}

/// A resource group.
pub(crate) fn group(text: &str) -> Result<(), String> {
    let is_name = text.chars().all(|c| c.is_alphanumeric() || "-_.()".contains(c));
    must(
        is_name && !text.ends_with('.') && text.chars().count() <= 90,
        "a resource group name: at most 90 letters, digits, '-', '_', '.' and parentheses, not ending with a \
         period",
    )
}

/// A network, a subnet, a gateway.
pub(crate) fn resource(text: &str) -> Result<(), String> {
    must(
        consists_of(text, "-_.") && begins_and_ends_well(text, "_") && text.len() <= 80,
        "a resource name, not an ID: at most 80 letters, digits, '-', '_' and '.', starting with a letter or \
         digit and ending with a letter, digit or '_'",
    )
}

/// The value of our tag.
pub(crate) fn cluster_id(text: &str) -> Result<(), String> {
    must(
        consists_of(text, "-_.:/") && text.len() <= 256,
        "at most 256 letters, digits, '-', '_', '.', ':' and '/'",
    )
}

/// `2025-05-01`, perhaps with `-preview` behind it.
pub(crate) fn api_version(text: &str) -> Result<(), String> {
    let date = text.strip_suffix("-preview").unwrap_or(text);
    let parts: Vec<&str> = date.split('-').collect();
    let is_date = matches!(parts.as_slice(), [year, month, day]
        if year.len() == 4 && month.len() == 2 && day.len() == 2);
    let is_digits = date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    must(is_date && is_digits, "an API version, like 2025-05-01 or 2025-05-01-preview")
}

/// Scheme, host and port. Which schemes do is the client's to say; it knows who gets what.
pub(crate) fn address(text: &str) -> Result<(), String> {
    let Ok(url) = reqwest::Url::parse(text) else {
        return Err("must be a URL, like https://management.azure.com".to_owned());
    };
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must be a URL without user and password".to_owned());
    }
    let is_bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    must(
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_bare,
        "a URL with scheme, host and port only, like https://management.azure.com",
    )
}

fn is_label(text: &str) -> bool {
    let small = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    small && begins_and_ends_well(text, "") && text.len() <= 63
}

fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// One namespace.
pub(crate) fn namespace(text: &str) -> Result<(), String> {
    must(is_label(text), "a namespace name: at most 63 lowercase letters, digits and '-'")
}

/// Several.
pub(crate) fn namespaces(text: &str) -> Result<(), String> {
    match text.split(',').filter(|name| !name.is_empty()).find(|name| !is_label(name)) {
        None => Ok(()),
        Some(name) => Err(format!("contains {name:?}, which is not a valid namespace name")),
    }
}

/// A Lease.
pub(crate) fn lease_name(text: &str) -> Result<(), String> {
    must(is_subdomain(text), "a Lease name: lowercase letters, digits, '-' and '.'")
}

/// A load balancer class, as Kubernetes wants it.
pub(crate) fn class(text: &str) -> Result<(), String> {
    let (prefix, name) = text.split_once('/').map_or((None, text), |(prefix, name)| (Some(prefix), name));
    let is_name = consists_of(name, "-_.") && begins_and_ends_well(name, "") && name.len() <= 63;
    must(
        is_name && prefix.is_none_or(is_subdomain),
        "a load balancer class, like example.com/sluice or sluice",
    )
}

/// What a log filter understands.
pub(crate) fn filter(text: &str) -> Result<(), String> {
    EnvFilter::try_new(text).map(|_| ()).map_err(|_| {
        "must be error, warn, info, debug or trace, or comma-separated module=level pairs".to_owned()
    })
}

/// A Lease counts in whole seconds.
pub(crate) fn whole_seconds(text: &str) -> Result<(), String> {
    must(!text.ends_with("ms"), "a whole number of seconds, because a Lease counts in seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_accepted_as_azure_and_kubernetes_accept_them() {
        let cases: [(crate::config::table::Check, &[&str], &[&str]); 9] = [
            (subscription, &["00000000-0000-0000-0000-000000000000"], &["a/b", "a b"]),
            (group, &["MC_rg_(1).x", "größe"], &["rg.", "a/b", "a b"]),
            (resource, &["vnet-1", "a_", "9.x"], &["-a", "a-", "a/b", "/subscriptions/s", "a b"]),
            (cluster_id, &["prod/eu:1", "8f7c"], &["a b", "<x>"]),
            (
                api_version,
                &["2025-05-01", "2025-05-01-preview"],
                &["2025", "2025-5-1", "latest", "aaaa-bb-cc"],
            ),
            (namespace, &["kube-system"], &["Kube", "a.b", "-a", "a/b"]),
            (lease_name, &["sluice.dev", "sluice"], &["Sluice", ".a", "a..b"]),
            (class, &["sluice", "example.com/Sluice_1"], &["a/b/c", "/a", "a/", "Ex.com/a", "a b"]),
            (
                address,
                &["https://management.azure.com", "http://127.0.0.1:80/"],
                &["management.azure.com", "ftp://a", "https://a/b", "https://u:p@a", "https://"],
            ),
        ];
        for (check, good, bad) in cases {
            for text in good {
                assert_eq!(check(text), Ok(()), "{text:?}");
            }
            for text in bad {
                assert!(check(text).is_err(), "{text:?} was taken");
            }
        }
    }

    #[test]
    fn lists_of_namespaces_name_the_one_that_is_wrong() {
        assert_eq!(namespaces("a,b-1"), Ok(()));
        assert_eq!(namespaces("a,B"), Err("contains \"B\", which is not a valid namespace name".to_owned()));
    }

    #[test]
    fn a_filter_is_what_the_log_understands() {
        assert_eq!(filter("warn,sluice=debug"), Ok(()));
        assert!(filter("sluice=loud").is_err());
        assert_eq!(whole_seconds("15s"), Ok(()));
        assert!(whole_seconds("1s500ms").is_err());
    }
}
