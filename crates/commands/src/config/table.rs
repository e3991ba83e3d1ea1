//! One row per key, and everything that is made from the rows.
//!
//! A section is written once, with [`section!`]: its struct is the typed form, its rows say path, kind,
//! default and meaning. The known keys, the variables of the environment, `--print-config` and the
//! reference in `docs/` come from them, so no second list can fall behind.

use std::collections::BTreeMap;

use super::origin::Origin;
use super::problems::Problem;
use super::values::{Given, Setting};

/// What holds when nobody says anything.
#[derive(Clone, Copy)]
pub(crate) enum Default {
    /// This.
    Is(&'static str),
    /// Nothing, and what that means.
    Unset(&'static str),
    /// It must be said; where the value is to be found.
    Required(&'static str),
}

/// What a row knows beside its path and its kind.
#[derive(Clone, Copy)]
pub(crate) struct Traits {
    pub(crate) default: Default,
    pub(crate) bounds: Option<(&'static str, &'static str)>,
    pub(crate) check: Option<Check>,
    /// The variable that Azure's own libraries look at.
    pub(crate) ambient: Option<&'static str>,
    /// Whether an empty value is a mistake, and not the same as none.
    pub(crate) is_filled: bool,
}

/// Looks at a value as text; says what is wrong with it.
pub(crate) type Check = fn(&str) -> Result<(), String>;

pub(crate) const fn is(text: &'static str) -> Traits {
    Traits::new(Default::Is(text))
}

pub(crate) const fn unset(meaning: &'static str) -> Traits {
    Traits::new(Default::Unset(meaning))
}

pub(crate) const fn required(source: &'static str) -> Traits {
    Traits::new(Default::Required(source))
}

impl Traits {
    const fn new(default: Default) -> Traits {
        Traits { default, bounds: None, check: None, ambient: None, is_filled: false }
    }

    /// The least and the most that it may be.
    pub(crate) const fn within(self, least: &'static str, most: &'static str) -> Traits {
        Traits { bounds: Some((least, most)), ..self }
    }

    /// What else must hold.
    pub(crate) const fn checked(self, check: Check) -> Traits {
        Traits { check: Some(check), ..self }
    }

    /// An empty value is a mistake, and not the same as none.
    pub(crate) const fn filled(self) -> Traits {
        Traits { is_filled: true, ..self }
    }

    /// What Azure's own libraries call it in the environment.
    pub(crate) const fn ambient(self, variable: &'static str) -> Traits {
        Traits { ambient: Some(variable), ..self }
    }
}

/// Everything about one key.
pub(crate) struct Row {
    pub(crate) path: &'static str,
    /// What it means and why, line by line.
    pub(crate) meaning: &'static [&'static str],
    /// What kind of value it has.
    pub(crate) kind: String,
    pub(crate) is_secret: bool,
    pub(crate) traits: Traits,
}

impl Row {
    pub(crate) fn of<T: Setting>(
        path: &'static str,
        meaning: &'static [&'static str],
        traits: Traits,
    ) -> Row {
        Row { path, meaning, kind: T::kind(), is_secret: T::SECRET, traits }
    }

    /// Its twin in the environment, which each key below `sluice:` has.
    pub(crate) fn twin(&self) -> Option<String> {
        twin_of(self.path)
    }
}

/// The variable of the environment for a key below `sluice:`.
pub(crate) fn twin_of(path: &str) -> Option<String> {
    path.strip_prefix("sluice.").map(|path| format!("SLUICE_{}", screaming(path)))
}

/// `gateway.routeTargetAddress` as `GATEWAY_ROUTE_TARGET_ADDRESS`.
fn screaming(path: &str) -> String {
    let mut name = String::with_capacity(path.len() + 8);
    for letter in path.chars() {
        match letter {
            '.' => name.push('_'),
            letter if letter.is_ascii_uppercase() => {
                name.push('_');
                name.push(letter);
            }
            letter => name.push(letter.to_ascii_uppercase()),
        }
    }
    name
}

/// One value as it came out, for people. Never the text of a secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Value {
    /// Its key.
    pub key: &'static str,
    /// The value, as it would be written; nothing if it is not set.
    pub text: Option<String>,
    /// Whether it is a secret, and `text` only says so.
    pub is_secret: bool,
    /// Where it came from.
    pub origin: Origin,
    /// What it means not to be set.
    pub unset_means: Option<&'static str>,
}

/// What was said about a key at the place that counts most.
pub(crate) struct Said {
    pub(crate) given: Given,
    pub(crate) origin: Origin,
}

/// Gives each key its value, and keeps what is wrong.
pub(crate) struct Reader {
    said: BTreeMap<&'static str, Said>,
    /// How a place is called in messages.
    pub(crate) file: String,
    pub(crate) values: Vec<Value>,
    pub(crate) problems: Vec<Problem>,
}

impl Reader {
    pub(crate) fn new(said: BTreeMap<&'static str, Said>, file: String, problems: Vec<Problem>) -> Reader {
        Reader { said, file, values: Vec::new(), problems }
    }

    /// The value of one key: what was said, else its default. What cannot be used becomes a problem.
    pub(crate) fn take<T: Setting>(&mut self, path: &'static str, traits: Traits) -> T {
        let said = self.said.remove(path);
        let origin = said.as_ref().map_or(Origin::Default, |it| it.origin.clone());
        let default = || match traits.default {
            Default::Is(text) => T::read(text).ok(),
            Default::Unset(_) | Default::Required(_) => T::nothing(),
        };
        let value = match said {
            None => {
                if let Default::Required(source) = traits.default {
                    self.problems.push(Problem::new(path, format!("is missing; set it to {source}")));
                }
                default()
            }
            Some(said) => match read::<T>(&said.given, traits) {
                Ok(value) => Some(value),
                Err(what) => {
                    let problem = Problem::new(path, what).at(said.origin.place(&self.file));
                    self.problems.push(match &said.given {
                        Given::Text(text) if !T::SECRET => problem.saying(text),
                        _ => problem,
                    });
                    default()
                }
            },
        };
        let value = value.expect("each key has a valid default or may be unset; a test checks this");
        let text = Some(value.write()).filter(|text| !text.is_empty());
        let unset_means = match traits.default {
            Default::Unset(meaning) => Some(meaning),
            _ => None,
        };
        self.values.push(Value { key: path, text, is_secret: T::SECRET, origin, unset_means });
        value
    }
}

fn read<T: Setting>(given: &Given, traits: Traits) -> Result<T, String> {
    if given.is_empty() {
        return Err(format!("must not be empty; set it to {}, or remove the key", T::allowed()));
    }
    let value = T::read_given(given)?;
    if let Some((least, most)) = traits.bounds
        && !value.is_within(least, most)
    {
        return Err(format!("must be {least} to {most}"));
    }
    if let Some(check) = traits.check {
        check(&value.write())?;
    }
    Ok(value)
}

/// A part of the table that is one struct.
pub(crate) trait Section: Sized {
    /// Its rows, in order.
    fn rows() -> Vec<Row>;
    /// Its values.
    fn read(reader: &mut Reader) -> Self;
}

/// Writes a section down once: struct, rows and reading.
macro_rules! section {
    (
        $(#[$about:meta])*
        $name:ident {
            $( $(#[doc = $meaning:literal])+ $path:literal => $field:ident: $type:ty = $traits:expr; )*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Debug)]
        pub struct $name {
            $( $(#[doc = $meaning])+ pub $field: $type, )*
        }

        impl $crate::config::table::Section for $name {
            fn rows() -> Vec<$crate::config::table::Row> {
                vec![$( $crate::config::table::Row::of::<$type>($path, &[$($meaning),+], $traits), )*]
            }

            fn read(reader: &mut $crate::config::table::Reader) -> $name {
                $name { $( $field: reader.take::<$type>($path, $traits), )* }
            }
        }
    };
}

pub(crate) use section;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_twin_of_a_key_is_its_path_in_capitals() {
        assert_eq!(screaming("gateway.routeTargetAddress"), "GATEWAY_ROUTE_TARGET_ADDRESS");
        assert_eq!(screaming("concurrency"), "CONCURRENCY");
    }
}
