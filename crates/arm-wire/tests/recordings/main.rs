//! Azure's own words: recorded traffic, which we would have sent and do understand.
//!
//! The recordings are beside the repository and never part of it, so the test is run by name only:
//! `cargo test -p sluice-arm-wire --test recordings -- --ignored`.

mod answers;
mod requests;
mod tape;

use std::collections::BTreeMap;

use tape::Interaction;

/// What is counted, per file and in all.
type Counts = BTreeMap<&'static str, usize>;

#[test]
#[ignore = "needs the recordings in ../shared/azure-recordings, beside the repository"]
fn every_recorded_request_is_one_that_we_would_send_and_every_answer_is_understood() {
    let tapes = tape::all();
    let mut differences = requests::Differences::default();
    let mut in_all = Counts::new();
    for (file, interactions) in &tapes {
        let mut counts = Counts::new();
        for interaction in interactions {
            let at = format!("{file} {}: {} {}", interaction.id, interaction.method, interaction.url);
            let request = requests::request(interaction);
            let kinds = [
                requests::check(&at, interaction, &request, &mut differences),
                answers::check(&at, interaction, &request),
            ];
            for kind in kinds {
                *counts.entry(kind).or_default() += 1;
            }
        }
        println!("{file}: {} exchanges: {}", interactions.len(), words(&counts));
        assert!(interactions.len() >= 15, "{file} has hardly anything in it");
        for (kind, count) in counts {
            *in_all.entry(kind).or_default() += count;
        }
    }
    println!("in all: {}", words(&in_all));
    differences.are_all_needed();
    for kind in requests::KINDS.iter().chain(answers::KINDS) {
        assert!(in_all.contains_key(kind), "no recording shows {kind}");
    }
}

fn words(counts: &Counts) -> String {
    counts.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ")
}

/// The first value of a header of the answer, whatever the case of its name.
fn header<'a>(interaction: &'a Interaction, name: &str) -> Option<&'a str> {
    let mut headers = interaction.answer_headers.iter();
    headers.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}
