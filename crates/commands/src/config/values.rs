//! The kinds of values that a key can have: how each is read from text, and how it is written.
//!
//! What is written can be read again and gives the same value, so that `--print-config` can be pasted
//! into a file. A refusal says what is allowed, because the person who reads it has the file open.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::fmt::friendly::{Spacing, SpanPrinter};
use sluice_arm::{Cloud, Secret};
use sluice_engine::{DefaultOutbound, GatewayMode};

/// What somebody wrote.
pub(crate) enum Given {
    /// One value.
    Text(String),
    /// Several.
    List(Vec<String>),
    /// Keys with values.
    Section,
}

impl Given {
    /// Whether it says nothing.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Given::Text(text) => text.trim().is_empty(),
            Given::List(words) => words.is_empty(),
            Given::Section => false,
        }
    }
}

/// One kind of value.
pub(crate) trait Setting: Sized {
    /// Whether it must not be seen.
    const SECRET: bool = false;

    /// What it is called in the reference.
    fn kind() -> String {
        Self::allowed()
    }

    /// What is allowed, to stand behind "must be".
    fn allowed() -> String;

    /// Reads one value.
    fn read(text: &str) -> Result<Self, String>;

    /// Reads what was given; only lists have more than one value.
    fn read_given(given: &Given) -> Result<Self, String> {
        match given {
            Given::Text(text) => Self::read(text),
            Given::List(_) => Err(format!("is a list; it must be {}", Self::allowed())),
            Given::Section => Err(format!("is a section; it must be {}", Self::allowed())),
        }
    }

    /// Writes it so that it can be read again.
    fn write(&self) -> String;

    /// What stands for "nothing was said", if that can be.
    fn nothing() -> Option<Self> {
        None
    }

    /// Whether it lies between two others; true for kinds without an order.
    fn is_within(&self, _least: &str, _most: &str) -> bool {
        true
    }
}

fn wrong<T: Setting>() -> String {
    format!("must be {}", T::allowed())
}

impl Setting for String {
    fn allowed() -> String {
        "text".to_owned()
    }

    fn read(text: &str) -> Result<String, String> {
        match text.contains(char::is_control) {
            true => Err("must be text without line breaks and other control characters".to_owned()),
            false => Ok(text.trim().to_owned()),
        }
    }

    fn write(&self) -> String {
        self.clone()
    }

    fn nothing() -> Option<String> {
        Some(String::new())
    }
}

impl Setting for PathBuf {
    fn kind() -> String {
        "path".to_owned()
    }

    fn allowed() -> String {
        "a file path".to_owned()
    }

    fn read(text: &str) -> Result<PathBuf, String> {
        String::read(text).map(PathBuf::from)
    }

    fn write(&self) -> String {
        self.display().to_string()
    }
}

impl Setting for Secret {
    const SECRET: bool = true;

    fn kind() -> String {
        "secret".to_owned()
    }

    fn allowed() -> String {
        "a secret, as text".to_owned()
    }

    fn read(text: &str) -> Result<Secret, String> {
        Ok(Secret::new(text))
    }

    fn write(&self) -> String {
        "(redacted)".to_owned()
    }
}

impl<T: Setting> Setting for Option<T> {
    const SECRET: bool = T::SECRET;

    fn kind() -> String {
        T::kind()
    }

    fn allowed() -> String {
        T::allowed()
    }

    fn read(text: &str) -> Result<Option<T>, String> {
        T::read(text).map(Some)
    }

    fn write(&self) -> String {
        self.as_ref().map(T::write).unwrap_or_default()
    }

    fn nothing() -> Option<Option<T>> {
        Some(None)
    }

    fn is_within(&self, least: &str, most: &str) -> bool {
        self.as_ref().is_none_or(|value| value.is_within(least, most))
    }
}

impl Setting for Vec<String> {
    fn kind() -> String {
        "list".to_owned()
    }

    fn allowed() -> String {
        "a list, or comma-separated words".to_owned()
    }

    fn read(text: &str) -> Result<Vec<String>, String> {
        String::read(text)?;
        Ok(text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect())
    }

    fn read_given(given: &Given) -> Result<Vec<String>, String> {
        match given {
            Given::Text(text) => Self::read(text),
            Given::List(words) => match words.iter().find(|word| word.contains(',')) {
                Some(_) => Err("contains an item with a comma; write each item separately".to_owned()),
                None => Self::read(&words.join(",")),
            },
            Given::Section => Err(format!("is a section; it {}", wrong::<Self>())),
        }
    }

    fn write(&self) -> String {
        self.join(",")
    }

    fn nothing() -> Option<Vec<String>> {
        Some(Vec::new())
    }
}

impl Setting for bool {
    fn allowed() -> String {
        "true or false".to_owned()
    }

    fn read(text: &str) -> Result<bool, String> {
        match text.trim().to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(wrong::<bool>()),
        }
    }

    fn write(&self) -> String {
        self.to_string()
    }
}

/// Whole numbers and addresses: what Rust reads and writes will do.
macro_rules! plain {
    ($($type:ty: $kind:literal, $allowed:literal;)*) => {$(
        impl Setting for $type {
            fn kind() -> String {
                $kind.to_owned()
            }

            fn allowed() -> String {
                $allowed.to_owned()
            }

            fn read(text: &str) -> Result<$type, String> {
                text.trim().parse().map_err(|_| wrong::<$type>())
            }

            fn write(&self) -> String {
                self.to_string()
            }

            fn is_within(&self, least: &str, most: &str) -> bool {
                is_between(self, least, most)
            }
        }
    )*};
}

plain! {
    u32: "number", "a whole number";
    usize: "number", "a whole number";
    SocketAddr: "IP address and port", "an IP address and a port, like 127.0.0.1:8082 or [::1]:8082";
}

fn is_between<T: Setting + PartialOrd>(value: &T, least: &str, most: &str) -> bool {
    let bound = |text: &str| T::read(text).ok();
    bound(least).is_none_or(|least| *value >= least) && bound(most).is_none_or(|most| *value <= most)
}

impl Setting for Duration {
    fn kind() -> String {
        "duration".to_owned()
    }

    fn allowed() -> String {
        "a duration with a unit, like 500ms, 90s, 15m, 1h or 1h30m".to_owned()
    }

    fn read(text: &str) -> Result<Duration, String> {
        let text = text.trim();
        if text == "0" {
            return Ok(Duration::ZERO);
        }
        let read = text.parse::<SignedDuration>().ok().and_then(|it| Duration::try_from(it).ok());
        // Nothing here is finer than a millisecond.
        read.filter(|it| it.subsec_nanos().is_multiple_of(1_000_000)).ok_or_else(wrong::<Duration>)
    }

    fn write(&self) -> String {
        let read = SignedDuration::try_from(*self).unwrap_or(SignedDuration::MAX);
        SpanPrinter::new().spacing(Spacing::None).duration_to_string(&read)
    }

    fn is_within(&self, least: &str, most: &str) -> bool {
        is_between(self, least, most)
    }
}

/// A part of a whole, exact to a thousandth.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Share {
    /// In thousandths.
    pub permille: u32,
}

impl Setting for Share {
    fn kind() -> String {
        "share".to_owned()
    }

    fn allowed() -> String {
        "a share, like 80% or 0.8".to_owned()
    }

    fn read(text: &str) -> Result<Share, String> {
        let text = text.trim();
        let (number, whole, decimals) = match text.strip_suffix('%') {
            Some(number) => (number.trim_end(), 10, 1),
            None => (text, 1_000, 3),
        };
        let (before, behind) = number.split_once('.').unwrap_or((number, "0"));
        let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_digits(before) || !is_digits(behind) || behind.len() > decimals {
            return Err(wrong::<Share>());
        }
        let fraction = format!("{behind:0<decimals$}").parse::<u32>().map_err(|_| wrong::<Share>())?;
        before
            .parse::<u32>()
            .ok()
            .and_then(|it| it.checked_mul(whole))
            .and_then(|it| it.checked_add(fraction))
            .map(|permille| Share { permille })
            .ok_or_else(wrong::<Share>)
    }

    fn write(&self) -> String {
        match (self.permille / 10, self.permille % 10) {
            (percent, 0) => format!("{percent}%"),
            (percent, tenth) => format!("{percent}.{tenth}%"),
        }
    }

    fn is_within(&self, least: &str, most: &str) -> bool {
        is_between(self, least, most)
    }
}

/// The route target addresses of a gateway: none, one, or one of each family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RouteTargets {
    /// That of IPv4.
    pub v4: Option<Ipv4Addr>,
    /// That of IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Setting for RouteTargets {
    fn kind() -> String {
        "IP address, or one of each family".to_owned()
    }

    fn allowed() -> String {
        "an IP address, or one of each family, like 10.0.0.4 or 10.0.0.4,fd00::4".to_owned()
    }

    fn read(text: &str) -> Result<RouteTargets, String> {
        let mut targets = RouteTargets::default();
        for word in text.split(',') {
            let address = word.trim().parse::<IpAddr>().map_err(|_| wrong::<RouteTargets>())?;
            let former = match address.to_canonical() {
                IpAddr::V4(address) => targets.v4.replace(address).map(IpAddr::V4),
                IpAddr::V6(address) => targets.v6.replace(address).map(IpAddr::V6),
            };
            if former.is_some() {
                return Err(
                    "contains two addresses of one family; a gateway has at most one of each".to_owned()
                );
            }
        }
        Ok(targets)
    }

    fn read_given(given: &Given) -> Result<RouteTargets, String> {
        match given {
            Given::Text(text) => Self::read(text),
            Given::List(words) => Self::read(&words.join(",")),
            Given::Section => Err(format!("is a section; it {}", wrong::<RouteTargets>())),
        }
    }

    fn write(&self) -> String {
        let addresses = [self.v4.map(IpAddr::V4), self.v6.map(IpAddr::V6)];
        let words: Vec<String> = addresses.iter().flatten().map(ToString::to_string).collect();
        words.join(",")
    }

    fn nothing() -> Option<RouteTargets> {
        Some(RouteTargets::default())
    }
}

/// How log lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for collectors.
    Json,
}

/// A choice between a few words.
macro_rules! words {
    ($($type:ty { $($word:literal = $value:path),+ })+) => {$(
        impl Setting for $type {
            fn allowed() -> String {
                [$($word),+].join(" or ")
            }

            fn read(text: &str) -> Result<$type, String> {
                match text.trim() {
                    $(word if word.eq_ignore_ascii_case($word) => Ok($value),)+
                    _ => Err(wrong::<$type>()),
                }
            }

            fn write(&self) -> String {
                match self {
                    $($value => $word.to_owned(),)+
                }
            }
        }
    )+};
}

words! {
    GatewayMode { "ensure" = GatewayMode::Ensure, "verify" = GatewayMode::Verify }
    DefaultOutbound { "ensure" = DefaultOutbound::Ensure, "leave" = DefaultOutbound::Leave }
    LogFormat { "text" = LogFormat::Text, "json" = LogFormat::Json }
    Cloud {
        "AzurePublicCloud" = Cloud::Public,
        "AzureChinaCloud" = Cloud::China,
        "AzureUSGovernmentCloud" = Cloud::UsGovernment
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refuses<T: Setting>(texts: &[&str]) {
        for text in texts {
            assert!(T::read(text).is_err(), "{text:?} was read as {}", T::read(text).unwrap().write());
        }
    }

    fn rewrites<T: Setting>(pairs: &[(&str, &str)]) {
        for (text, written) in pairs {
            let value = T::read(text).unwrap_or_else(|problem| panic!("{text:?} {problem}"));
            assert_eq!(value.write(), *written, "{text:?}");
            assert_eq!(T::read(written).unwrap().write(), *written, "{text:?}");
        }
    }

    #[test]
    fn a_time_has_a_unit_and_is_written_in_the_longest_ones() {
        // These forms are documented, or were read by the parser of earlier versions.
        rewrites::<Duration>(&[
            ("500ms", "500ms"),
            ("90s", "1m30s"),
            ("15m", "15m"),
            ("1h", "1h"),
            ("1h30m", "1h30m"),
            ("168h", "168h"),
            ("900s", "15m"),
            ("0", "0s"),
            ("0s", "0s"),
            (" 2s ", "2s"),
            ("1500ms", "1s500ms"),
            ("1h2m3s4ms", "1h2m3s4ms"),
        ]);
        // These are read, too.
        rewrites::<Duration>(&[
            ("1h 30m", "1h30m"),
            ("15 minutes", "15m"),
            ("1.5h", "1h30m"),
            ("PT1H30M", "1h30m"),
        ]);
        refuses::<Duration>(&["", "15", "m", "-1s", "1s ago", "1d", "s1", "1us", "0.1ms", "x"]);
        refuses::<Duration>(&["99999999999999999999h", "18446744073709551615h", "1h,30m,", "P1D"]);
    }

    #[test]
    fn a_share_is_a_part_or_a_percentage() {
        rewrites::<Share>(&[
            ("0.8", "80%"),
            ("80%", "80%"),
            ("0.125", "12.5%"),
            ("1", "100%"),
            ("12.5 %", "12.5%"),
        ]);
        refuses::<Share>(&["", "%", "0,8", ".8", "80.55%", "0.8888", "-1%", "99999999999%"]);
    }

    #[test]
    fn a_route_target_is_one_address_or_one_of_each_family() {
        rewrites::<RouteTargets>(&[
            ("10.0.0.4", "10.0.0.4"),
            ("fd00:0::4", "fd00::4"),
            ("fd00::4, 10.0.0.4", "10.0.0.4,fd00::4"),
            ("::ffff:10.0.0.4", "10.0.0.4"),
        ]);
        refuses::<RouteTargets>(&["", "ten", "10.0.0.4,", "10.0.0.4,10.0.0.5", "fd00::4,fd00::5"]);
        let list = Given::List(vec!["10.0.0.4".into(), "fd00::4".into()]);
        assert_eq!(RouteTargets::read_given(&list), RouteTargets::read("10.0.0.4,fd00::4"));
    }

    #[test]
    fn the_words_of_the_clouds_are_those_of_the_client() {
        for cloud in Cloud::ALL {
            assert_eq!(Cloud::read(cloud.name()), Ok(cloud));
            assert_eq!(cloud.write(), cloud.name());
        }
        assert_eq!(GatewayMode::read("Verify"), Ok(GatewayMode::Verify));
        refuses::<GatewayMode>(&["", "make", "ensure verify"]);
    }

    #[test]
    fn true_and_false_may_be_strings_as_azure_writes_them() {
        for text in ["true", "True", " TRUE "] {
            assert_eq!(bool::read(text), Ok(true));
        }
        refuses::<bool>(&["", "yes", "1", "on"]);
    }

    #[test]
    fn a_list_is_a_list_or_words_with_commas() {
        let words = |given: Given| Vec::<String>::read_given(&given);
        let expected: Vec<String> = vec!["a".into(), "b".into()];
        assert_eq!(words(Given::Text("a, b,".into())), Ok(expected.clone()));
        assert_eq!(words(Given::List(expected.clone())), Ok(expected));
        assert!(words(Given::List(vec!["a,b".into()])).is_err());
        assert!(words(Given::Section).is_err());
    }
}
