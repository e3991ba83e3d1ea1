//! The contract of Kubernetes, object by object.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::*;

mod others;
mod services;

const UID: &str = "0a1b2c3d-0000-4000-8000-00000000000f";

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// `with` laid over `base`, field by field.
fn overlaid(mut base: Value, with: Value) -> Value {
    fn lay(base: &mut Value, with: Value) {
        match (base, with) {
            (Value::Object(base), Value::Object(with)) => {
                with.into_iter().for_each(|(key, value)| lay(base.entry(key).or_insert(Value::Null), value));
            }
            (base, with) => *base = with,
        }
    }
    lay(&mut base, with);
    base
}

fn metadata() -> Value {
    json!({"name": "web", "namespace": "shop", "uid": UID, "resourceVersion": "41"})
}

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
