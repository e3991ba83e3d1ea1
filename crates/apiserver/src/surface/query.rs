//! What stands behind the question mark.

use percent_encoding::percent_decode_str;

use crate::refusal::Refusal;

/// The parameters of a request; the last of a name counts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    pub(crate) fn parse(query: &str) -> Query {
        let decode = |part: &str| {
            let spaced = part.replace('+', " ");
            percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Query(pairs.collect())
    }

    /// A parameter; empty if it is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().rev().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(it, _)| it == name)
    }

    /// Whether a switch is on, as Go reads it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.text(name), "false" | "0" | "False" | "f" | "F" | "FALSE")
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Refusal> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Refusal::bad_request(format!("strconv.ParseInt: parsing \"{text}\": invalid syntax"))
            }),
        }
    }

    /// All values of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_the_last_of_a_name_counts() {
        let query = Query::parse("labelSelector=app%3Dweb%2Ctier+in+%28a%29&watch=1&limit=5&limit=7&x");
        assert_eq!(query.text("labelSelector"), "app=web,tier in (a)");
        assert!(query.flag("watch") && query.has("x") && !query.flag("y"));
        assert_eq!(query.number("limit").unwrap(), Some(7));
        assert!(Query::parse("limit=x").number("limit").is_err());
        assert!(!Query::parse("watch=false").flag("watch"));
    }
}
