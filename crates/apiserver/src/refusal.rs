//! What the server says no with: the `Status` of Kubernetes, in the words of its API server.

use serde_json::{Map, Value, json};

use crate::kinds::Kind;

/// A request that was not done, and why.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The HTTP status.
    pub code: u16,
    /// One word for programs, such as `NotFound`; some of the real server's refusals have none.
    pub reason: &'static str,
    /// A sentence for people.
    pub message: String,
    /// The `details` of the Status.
    pub details: Map<String, Value>,
    /// Whether the details are shown even if there are none, as the real server does it here and there.
    pub shows_details: bool,
}

/// One field that is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cause {
    /// Such as `FieldValueInvalid`.
    pub reason: &'static str,
    /// Such as `spec.ports[0].port`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
}

impl Cause {
    /// `Invalid value`.
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Cause {
        let shown = shown(value);
        Cause {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {shown}: {why}"),
        }
    }

    /// `Required value`.
    pub fn required(field: impl Into<String>, why: &str) -> Cause {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Cause { reason: "FieldValueRequired", field: field.into(), message }
    }

    /// `Forbidden`.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Cause {
        Cause { reason: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {why}") }
    }

    /// `Duplicate value`.
    pub fn duplicate(field: impl Into<String>, value: &Value) -> Cause {
        let message = format!("Duplicate value: {}", shown(value));
        Cause { reason: "FieldValueDuplicate", field: field.into(), message }
    }

    /// `Unsupported value`, with those that are.
    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Cause {
        let supported: Vec<String> = supported.iter().map(|it| format!("\"{it}\"")).collect();
        let message =
            format!("Unsupported value: {}: supported values: {}", shown(value), supported.join(", "));
        Cause { reason: "FieldValueNotSupported", field: field.into(), message }
    }
}

/// A value as messages show it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

impl Refusal {
    /// A refusal without details.
    pub fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { code, reason, message: message.into(), details: Map::new(), shows_details: false }
    }

    /// The same, with empty details.
    pub(crate) fn with_details(mut self) -> Refusal {
        self.shows_details = true;
        self
    }

    /// A parameter of the request is not allowed; `options` is what the parameters belong to.
    pub(crate) fn invalid_options(options: &str, cause: &Cause) -> Refusal {
        let message = format!("{options}.meta.k8s.io \"\" is invalid: {}: {}", cause.field, cause.message);
        let mut refusal = Refusal::new(422, "Invalid", message);
        refusal.details.insert("group".into(), json!("meta.k8s.io"));
        refusal.details.insert("kind".into(), json!(options));
        let cause = json!({"reason": cause.reason, "message": cause.message, "field": cause.field});
        refusal.details.insert("causes".into(), json!([cause]));
        refusal
    }

    fn about(mut self, kind: &Kind, name: &str) -> Refusal {
        if !name.is_empty() {
            self.details.insert("name".into(), json!(name));
        }
        if !kind.group.is_empty() {
            self.details.insert("group".into(), json!(kind.group));
        }
        self.details.insert("kind".into(), json!(kind.resource));
        self
    }

    /// There is no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Refusal {
        let message = format!("{} \"{name}\" not found", kind.qualified());
        Refusal::new(404, "NotFound", message).about(kind, name)
    }

    /// There is one already.
    pub fn already_exists(kind: &Kind, name: &str) -> Refusal {
        let message = format!("{} \"{name}\" already exists", kind.qualified());
        Refusal::new(409, "AlreadyExists", message).about(kind, name)
    }

    /// Somebody else has written in between, or a precondition does not hold.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Refusal {
        let message = format!("Operation cannot be fulfilled on {} \"{name}\": {why}", kind.qualified());
        Refusal::new(409, "Conflict", message).about(kind, name)
    }

    /// The object is read well and not allowed.
    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Refusal {
        let qualified = match kind.group {
            "" => kind.kind.to_owned(),
            group => format!("{}.{group}", kind.kind),
        };
        let mut told: Vec<String> =
            causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        told.dedup();
        let list = match told.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let mut refusal = Refusal::new(422, "Invalid", format!("{qualified} \"{name}\" is invalid: {list}"))
            .about(kind, name);
        refusal.details.insert("kind".into(), json!(kind.kind));
        let causes: Vec<Value> = causes
            .iter()
            .map(|cause| json!({"reason": cause.reason, "message": cause.message, "field": cause.field}))
            .collect();
        refusal.details.insert("causes".into(), Value::Array(causes));
        refusal
    }

    /// The request is not understood.
    pub fn bad_request(message: impl Into<String>) -> Refusal {
        Refusal::new(400, "BadRequest", message)
    }

    /// Nobody may do this.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Refusal {
        let message = format!("{} \"{name}\" is forbidden: {why}", kind.qualified());
        Refusal::new(403, "Forbidden", message).about(kind, name)
    }

    /// The version that a watch or a page wants is no longer known.
    pub fn expired(message: impl Into<String>) -> Refusal {
        Refusal::new(410, "Expired", message)
    }

    /// No such path on the real server either.
    pub fn no_such_resource() -> Refusal {
        Refusal::new(404, "NotFound", "the server could not find the requested resource").with_details()
    }

    /// Known to Kubernetes, and not to the playground.
    pub fn not_in_the_playground(what: &str) -> Refusal {
        let message = format!(
            "{what} is not supported by the API server of the playground; `kubectl api-resources` lists what is"
        );
        Refusal::new(404, "NotFound", message)
    }

    /// The path is there, the method is not.
    pub fn method_not_allowed() -> Refusal {
        Refusal::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details()
    }

    /// As the object that goes over the wire.
    pub fn status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_empty() || self.shows_details {
            status["details"] = Value::Object(self.details.clone());
        }
        status
    }
}
