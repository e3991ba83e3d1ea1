//! Every metric of the controller, from one table.
//!
//! `TABLE` has a row for each: name, type, labels with all words they can have, help, the name in
//! the design documents if it has one there, and a function that reads it from `Facts`. The
//! scrape, `docs/reference/metrics.md` and the tests are made from the rows, so they cannot disagree.
//!
//! Nothing is counted here but calls to Azure. The engine, the updaters and the loop have counted
//! already; a scrape asks the loop once and writes down what it says.
//!
//! Missing on purpose: a label with the name of a service, a namespace, a node or anything else that
//! people chose. Labels are fixed words, so the number of series does not grow with the cluster;
//! `/api/v1/services` has the names.

mod calls;
mod encode;
mod facts;
mod read;
mod reference;
mod table;

pub use calls::Calls;
pub use reference::reference;

pub(crate) use facts::Facts;
pub(crate) use table::TABLE;

use sluice_engine::counters::BUCKET_BOUNDS_MS;
use sluice_engine::{Histogram, State};
use sluice_model::kube::Kind as Watched;
use sluice_model::reason::Reason;

use crate::admin::{Room, Silence, kind_word};

/// What stands before every name.
pub(crate) const PREFIX: &str = "sluice";

/// One row of the table.
pub(crate) struct Metric {
    /// Without the prefix; a counter's ends with `_total`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) labels: &'static [Label],
    /// One sentence without a full stop.
    pub(crate) help: &'static str,
    /// What the design documents call it.
    pub(crate) origin: Option<&'static str>,
    pub(crate) read: fn(&Facts) -> Vec<Series>,
}

/// The type of a metric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Counter,
    Gauge,
    Histogram,
    /// Always 1; its labels say something about the process.
    Info,
}

impl Kind {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// A label and every word that it can have.
pub(crate) struct Label {
    pub(crate) name: &'static str,
    pub(crate) words: fn() -> Vec<&'static str>,
}

/// One series of a metric.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Series {
    /// One word for each label of the row, in its order.
    pub(crate) labels: Vec<&'static str>,
    pub(crate) value: Value,
}

/// What a series says.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Histogram),
}

/// What `/metrics` says now.
pub(crate) async fn scrape(room: &Room) -> Result<String, Silence> {
    Ok(encode::text(&Facts::gather(room).await?))
}

/// The bounds of all histograms, in seconds.
fn bounds_seconds() -> impl Iterator<Item = f64> {
    BUCKET_BOUNDS_MS.iter().map(|ms| *ms as f64 / 1_000.0)
}

fn states() -> Vec<&'static str> {
    State::ALL.map(State::word).to_vec()
}

fn reasons() -> Vec<&'static str> {
    Reason::ALL.map(Reason::word).to_vec()
}

fn watched() -> Vec<&'static str> {
    Watched::ALL.map(kind_word).to_vec()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use expect_test::expect_file;

    use super::*;

    /// The names of `spec/1-product.md`, "What must be observable", and what else it asks for there.
    const ASKED_FOR: &[&str] = &[
        "service_creation_duration_seconds",
        "service_deletion_duration_seconds",
        "endpoint_buffer_duration_seconds",
        "pod_buffer_duration_seconds",
        "locations_sync_duration_seconds",
        "service_creation_failures_total",
        "pod_promotion_total",
        "pod_promotion_failures_total",
        "buffered_endpoints",
        "buffered_pods",
        "pending_deletions",
        "service_updater_operations_active",
        "addresses_desired",
        "addresses_programmed",
        "arm_calls_total",
        "budget_window_used_ratio",
        "throttled_seconds_total",
        "parked_services",
        "quarantined_addresses",
        "drift_found_total",
        "drift_repaired_total",
        "orphans_found_total",
        "orphans_removed_total",
        "service_change_to_programmed_seconds",
        "address_change_to_programmed_seconds",
        "initial_sync_done",
        "leader",
        "process_start_time_seconds",
        "build_info",
    ];

    #[test]
    fn every_metric_that_was_asked_for_has_a_row() {
        let rows: BTreeSet<&str> = TABLE.iter().map(|row| row.name).collect();
        let missing: Vec<_> = ASKED_FOR.iter().filter(|name| !rows.contains(**name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(rows.len(), TABLE.len(), "a name stands twice");
    }

    #[test]
    fn names_follow_the_rules_of_openmetrics() {
        for row in TABLE {
            let name = row.name;
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
            assert_eq!(row.kind == Kind::Counter, name.ends_with("_total"), "{name}");
            assert_eq!(row.kind == Kind::Info, name.ends_with("_info"), "{name}");
            assert!(!row.help.contains(['\n', '"', '\\']), "{name}: {}", row.help);
        }
    }

    /// The longest help of a metric.
    const HELP_MAX: usize = 90;

    #[test]
    fn every_help_is_short_starts_with_a_capital_and_has_no_period() {
        for row in TABLE {
            let (name, help) = (row.name, row.help);
            assert!(help.chars().count() <= HELP_MAX, "{name}: {help}");
            assert!(help.starts_with(char::is_uppercase) && !help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn no_label_has_a_word_that_is_not_in_its_list() {
        for facts in [Facts::of_nothing(), Facts::of_everything()] {
            for row in TABLE {
                for series in (row.read)(&facts) {
                    assert_eq!(series.labels.len(), row.labels.len(), "{}", row.name);
                    for (label, word) in row.labels.iter().zip(&series.labels) {
                        assert!((label.words)().contains(word), "{}: {}={word}", row.name, label.name);
                    }
                }
            }
        }
    }

    #[test]
    fn every_row_has_series_when_there_is_something_to_tell() {
        let facts = Facts::of_everything();
        for row in TABLE {
            let series = (row.read)(&facts);
            assert!(!series.is_empty(), "{}", row.name);
            let labels: BTreeSet<_> = series.iter().map(|it| it.labels.clone()).collect();
            assert_eq!(labels.len(), series.len(), "{} has a series twice", row.name);
            for it in &series {
                let fits = matches!(
                    (row.kind, &it.value),
                    (Kind::Histogram, Value::Histogram(_))
                        | (Kind::Counter | Kind::Gauge | Kind::Info, Value::Whole(_) | Value::Real(_))
                );
                assert!(fits, "{}: {:?}", row.name, it.value);
            }
        }
    }

    /// Name, labels and value.
    type Sample = (String, String, f64);

    /// A reader of the text format that knows nothing of who writes it: name → type, and the samples.
    fn parsed(text: &str) -> (BTreeMap<String, String>, Vec<Sample>) {
        let (mut types, mut samples) = (BTreeMap::new(), Vec::new());
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(
                    types.insert(name.to_owned(), kind.to_owned()).is_none(),
                    "{name} is described twice"
                );
            } else if line == "# EOF" {
                assert_eq!(lines.peek(), None, "nothing comes after the end");
                return (types, samples);
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
                samples.push((name.into(), labels.strip_suffix('}').unwrap().into(), value.parse().unwrap()));
            }
        }
        panic!("the text does not end");
    }

    #[test]
    fn the_text_parses_and_has_every_row_and_every_sample_belongs_to_one() {
        let text = encode::text(&Facts::of_everything());
        let (types, samples) = parsed(&text);
        for row in TABLE {
            let name = format!("{PREFIX}_{}", row.name);
            let family = name.strip_suffix("_total").or(name.strip_suffix("_info")).unwrap_or(&name);
            assert_eq!(types.get(family).map(String::as_str), Some(row.kind.word()), "{name}");
            let sample = if row.kind == Kind::Histogram { format!("{name}_count") } else { name.clone() };
            assert!(samples.iter().any(|(it, ..)| *it == sample), "{sample} has no sample in\n{text}");
        }
        assert_eq!(types.len(), TABLE.len());
    }

    #[test]
    fn histograms_are_cumulative_and_end_with_everything() {
        let text = encode::text(&Facts::of_everything());
        let (_, samples) = parsed(&text);
        let name = "sluice_locations_sync_duration_seconds";
        let buckets: Vec<f64> =
            samples.iter().filter(|(it, ..)| *it == format!("{name}_bucket")).map(|it| it.2).collect();
        assert_eq!(buckets.len(), BUCKET_BOUNDS_MS.len() + 1);
        assert!(buckets.is_sorted());
        let of = |suffix: &str| samples.iter().find(|(it, ..)| *it == format!("{name}_{suffix}")).unwrap().2;
        assert_eq!(*buckets.last().unwrap(), of("count"));
        assert!(of("sum") > 0.0);
        assert!(text.contains("_bucket{le=\"+Inf\"}"));
    }

    #[test]
    fn the_reference_is_as_the_table_says() {
        expect_file!["../../../docs/reference/metrics.md"].assert_eq(&reference());
    }
}
