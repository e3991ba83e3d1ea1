//! The annotations for Azure's load balancers on Services: which are read, which are rejected, and why.
//!
//! An annotation that asks for less exposure or for a certain public IP is rejected: ignoring it would open
//! the Service to the Internet, or give it another public IP than its owner counts on. Any other annotation
//! of the cloud provider that is not in the table has no effect, and its owner is told once.

/// Annotations of the cloud provider of Azure begin with this.
pub const AZURE: &str = "service.beta.kubernetes.io/azure-";
/// Minutes until an idle TCP connection is closed.
pub const IDLE_TIMEOUT: &str = "service.beta.kubernetes.io/azure-load-balancer-tcp-idle-timeout";
/// Asks for a load balancer without a public IP.
pub const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
/// Asks for an existing public IP.
pub const PUBLIC_IP_NAME: &str = "service.beta.kubernetes.io/azure-pip-name";
/// Asks for a private link service in front of the load balancer.
pub const PRIVATE_LINK: &str = "service.beta.kubernetes.io/azure-pls-create";

const NO_SOURCE_RANGES: &str = "Annotations for source ranges and service tags are not supported, and ignoring them would open the Service to the Internet; remove the annotation";
const NO_CHOSEN_IP: &str = "A public IP of your choice (azure-pip-name, azure-pip-prefix-id, azure-load-balancer-ipv4, azure-load-balancer-ipv6) is not supported; remove the annotation";

/// One annotation, or several that begin alike.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// Its name.
    pub key: &'static str,
    /// Names that only begin like this are meant as well.
    pub with_suffixes: bool,
    /// What is done about it.
    pub rule: Rule,
}

/// What is done about an annotation of the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Its value is used.
    Read,
    /// The Service is rejected if the value asks for something.
    Rejected {
        /// Which values do.
        asks: Asks,
        /// Why, and what to do; a sentence for the owner of the Service.
        why: &'static str,
    },
}

/// Which values of an annotation ask for something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asks {
    /// Only `true`.
    IfTrue,
    /// All but `false` and nothing.
    UnlessFalse,
    /// All but nothing.
    IfSet,
}

impl Asks {
    /// Read generously: who writes `True` does not want to be on the Internet either.
    fn is_met_by(self, value: &str) -> bool {
        let value = value.trim();
        match self {
            Asks::IfTrue => value.eq_ignore_ascii_case("true"),
            Asks::UnlessFalse => !value.is_empty() && !value.eq_ignore_ascii_case("false"),
            Asks::IfSet => !value.is_empty(),
        }
    }
}

const fn rejected(key: &'static str, asks: Asks, why: &'static str) -> Row {
    Row { key, with_suffixes: false, rule: Rule::Rejected { asks, why } }
}

/// Every annotation that is not just without effect.
pub const TABLE: &[Row] = &[
    Row { key: IDLE_TIMEOUT, with_suffixes: false, rule: Rule::Read },
    rejected(
        INTERNAL,
        Asks::IfTrue,
        "Internal load balancers (azure-load-balancer-internal) are not supported; remove the annotation",
    ),
    rejected(
        PRIVATE_LINK,
        Asks::UnlessFalse,
        "Private link services (azure-pls-create) are not supported; remove the annotation",
    ),
    rejected("service.beta.kubernetes.io/azure-allowed-ip-ranges", Asks::IfSet, NO_SOURCE_RANGES),
    rejected("service.beta.kubernetes.io/azure-allowed-service-tags", Asks::IfSet, NO_SOURCE_RANGES),
    rejected("service.beta.kubernetes.io/load-balancer-source-ranges", Asks::IfSet, NO_SOURCE_RANGES),
    rejected(
        "service.beta.kubernetes.io/azure-deny-all-except-load-balancer-source-ranges",
        Asks::UnlessFalse,
        NO_SOURCE_RANGES,
    ),
    rejected("service.beta.kubernetes.io/azure-load-balancer-ipv4", Asks::IfSet, NO_CHOSEN_IP),
    rejected("service.beta.kubernetes.io/azure-load-balancer-ipv6", Asks::IfSet, NO_CHOSEN_IP),
    Row { with_suffixes: true, ..rejected(PUBLIC_IP_NAME, Asks::IfSet, NO_CHOSEN_IP) },
    Row {
        with_suffixes: true,
        ..rejected("service.beta.kubernetes.io/azure-pip-prefix-id", Asks::IfSet, NO_CHOSEN_IP)
    },
];

/// What an annotation means for the Service that carries it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    /// It is none of the cloud provider's, or asks for nothing.
    Nothing,
    /// Its value is used.
    Read,
    /// The Service is rejected.
    Rejected,
    /// It asks for something that makes no difference here.
    WithoutEffect,
}

/// What an annotation with this value means.
pub fn treatment(key: &str, value: &str) -> Treatment {
    match row(key).map(|row| row.rule) {
        Some(Rule::Read) => Treatment::Read,
        Some(Rule::Rejected { asks, .. }) if asks.is_met_by(value) => Treatment::Rejected,
        Some(Rule::Rejected { .. }) => Treatment::Nothing,
        None if key.starts_with(AZURE) => Treatment::WithoutEffect,
        None => Treatment::Nothing,
    }
}

/// Why a Service with this annotation is rejected, and what to do.
pub fn why_rejected(key: &str) -> Option<&'static str> {
    match row(key)?.rule {
        Rule::Rejected { why, .. } => Some(why),
        Rule::Read => None,
    }
}

fn row(key: &str) -> Option<&'static Row> {
    TABLE.iter().find(|row| key == row.key || row.with_suffixes && key.starts_with(row.key))
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    fn of(name: &str, value: &str) -> Treatment {
        treatment(&format!("service.beta.kubernetes.io/{name}"), value)
    }

    #[test]
    fn what_asks_for_less_exposure_or_another_ip_is_rejected() {
        for (name, value) in [
            ("azure-load-balancer-internal", " True "),
            ("azure-pls-create", "true"),
            ("azure-pls-create", "yes"),
            ("azure-deny-all-except-load-balancer-source-ranges", "true"),
            ("azure-allowed-ip-ranges", "10.0.0.0/8"),
            ("azure-allowed-service-tags", "Storage"),
            ("load-balancer-source-ranges", "10.0.0.0/8"),
            ("azure-load-balancer-ipv4", "20.1.2.3"),
            ("azure-load-balancer-ipv6", "2001:db8::1"),
            ("azure-pip-name", "mine"),
            ("azure-pip-name-ipv6", "mine"),
            ("azure-pip-prefix-id", "/subscriptions/s"),
            ("azure-pip-prefix-id-ipv6", "/subscriptions/s"),
        ] {
            assert_eq!(of(name, value), Treatment::Rejected, "{name}: {value}");
            let why = why_rejected(&format!("service.beta.kubernetes.io/{name}")).unwrap_or_default();
            assert!(why.contains("not supported") && why.contains("remove"), "{name}: {why}");
        }
    }

    #[test]
    fn a_value_that_asks_for_nothing_is_no_reason_to_reject() {
        for (name, value) in [
            ("azure-load-balancer-internal", "false"),
            ("azure-pls-create", "False"),
            ("azure-deny-all-except-load-balancer-source-ranges", ""),
            ("azure-allowed-ip-ranges", " "),
            ("azure-pip-name", ""),
        ] {
            assert_eq!(of(name, value), Treatment::Nothing, "{name}: {value:?}");
        }
    }

    #[test]
    fn any_other_annotation_of_the_cloud_provider_has_no_effect() {
        assert_eq!(of("azure-dns-label-name", "shop"), Treatment::WithoutEffect);
        assert_eq!(of("azure-pip-tags", "a=b"), Treatment::WithoutEffect);
        assert_eq!(of("azure-load-balancer-tcp-idle-timeout", "4"), Treatment::Read);
        assert_eq!(of("aws-load-balancer-type", "nlb"), Treatment::Nothing);
        assert_eq!(treatment("shop.example/azure-pip-name", "x"), Treatment::Nothing);
        assert_eq!(why_rejected(IDLE_TIMEOUT), None);
    }

    #[test]
    fn the_page_of_the_reason_names_every_annotation_that_is_rejected() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/errors/SGW0010.md");
        let page = std::fs::read_to_string(page).expect("the page is there");
        for row in TABLE.iter().filter(|row| row.rule != Rule::Read) {
            let name = row.key.trim_start_matches("service.beta.kubernetes.io/");
            assert!(page.contains(name), "{name}");
        }
    }
}
