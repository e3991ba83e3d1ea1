//! Small pieces of text that all pages share.

use sluice_view::State;

/// A number and its noun: `1 object`, `2 objects`.
pub(crate) fn count(many: u64, one: &str, more: &str) -> String {
    format!("{} {}", grouped(many), if many == 1 { one } else { more })
}

/// A number with its thousands apart: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Services and egresses in one phrase: `2 Services and 1 egress`.
pub(crate) fn both(services: u64, egresses: u64) -> String {
    match (services, egresses) {
        (services, 0) => count(services, "Service", "Services"),
        (0, egresses) => count(egresses, "egress", "egresses"),
        (services, egresses) => {
            format!(
                "{} and {}",
                count(services, "Service", "Services"),
                count(egresses, "egress", "egresses")
            )
        }
    }
}

/// A start-up phase in words; a phase that this page does not know is shown by its name.
pub(crate) fn phase(word: &str) -> String {
    match word {
        "reading-kubernetes" => "listing Kubernetes".into(),
        "reading-azure" => "listing Azure".into(),
        "gateway" => "preparing the gateway".into(),
        "initial-sync" => "applying changes".into(),
        other => other.replace('-', " "),
    }
}

/// A text with a full stop at its end.
pub(crate) fn ended(text: &str) -> String {
    let text = text.trim_end();
    if text.ends_with(['.', '!', '?']) { text.into() } else { format!("{text}.") }
}

/// A part of a URL, with everything but plain letters, digits and a few marks escaped.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => escaped.push(byte.into()),
            other => escaped.push_str(&format!("%{other:02X}")),
        }
    }
    escaped
}

/// The class of a state in the style sheet.
pub(crate) const fn state_class(state: State) -> &'static str {
    match state {
        State::NotStarted => "is-idle",
        State::CreationInProgress | State::UpdateInProgress => "is-busy",
        State::Created => "is-fine",
        State::DeletionPending | State::DeletionInProgress => "is-leaving",
        State::Unknown => "is-idle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_their_nouns_and_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(both(1, 0), "1 Service");
        assert_eq!(both(0, 1), "1 egress");
        assert_eq!(both(2, 3), "2 Services and 3 egresses");
    }

    #[test]
    fn nothing_can_leave_its_part_of_a_url() {
        assert_eq!(escaped("shop-1.x_~"), "shop-1.x_~");
        assert_eq!(escaped("a/b?c&d \"<"), "a%2Fb%3Fc%26d%20%22%3C");
        assert_eq!(escaped("ä"), "%C3%A4");
    }
}
