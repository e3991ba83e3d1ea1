//! Ports of a Service, as they stand in its spec.

use serde_json::{Value, json};

/// A TCP port for `World::set_ports`.
pub(crate) fn tcp(port: u16, target: impl Into<Value>) -> Value {
    named_port(&format!("tcp-{port}"), "TCP", port, target)
}

/// A UDP port for `World::set_ports`.
pub(crate) fn udp(port: u16, target: impl Into<Value>) -> Value {
    named_port(&format!("udp-{port}"), "UDP", port, target)
}

/// A port with a name of its own; the target is a number or the name of a container's port.
pub(crate) fn named_port(name: &str, protocol: &str, port: u16, target: impl Into<Value>) -> Value {
    json!({"name": name, "protocol": protocol, "port": port, "targetPort": target.into()})
}
