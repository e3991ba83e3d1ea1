//! In which form a client wants its answer.

use http::HeaderMap;
use http::header::ACCEPT;

use crate::refusal::Refusal;

/// The form of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Objects as they are.
    Plain,
    /// A table for people.
    Table,
    /// Objects with nothing but their metadata.
    Metadata,
    /// All groups in one document, the newer way to discover.
    Discovery,
}

/// The first form of a client's wishes that can be fulfilled.
pub(crate) fn form(headers: &HeaderMap) -> Result<Form, Refusal> {
    let wishes: Vec<&str> = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).collect();
    let wishes = wishes.join(",");
    if wishes.trim().is_empty() {
        return Ok(Form::Plain);
    }
    let found = wishes.split(',').find_map(|wish| {
        let mut parts = wish.split(';').map(str::trim);
        let media = parts.next().unwrap_or("");
        if !matches!(media, "application/json" | "*/*" | "application/*") {
            return None;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
        let value = |name: &str| parameters.iter().find(|(it, _)| *it == name).map_or("", |(_, value)| value);
        match (value("as"), value("g"), value("v")) {
            ("", ..) => Some(Form::Plain),
            ("Table", "meta.k8s.io", "v1") => Some(Form::Table),
            ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => {
                Some(Form::Metadata)
            }
            ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Form::Discovery),
            _ => None,
        }
    });
    found.ok_or_else(|| {
        let message = "only the following media types are accepted: application/json";
        Refusal::new(406, "NotAcceptable", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(wishes: &str) -> Result<Form, u16> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, wishes.parse().unwrap());
        form(&headers).map_err(|refusal| refusal.code)
    }

    #[test]
    fn the_first_wish_that_can_be_fulfilled_is() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;\
                       g=meta.k8s.io,application/json";
        assert_eq!(accepted(kubectl), Ok(Form::Table));
        assert_eq!(accepted("application/vnd.kubernetes.protobuf, application/json"), Ok(Form::Plain));
        assert_eq!(
            accepted("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
            Ok(Form::Discovery)
        );
        assert_eq!(accepted("application/json;as=Table;v=v1beta1;g=meta.k8s.io"), Err(406));
        assert_eq!(accepted("application/yaml"), Err(406));
        assert_eq!(accepted("*/*"), Ok(Form::Plain));
    }
}
