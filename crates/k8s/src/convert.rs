//! Light objects in the engine's words; pure.

use std::net::IpAddr;

use sluice_model::address::parse_ip;

/// What stands before the address in the message of `LoadBalancerServing`.
const REACHED_AT: &str = "Reached at ";

/// Which Services are ours, by `sluice.loadBalancerClass`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Selection {
    /// Only Services of this class; without one we are the cluster's service controller and serve those without.
    pub class: Option<String>,
}

/// The sentence in the message of `LoadBalancerServing` that says which address we published.
///
/// It is the only place where a later process learns which entry of the status is ours to retract,
/// so [`published_in`] must find the address again. More sentences may follow or go before.
pub fn published_message(ip: IpAddr) -> String {
    format!("{REACHED_AT}{ip}.")
}

/// The address that a message of `LoadBalancerServing` says we published.
pub fn published_in(message: &str) -> Option<IpAddr> {
    let (_, rest) = message.split_once(REACHED_AT)?;
    let address = rest.split_whitespace().next()?;
    parse_ip(address.strip_suffix('.').unwrap_or(address)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_address_is_found_again_in_its_message() {
        for text in ["20.1.2.3", "2001:db8::1", "2001:db8::"] {
            let ip: IpAddr = text.parse().unwrap();
            assert_eq!(published_in(&published_message(ip)), Some(ip), "{text}");
            let longer = format!("Draining. {} Its ports are being changed.", published_message(ip));
            assert_eq!(published_in(&longer), Some(ip), "{longer}");
        }
        assert_eq!(published_message("20.1.2.3".parse().unwrap()), "Reached at 20.1.2.3.");
        for message in ["", "20.1.2.3", "Reached at", "Reached at ", "Reached at home.", "Not reached."] {
            assert_eq!(published_in(message), None, "{message}");
        }
    }
}
