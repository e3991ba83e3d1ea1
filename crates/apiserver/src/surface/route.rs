//! Which object, list or page a path leads to.

use percent_encoding::percent_decode_str;

use crate::kinds::{self, KINDS, Kind};
use crate::refusal::Refusal;

/// What a path names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Target {
    pub(crate) kind: &'static Kind,
    /// Empty when the kind has none, or when all are meant.
    pub(crate) namespace: Option<String>,
    pub(crate) name: Option<String>,
    /// `status`, `scale` and so on.
    pub(crate) sub: Option<String>,
}

/// A path, understood.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Path {
    /// The list of all paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// `/api`.
    Core,
    /// `/apis`.
    Groups,
    /// `/apis/apps`.
    Group(String),
    /// `/api/v1` or `/apis/apps/v1`.
    GroupVersion(String, String),
    /// `/openapi/v3` and what is under it.
    OpenApi(Option<String>),
    /// Objects.
    Resource(Target),
}

/// Reads a path.
pub(crate) fn parse(path: &str) -> Result<Path, Refusal> {
    let parts: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(|part| percent_decode_str(part).decode_utf8_lossy().into_owned())
        .collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match parts.as_slice() {
        [] => Ok(Path::Root),
        ["version"] => Ok(Path::Version),
        ["healthz" | "livez" | "readyz", ..] => Ok(Path::Health),
        ["api"] => Ok(Path::Core),
        ["apis"] => Ok(Path::Groups),
        ["openapi", "v3"] => Ok(Path::OpenApi(None)),
        ["openapi", "v3", rest @ ..] => Ok(Path::OpenApi(Some(rest.join("/")))),
        ["openapi", ..] => Err(Refusal::not_in_the_playground("OpenAPI version 2")),
        ["api", "v1"] => Ok(Path::GroupVersion(String::new(), "v1".to_owned())),
        ["api", "v1", rest @ ..] => resource("", "v1", rest).map(Path::Resource),
        ["apis", group] if is_group(group) => Ok(Path::Group((*group).to_owned())),
        ["apis", group, version] if is_served(group, version) => {
            Ok(Path::GroupVersion((*group).to_owned(), (*version).to_owned()))
        }
        ["apis", group, version, rest @ ..] if is_served(group, version) => {
            resource(group, version, rest).map(Path::Resource)
        }
        ["apis", group, version, ..] => {
            Err(Refusal::not_in_the_playground(&format!("the API {group}/{version}")))
        }
        ["apis", group] => Err(Refusal::not_in_the_playground(&format!("the API group {group}"))),
        _ => Err(Refusal::no_such_resource()),
    }
}

fn is_group(group: &str) -> bool {
    KINDS.iter().any(|kind| kind.group == group)
}

fn is_served(group: &str, version: &str) -> bool {
    KINDS.iter().any(|kind| kind.group == group && kind.version == version)
}

fn resource(group: &str, version: &str, parts: &[&str]) -> Result<Target, Refusal> {
    let (namespace, parts) = match parts {
        // The subresources of a namespace itself.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] if group.is_empty() => (None, parts),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some((*namespace).to_owned()), rest),
        _ => (None, parts),
    };
    let (word, name, sub) = match parts {
        ["watch", ..] => {
            return Err(Refusal::not_in_the_playground("the old path /watch (use ?watch=true)"));
        }
        [word] => (word, None, None),
        [word, name] => (word, Some((*name).to_owned()), None),
        [word, name, sub @ ..] => (word, Some((*name).to_owned()), Some(sub.join("/"))),
        [] => return Err(Refusal::no_such_resource()),
    };
    let Some(kind) = kinds::find(group, version, word) else {
        let what = if group.is_empty() { (*word).to_owned() } else { format!("{word}.{group}") };
        return Err(Refusal::not_in_the_playground(&format!("the resource {what}")));
    };
    if kind.namespaced != namespace.is_some() && (!kind.namespaced || name.is_some()) {
        return Err(Refusal::no_such_resource());
    }
    Ok(Target { kind, namespace, name, sub })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::{DEPLOYMENT, NAMESPACE, POD};

    fn target(path: &str) -> Target {
        match parse(path) {
            Ok(Path::Resource(target)) => target,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_objects_lists_and_parts() {
        let one = target("/api/v1/namespaces/default/pods/a/status");
        assert_eq!((one.kind, one.namespace.as_deref()), (&POD, Some("default")));
        assert_eq!((one.name.as_deref(), one.sub.as_deref()), (Some("a"), Some("status")));
        assert_eq!(target("/api/v1/pods").namespace, None);
        assert_eq!(target("/api/v1/namespaces").kind, &NAMESPACE);
        let part = target("/api/v1/namespaces/x/finalize");
        assert_eq!(
            (part.kind, part.name.as_deref(), part.sub.as_deref()),
            (&NAMESPACE, Some("x"), Some("finalize"))
        );
        assert_eq!(target("/apis/apps/v1/namespaces/x/deployments").kind, &DEPLOYMENT);
    }

    #[test]
    fn what_is_not_served_is_refused_by_name() {
        for path in
            ["/apis/batch/v1/jobs", "/api/v1/persistentvolumes", "/apis/apps/v1/daemonsets", "/apis/batch"]
        {
            let refusal = parse(path).unwrap_err();
            assert!(refusal.message.contains("is not supported by the API server"), "{path}: {refusal}");
        }
        assert_eq!(parse("/api/v1/pods/a").unwrap_err().code, 404);
        assert_eq!(parse("/foo").unwrap_err().code, 404);
    }
}
