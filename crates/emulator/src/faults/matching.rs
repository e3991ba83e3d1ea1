//! Which requests a rule is for.

use serde::{Deserialize, Serialize};

use crate::calls::{CALLS, KINDS};

/// The parts of the emulator that a rule can name. Without one it is for the resource manager only, so
/// that a rule for everything does not take away the tokens as well.
const AREAS: [&str; 5] = ["arm", "token", "identity", "metadata", "any"];

/// The HTTP methods that anybody uses here.
const METHODS: [&str; 6] = ["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"];

/// What a rule can see of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Facts<'a> {
    /// Which part of the emulator it is for.
    pub(crate) area: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) call: Option<&'a str>,
    pub(crate) kind: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    /// The client id in its token.
    pub(crate) principal: Option<&'a str>,
}

/// What must be true of a request; what is not said does not matter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Match {
    #[serde(skip_serializing_if = "Option::is_none")]
    area: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// With `*` for any run of characters, slashes among them.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<String>,
    /// With `*`, likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    principal: Option<String>,
}

impl Match {
    /// Refuses words that no request can have.
    pub(super) fn check(&self) -> Result<(), String> {
        let known: [(&str, &Option<String>, &[&str]); 4] = [
            ("area", &self.area, &AREAS),
            ("method", &self.method, &METHODS),
            ("kind", &self.kind, &KINDS),
            ("call", &self.call, &CALLS),
        ];
        for (field, given, words) in known {
            if let Some(given) = given
                && !words.iter().any(|word| word.eq_ignore_ascii_case(given))
            {
                return Err(format!("match.{field} {given:?} is none of {}", words.join(", ")));
            }
        }
        Ok(())
    }

    /// Whether a request is meant.
    pub(super) fn holds(&self, facts: &Facts<'_>) -> bool {
        let area = self.area.as_deref().unwrap_or("arm");
        (area == "any" || area.eq_ignore_ascii_case(facts.area))
            && same(&self.method, Some(facts.method))
            && like(&self.path, Some(facts.path))
            && same(&self.kind, facts.kind)
            && same(&self.call, facts.call)
            && like(&self.name, facts.name)
            && same(&self.principal, facts.principal)
    }
}

fn same(wanted: &Option<String>, actual: Option<&str>) -> bool {
    wanted.as_deref().is_none_or(|wanted| actual.is_some_and(|it| it.eq_ignore_ascii_case(wanted)))
}

fn like(wanted: &Option<String>, actual: Option<&str>) -> bool {
    wanted.as_deref().is_none_or(|wanted| actual.is_some_and(|it| is_like(wanted, it)))
}

/// Whether a text has the form of a pattern, whatever the case of either.
fn is_like(pattern: &str, text: &str) -> bool {
    let pattern: Vec<u8> = pattern.bytes().map(|it| it.to_ascii_lowercase()).collect();
    let text: Vec<u8> = text.bytes().map(|it| it.to_ascii_lowercase()).collect();
    let (mut at, mut from) = (0, 0);
    // The last star, and where its run ends so far: if the rest does not fit, the run grows by one.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(it) if *it == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, run)) = star else { return false };
                star = Some((star_at, run + 1));
                (at, from) = (star_at + 1, run + 1);
            }
        }
    }
    pattern[at..].iter().all(|it| *it == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_anything() {
        for (pattern, text, fits) in [
            ("", "", true),
            ("*", "", true),
            ("*", "a/b", true),
            ("/a/*/c", "/A/x/y/c", true),
            ("/a/*/c", "/a/c", false),
            ("*-pip", "web-pip-pip", true),
            ("*-pip", "web-pips", false),
            ("a*b*c", "aXbXbXc", true),
            ("a", "", false),
            ("", "a", false),
        ] {
            assert_eq!(is_like(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn everything_that_is_said_must_be_true() {
        let facts = Facts {
            area: "arm",
            method: "PUT",
            path: "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/loadBalancers/web",
            call: Some("Put"),
            kind: Some("loadBalancers"),
            name: Some("web"),
            principal: Some("app"),
        };
        let holds = |json: &str| {
            let it: Match = serde_json::from_str(json).unwrap();
            it.check().unwrap();
            it.holds(&facts)
        };
        assert!(holds("{}"));
        assert!(holds(r#"{"kind": "LOADBALANCERS", "method": "put", "call": "Put", "name": "w*"}"#));
        assert!(holds(r#"{"path": "*/loadBalancers/*", "principal": "app", "area": "any"}"#));
        assert!(!holds(r#"{"kind": "loadBalancers", "call": "Get"}"#));
        assert!(!holds(r#"{"area": "token"}"#));
        assert!(!holds(r#"{"principal": "other"}"#));
    }

    #[test]
    fn words_that_fit_nothing_are_refused_with_those_that_would() {
        let it: Match = serde_json::from_str(r#"{"kind": "loadbalancer"}"#).unwrap();
        let problem = it.check().unwrap_err();
        assert!(problem.contains("loadBalancers") && problem.contains("match.kind"), "{problem}");
        assert!(serde_json::from_str::<Match>(r#"{"knd": "x"}"#).unwrap_err().to_string().contains("kind"));
    }
}
