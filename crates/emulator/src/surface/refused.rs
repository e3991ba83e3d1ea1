//! Every way in which the surface itself says no, and the JSON of everybody's no.
//!
//! Two parties refuse: the resource manager's gateway, which knows groups, types and versions, and the
//! network provider behind it. One sees which by the body: the provider always has `details`, if only an
//! empty list. Codes and texts are Azure's where we know them; what no recording shows is marked as a guess
//! in SUPPORT.md.

use std::time::Duration;

use serde_json::{Value, json};
use sluice_cloud::is_managers_code;
use sluice_model::call::ArmError;

use super::serve::Turn;

/// Who refuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// The resource manager, before the provider sees the request.
    Gateway,
    /// The network provider.
    Provider,
}

/// A request that is not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refused {
    pub(crate) status: u16,
    pub(crate) code: String,
    pub(crate) message: String,
    /// A code and a text each.
    details: Vec<(String, String)>,
    pub(crate) by: By,
}

impl Refused {
    fn new(by: By, status: u16, code: &str, message: impl Into<String>) -> Refused {
        let (code, message) = (code.into(), message.into());
        Refused { status, code, message, details: Vec::new(), by }
    }

    fn gateway(status: u16, code: &str, message: impl Into<String>) -> Refused {
        Refused::new(By::Gateway, status, code, message)
    }

    pub(crate) fn provider(status: u16, code: &str, message: impl Into<String>) -> Refused {
        Refused::new(By::Provider, status, code, message)
    }

    /// A refusal of the model, in Azure's shape. Its texts name Azure's own host, and in those of a 429
    /// the waits are emulated seconds; clients see ours and real ones.
    pub(crate) fn from_model(
        status: u16,
        error: &ArmError,
        details: &[ArmError],
        turn: &Turn<'_>,
    ) -> Refused {
        let by = if is_managers_code(&error.code) { By::Gateway } else { By::Provider };
        let real = |text: &str| {
            let text = text.replace("https://management.azure.com", turn.origin);
            if status == 429 { in_real_seconds(&text, turn.time_factor) } else { text }
        };
        let details = details.iter().map(|it| (it.code.to_string(), real(&it.message))).collect();
        Refused { details, ..Refused::new(by, status, &error.code, real(&error.message)) }
    }

    /// Lets the text name this wait, which is a real one.
    pub(crate) fn say_wait(&mut self, wait: Duration) {
        self.message = with_seconds(&self.message, |_| wait.as_secs());
    }

    /// `{"error": {…}}`.
    pub(crate) fn body(&self) -> Value {
        json!({ "error": self.error() })
    }

    pub(crate) fn error(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if self.by == By::Provider || !self.details.is_empty() {
            let details = self.details.iter().map(|(code, text)| json!({ "code": code, "message": text }));
            error["details"] = Value::Array(details.collect());
        }
        error
    }

    // Paths, versions, methods.

    pub(crate) fn no_subscription() -> Refused {
        let message = "The request did not have a subscription or a valid tenant level resource provider.";
        Refused::gateway(404, "MissingSubscription", message)
    }

    pub(crate) fn bad_subscription(text: &str) -> Refused {
        let message = format!("The provided subscription identifier '{text}' is malformed or invalid.");
        Refused::gateway(400, "InvalidSubscriptionId", message)
    }

    pub(crate) fn no_namespace(namespace: &str) -> Refused {
        let message = format!(
            "The resource namespace '{namespace}' is invalid. (The emulator serves Microsoft.Network and \
             resource groups; SUPPORT.md has the list.)"
        );
        Refused::gateway(404, "InvalidResourceNamespace", message)
    }

    pub(crate) fn no_type(word: &str, version: &str) -> Refused {
        let message = format!(
            "The resource type '{word}' could not be found in the namespace 'Microsoft.Network' for api \
             version '{version}'. (The emulator does not serve it; SUPPORT.md has the list.)"
        );
        Refused::gateway(404, "InvalidResourceType", message)
    }

    pub(crate) fn no_version() -> Refused {
        let message = "The api-version query parameter (?api-version=) is required for all requests.";
        Refused::gateway(400, "MissingApiVersionParameter", message)
    }

    pub(crate) fn bad_version(version: &str, supported: &str) -> Refused {
        let message =
            format!("The api-version '{version}' is invalid. The supported versions are '{supported}'.");
        Refused::gateway(400, "InvalidApiVersionParameter", message)
    }

    pub(crate) fn unserved_version(version: &str, word: &str, supported: &str) -> Refused {
        let message = format!(
            "No registered resource provider found for API version '{version}' for type '{word}'. The \
             supported api-versions are '{supported}'."
        );
        Refused::gateway(400, "NoRegisteredProviderFound", message)
    }

    pub(crate) fn method_not_allowed(method: &str) -> Refused {
        let message = format!("The http method '{method}' is not supported for a resource of this type.");
        Refused::gateway(405, "MethodNotAllowed", message)
    }

    /// A whole call that Azure has and the emulator has not.
    pub(crate) fn call_not_emulated(what: &str) -> Refused {
        let message = format!("{what} is not part of this emulator; SUPPORT.md says what is.");
        Refused::gateway(501, "NotSupportedByEmulator", message)
    }

    /// A field or value that Azure has and the emulator has not.
    pub(crate) fn not_emulated(path: &str, why: &str) -> Refused {
        let message =
            format!("'{path}': {why} The emulator does not support it; SUPPORT.md says what it does.");
        Refused::provider(400, "NotSupportedByEmulator", message)
    }

    /// A page of a list that could not be read, by order.
    pub(crate) fn failed_page() -> Refused {
        Refused::provider(500, "InternalServerError", "The page could not be read.")
    }

    /// The model has answered with something that nobody here can show.
    pub(crate) fn internal() -> Refused {
        Refused::provider(500, "InternalServerError", "An error occurred.")
    }

    // What is not there.

    pub(crate) fn no_group(name: &str) -> Refused {
        Refused::gateway(404, "ResourceGroupNotFound", sluice_cloud::no_group_text(name))
    }

    pub(crate) fn no_resource(word: &str, name: &str, group: &str) -> Refused {
        Refused::gateway(404, "ResourceNotFound", sluice_cloud::no_resource_text(word, name, group))
    }

    pub(crate) fn no_operation(name: &str) -> Refused {
        Refused::provider(404, "OperationNotFound", format!("Operation '{name}' was not found."))
    }

    // Names.

    pub(crate) fn bad_group_name(name: &str) -> Refused {
        let message = format!(
            "The provided resource group name '{name}' is invalid: 1 to 90 letters, digits, '-', '.', '(', \
             ')' or '_', not ending with a period."
        );
        Refused::gateway(400, "InvalidResourceGroup", message)
    }

    pub(crate) fn bad_name(name: &str) -> Refused {
        let message = format!("Resource name '{}' is invalid.", printable(name));
        Refused::gateway(400, "InvalidResourceName", message)
    }

    // Bodies as a whole.

    pub(crate) fn too_large(bytes: usize, most: usize) -> Refused {
        let message = format!("The request has {bytes} bytes; at most {most} are allowed.");
        Refused::gateway(413, "RequestEntityTooLarge", message)
    }

    pub(crate) fn no_length() -> Refused {
        Refused::gateway(411, "LengthRequired", "The request must have a Content-Length.")
    }

    pub(crate) fn media_type(given: Option<&str>) -> Refused {
        let message = format!(
            "The content media type '{}' is not supported. Only 'application/json' is supported.",
            given.map_or_else(|| "<null>".into(), printable)
        );
        Refused::gateway(415, "UnsupportedMediaType", message)
    }

    pub(crate) fn content(why: &str) -> Refused {
        let message = format!("The request content was invalid and could not be deserialized: '{why}'.");
        Refused::gateway(400, "InvalidRequestContent", message)
    }

    pub(crate) fn no_location() -> Refused {
        let message = "The location property is required for this definition.";
        Refused::gateway(400, "LocationRequired", message)
    }

    pub(crate) fn bad_location(location: &str, word: &str) -> Refused {
        let message = format!(
            "The provided location '{}' is not available for resource type '{word}'.",
            printable(location)
        );
        Refused::gateway(400, "LocationNotAvailableForResourceType", message)
    }

    pub(crate) fn other_location(name: &str, group: &str, is: &str, wanted: &str) -> Refused {
        let message = format!(
            "The resource '{name}' already exists in location '{is}' in resource group '{group}'. A resource \
             with the same name cannot be created in location '{wanted}'. Please select a new resource name."
        );
        Refused::gateway(409, "InvalidResourceLocation", message)
    }

    pub(crate) fn other_group_location(name: &str, is: &str, wanted: &str) -> Refused {
        let message = format!(
            "Invalid resource group location '{wanted}'. The Resource group '{name}' already exists in \
             location '{is}'."
        );
        Refused::gateway(409, "InvalidResourceGroupLocation", message)
    }

    pub(crate) fn bad_tag_name(name: &str) -> Refused {
        let message = format!(
            "The tag names '{}' have reserved characters '<,>,%,&,\\,?,/' or control characters, or are too \
             long.",
            printable(name)
        );
        Refused::gateway(400, "InvalidTagNameCharacters", message)
    }

    pub(crate) fn bad_tags(why: &str) -> Refused {
        Refused::gateway(400, "InvalidTags", format!("The tags are invalid: {why}."))
    }

    pub(crate) fn bad_page(token: &str) -> Refused {
        let message = format!("'{}' does not continue this list.", printable(token));
        Refused::provider(400, "InvalidSkipToken", message)
    }

    pub(crate) fn exists_already(id: &str) -> Refused {
        let mut refused = Refused::provider(412, "PreconditionFailed", "Precondition failed.");
        let message = format!("Resource {id} exists, and the if-none-match header forbids that.");
        refused.details = vec![("PreconditionFailedResourceExists".into(), message)];
        refused
    }

    // Bodies, field by field.

    /// A field that has the wrong type or no allowed value.
    pub(crate) fn unreadable(path: &str, why: &str) -> Refused {
        let mut refused = Refused::provider(400, "InvalidRequestFormat", "Cannot parse the request.");
        refused.details = vec![("InvalidJson".into(), format!("{why} Path '{path}'."))];
        refused
    }

    pub(crate) fn no_reference_id(path: &str) -> Refused {
        let mut refused = Refused::provider(400, "InvalidRequestFormat", "Cannot parse the request.");
        let text = format!("Value for reference id is missing. Path {path}.");
        refused.details = vec![("MissingJsonReferenceId".into(), text)];
        refused
    }

    pub(crate) fn bad_reference_id(path: &str, id: &str) -> Refused {
        let message = format!(
            "Property id '{}' at path '{path}' is invalid. Expect fully qualified resource Id that start with \
             '/subscriptions/{{subscriptionId}}' or '/providers/{{resourceProviderNamespace}}/'.",
            printable(id)
        );
        Refused::gateway(400, "LinkedInvalidPropertyId", message)
    }

    pub(crate) fn missing_reference(target: &str, by: &str) -> Refused {
        let message = format!(
            "Resource {target} referenced by resource {by} was not found. Please make sure that the \
             referenced resource exists, and that both resources are in the same region."
        );
        Refused::provider(400, "InvalidResourceReference", message)
    }

    pub(crate) fn fixed(what: &str, id: &str) -> Refused {
        Refused::provider(400, "PropertyCannotBeChanged", format!("{what} of {id} cannot be changed."))
    }
}

/// The numbers before "seconds" as real seconds: divided by the factor, rounded up, at least one.
fn in_real_seconds(text: &str, time_factor: f64) -> String {
    with_seconds(text, |seconds| real_wait(Duration::from_secs(seconds), time_factor).as_secs())
}

/// The numbers before "seconds", changed.
fn with_seconds(text: &str, change: impl Fn(u64) -> u64) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let scaled = words.iter().enumerate().map(|(at, word)| {
        let digits = word.trim_matches('\'');
        match (digits.parse::<u64>(), words.get(at + 1)) {
            (Ok(number), Some(next)) if next.starts_with("second") => {
                word.replace(digits, &change(number).to_string())
            }
            _ => (*word).to_owned(),
        }
    });
    scaled.collect::<Vec<_>>().join(" ")
}

/// An emulated wait in whole real seconds, rounded up, at least one.
pub(crate) fn real_wait(emulated: Duration, time_factor: f64) -> Duration {
    let seconds = (emulated.as_secs_f64() / time_factor).ceil();
    // A float becomes a whole number by saturation, and what is no number becomes nothing.
    Duration::from_secs((seconds as u64).clamp(1, 86_400))
}

/// What a client sent, short enough and without anything that could disturb a log.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_in_texts_are_real_seconds_rounded_up() {
        let text = "Operation 7 is busy. The call can be retried in 17 seconds.";
        assert_eq!(in_real_seconds(text, 1.0), text);
        assert!(in_real_seconds(text, 10.0).ends_with("retried in 2 seconds."));
        assert!(in_real_seconds("try again after '3' seconds.", 100.0).ends_with("after '1' seconds."));
        assert!(in_real_seconds(text, 0.5).ends_with("in 34 seconds."));
    }

    #[test]
    fn a_wait_is_at_least_a_second_and_no_factor_breaks_it() {
        for factor in [1e9, f64::INFINITY, f64::NAN] {
            assert_eq!(real_wait(Duration::from_secs(5), factor), Duration::from_secs(1));
        }
        assert_eq!(real_wait(Duration::from_secs(5), 0.0), Duration::from_secs(86_400));
    }

    #[test]
    fn only_the_provider_has_details_without_having_any() {
        let gateway = Refused::no_group("rg").body();
        assert_eq!(gateway["error"].get("details"), None);
        let provider = Refused::no_operation("7").body();
        assert_eq!(provider["error"]["details"], json!([]));
    }
}
