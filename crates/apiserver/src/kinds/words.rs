//! How names, labels and keys must look, in the words of the real server.

/// What is wrong with a name of a label's length: a namespace, a service, a container.
pub(crate) fn label_1123(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 63);
    if !is_label(name) {
        problems.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
             start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with the name of most objects.
pub(crate) fn subdomain_1123(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 253);
    if !name.split('.').all(is_label) {
        problems.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
             and must start and end with an alphanumeric character (e.g. 'example.com', regex used for \
             validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with a name that only has to fit into a path: roles and their bindings.
pub(crate) fn path_segment(name: &str) -> Vec<String> {
    match name {
        "." | ".." => vec![format!("may not be '{name}'")],
        _ => ['/', '%']
            .iter()
            .filter(|sign| name.contains(**sign))
            .map(|sign| format!("may not contain '{sign}'"))
            .collect(),
    }
}

/// What is wrong with the key of a label or an annotation, or a finalizer.
pub(crate) fn qualified_name(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut problems = Vec::new();
    if name.contains('/') {
        problems.push(
            "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and \
             end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
             and '/' (e.g. 'example.com/MyName')"
                .to_owned(),
        );
        return problems;
    }
    match prefix {
        Some("") => problems.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            problems.extend(subdomain_1123(prefix).into_iter().map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else {
        problems.extend(too_long(name, 63).into_iter().map(|why| format!("name part {why}")));
    }
    if !is_mixed(name) {
        problems.push(
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with \
             an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
             validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut problems: Vec<String> =
        too_long(value, 63).iter().map(|why| why.replace("characters", "bytes")).collect();
    if !value.is_empty() && !is_mixed(value) {
        problems.push(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
             and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or \
             '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with a key of a config map or a secret.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    let mut problems = too_long(key, 253);
    let fits = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    if key.is_empty() || !key.chars().all(fits) {
        problems.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
             or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    problems
}

/// What is wrong with the name of a port, as a target port says it.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut problems = too_long(name, 15);
    if !name.chars().all(|sign| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-') {
        problems.push("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)".to_owned());
    }
    if !name.chars().any(|sign| sign.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// What is wrong with a port's number.
pub(crate) fn port_number(port: i64) -> Option<&'static str> {
    (!(1..=65_535).contains(&port)).then_some("must be between 1 and 65535, inclusive")
}

fn too_long(text: &str, most: usize) -> Vec<String> {
    if text.len() > most { vec![format!("must be no more than {most} characters")] } else { Vec::new() }
}

fn is_label(text: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit();
    text.starts_with(fits) && text.ends_with(fits) && text.chars().all(|sign| fits(sign) || sign == '-')
}

fn is_mixed(text: &str) -> bool {
    let fits = |sign: char| sign.is_ascii_alphanumeric();
    text.starts_with(fits)
        && text.ends_with(fits)
        && text.chars().all(|sign| fits(sign) || matches!(sign, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_good_and_bad_as_the_real_server_does() {
        for good in ["a", "1x", "my-name"] {
            assert!(label_1123(good).is_empty(), "{good}");
        }
        for bad in ["", "A", "-a", "a-", "a.b", "a_b", &"a".repeat(64)] {
            assert!(!label_1123(bad).is_empty(), "{bad}");
        }
        assert!(subdomain_1123("a.b-c.d").is_empty());
        assert!(!subdomain_1123("a..b").is_empty());
        assert!(qualified_name("example.com/My_Name.x").is_empty());
        for bad in ["/x", "x/", "a b", "A.com/x", "a/b/c"] {
            assert!(!qualified_name(bad).is_empty(), "{bad}");
        }
        assert!(label_value("").is_empty() && !label_value("-x").is_empty());
        assert_eq!(port_name("toolong-toolong-toolong"), ["must be no more than 15 characters"]);
        assert_eq!(port_name("a--b"), ["must not contain consecutive hyphens"]);
    }
}
