//! Whatever is in the file: a configuration, or a list of problems.

use proptest::prelude::*;

use super::{LEAST, load, load_with};
use crate::config::Config;
use crate::config::values::{Setting, Share};

fn any_path() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(Config::rows().iter().map(|row| row.path).collect::<Vec<_>>())
}

/// Pieces that parsers stumble over.
fn any_piece() -> impl Strategy<Value = String> {
    prop_oneof![
        proptest::sample::select(vec![
            "sluice:",
            "\n",
            "  ",
            "- ",
            "{",
            "}",
            "[",
            "]",
            ": ",
            ",",
            "\"",
            "'",
            "&a ",
            "*a",
            "!!str ",
            "|\n",
            ">\n",
            "? ",
            "---\n",
            "...\n",
            "\t",
            "#",
            "%YAML 1.2\n",
            "~",
            "null",
            "\u{feff}",
            "\\u12",
            "gateway",
            "name",
            "0x10",
            "1e9",
            "99999999999999999999",
            "-1",
            "\r\n",
            "<<: ",
            "@",
            "`",
            "\u{0}",
            "é",
        ])
        .prop_map(str::to_owned),
        any_path().prop_map(|path| format!("{path}: ")),
        "\\PC{0,8}",
    ]
}

proptest! {
    #[test]
    fn any_text_gives_an_answer(pieces in proptest::collection::vec(any_piece(), 0..40)) {
        let _ = load(&pieces.concat());
    }

    #[test]
    fn any_value_of_any_key_gives_an_answer(path in any_path(), value in "\\PC{0,24}") {
        let set = format!("{path}={value}");
        let _ = load_with(LEAST, &[], &[&set]);
    }

    #[test]
    fn what_is_written_is_read_again_as_it_was(milliseconds in 0..u64::MAX / 4, permille: u32) {
        let time = std::time::Duration::from_millis(milliseconds);
        prop_assert_eq!(std::time::Duration::read(&time.write()), Ok(time));
        let share = Share { permille };
        prop_assert_eq!(Share::read(&share.write()), Ok(share));
    }
}
