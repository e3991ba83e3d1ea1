//! The table as OpenMetrics text.
//!
//! The values come as plain data, so there are no metrics to register, only one collector that
//! writes all rows at once.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::exemplar::Exemplar;
use prometheus_client::registry::Registry;

use super::{Facts, Kind, PREFIX, Series, TABLE, Value, bounds_seconds};

/// What `/metrics` says about these facts.
pub(super) fn text(facts: &Facts) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(Rows(read(facts))));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("a string takes everything");
    text
}

fn read(facts: &Facts) -> Vec<Vec<Series>> {
    TABLE.iter().map(|row| (row.read)(facts)).collect()
}

/// All series of all rows, in the order of the table.
#[derive(Debug)]
struct Rows(Vec<Vec<Series>>);

impl Collector for Rows {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        for (row, all) in TABLE.iter().zip(&self.0) {
            // The encoder writes these two endings by itself.
            let ending = match row.kind {
                Kind::Counter => "_total",
                Kind::Info => "_info",
                Kind::Gauge | Kind::Histogram => "",
            };
            let family = row.name.strip_suffix(ending).unwrap_or(row.name);
            let kind = match row.kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
                Kind::Info => MetricType::Info,
            };
            let mut metric = encoder.encode_descriptor(family, row.help, None, kind)?;
            for series in all {
                let labels: Vec<(&str, &str)> =
                    row.labels.iter().map(|label| label.name).zip(series.labels.iter().copied()).collect();
                match row.kind {
                    Kind::Info => metric.encode_info(&labels)?,
                    kind if labels.is_empty() => write(&mut metric, kind, &series.value)?,
                    kind => write(&mut metric.encode_family(&labels)?, kind, &series.value)?,
                }
            }
        }
        Ok(())
    }
}

fn write(metric: &mut MetricEncoder<'_>, kind: Kind, value: &Value) -> Result<(), fmt::Error> {
    const NO_EXEMPLAR: Option<&Exemplar<NoLabelSet, f64>> = None;
    match (kind, value) {
        (Kind::Counter, Value::Whole(value)) => metric.encode_counter(value, NO_EXEMPLAR),
        (Kind::Counter, Value::Real(value)) => metric.encode_counter(value, NO_EXEMPLAR),
        (_, Value::Whole(value)) => metric.encode_gauge(value),
        (_, Value::Real(value)) => metric.encode_gauge(value),
        (_, Value::Histogram(histogram)) => {
            let bounds = bounds_seconds().chain([f64::INFINITY]);
            let buckets: Vec<(f64, u64)> = bounds.zip(histogram.buckets).collect();
            let sum = histogram.sum_ms as f64 / 1_000.0;
            metric.encode_histogram::<NoLabelSet>(sum, histogram.count, &buckets, None)
        }
    }
}
