//! Curves of the last half hour, as SVG.
//!
//! The colours that are written into the SVG are only names: the style sheet finds them by their
//! attributes and puts those of the chosen theme in their place. What a curve says is also in the
//! caption, in words, for those who do not see it.

use maud::{Markup, PreEscaped, html};
use plotters::prelude::*;
use sluice_view::moment::span;

use crate::history::{History, Point, Sample};
use crate::words::grouped;

const WIDTH: u32 = 360;
const HEIGHT: u32 = 150;
/// How far back the axis reaches at least and at most, in minutes.
const MINUTES: (f64, f64) = (4.0, History::SPAN.as_secs() as f64 / 60.0);

/// The names of the colours: two curves, lines of the grid, words.
const CURVES: [RGBColor; 2] = [RGBColor(0x0A, 0x70, 0x6B), RGBColor(0x9A, 0x5B, 0x13)];
const GRID: RGBColor = RGBColor(0xDD, 0xE3, 0xE0);
const INK: RGBColor = RGBColor(0x5A, 0x67, 0x63);

/// What a value is, for the axis and the caption.
#[derive(Clone, Copy)]
enum Unit {
    Count,
    Milliseconds,
}

impl Unit {
    fn written(self, value: f64) -> String {
        match self {
            Unit::Count if value > 0.0 && value < 9.95 && value.fract() > 0.05 => format!("{value:.1}"),
            Unit::Count => grouped(value.round() as u64),
            Unit::Milliseconds if value == 0.0 => "0".into(),
            Unit::Milliseconds if value < 1_000.0 => format!("{} ms", value.round()),
            Unit::Milliseconds if value < 10_000.0 => format!("{:.1} s", value / 1_000.0),
            Unit::Milliseconds => span((value / 1_000.0).round() as u64),
        }
    }
}

struct Curve {
    /// What it is called in the caption.
    name: &'static str,
    points: Vec<Point>,
}

impl Curve {
    fn last(&self) -> f64 {
        self.points.last().map_or(0.0, |point| point.1)
    }
}

/// All charts.
pub(crate) fn charts(history: &History) -> Markup {
    let calls = [
        Curve { name: "reads per minute", points: history.per_minute(|sample| sample.reads) },
        Curve { name: "writes per minute", points: history.per_minute(|sample| sample.writes) },
    ];
    let buffer = [
        Curve { name: "addresses buffered", points: history.gauge(|sample| sample.buffered as f64) },
        Curve { name: "promoted per minute", points: history.per_minute(|sample| sample.promoted) },
    ];
    let latency = [
        Curve {
            name: "change to confirmation",
            points: history.mean(|sample| sample.confirmed_ms, |sample| sample.confirmed),
        },
        Curve { name: "per sync", points: history.mean(|sample| sample.syncs_ms, |sample| sample.syncs) },
    ];
    let queue = [
        Curve { name: "busy workers", points: history.gauge(|sample| sample.working as f64) },
        Curve {
            name: "waiting for a worker or budget",
            points: history.gauge(|sample| (sample.waiting + sample.queued) as f64),
        },
    ];
    html! {
        (figure("Calls and budget", Unit::Count, &calls, Some(&budget(history.last()))))
        (figure("Buffered and promoted", Unit::Count, &buffer, None))
        (figure("Sync latency", Unit::Milliseconds, &latency, None))
        (figure("Queue and workers", Unit::Count, &queue, None))
    }
}

fn budget(last: Option<&Sample>) -> Markup {
    let last = last.copied().unwrap_or_default();
    html! {
        div.budget {
            @for (name, used) in [("read budget", last.reads_used), ("write budget", last.writes_used)] {
                @let percent = (used.clamp(0.0, 1.0) * 100.0).round() as u64;
                label {
                    span { (name) " " (percent) "%" }
                    meter min="0" max="100" low="70" high="90" optimum="0" value=(percent) { (percent) "%" }
                }
            }
        }
    }
}

fn figure(title: &str, unit: Unit, curves: &[Curve; 2], below: Option<&Markup>) -> Markup {
    html! {
        figure.chart.panel {
            figcaption {
                h3 { (title) }
                ul.legend {
                    @for (at, curve) in curves.iter().enumerate() {
                        li.(format!("curve-{at}")) { b { (unit.written(curve.last())) } " " (curve.name) }
                    }
                }
            }
            div.plot aria-hidden="true" {
                @match svg(unit, curves) {
                    Some(svg) => (PreEscaped(svg)),
                    None => p.muted { "No data." },
                }
            }
            @if let Some(below) = below { (below) }
        }
    }
}

/// A round number that is not below the highest value.
fn ceiling(curves: &[Curve]) -> f64 {
    let highest = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
    if highest <= 4.0 {
        return 4.0;
    }
    let magnitude = 10f64.powf(highest.log10().floor());
    let steps = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0];
    steps.into_iter().map(|step| step * magnitude).find(|top| *top >= highest).unwrap_or(highest)
}

fn svg(unit: Unit, curves: &[Curve]) -> Option<String> {
    let mut text = String::new();
    draw(&mut text, unit, curves).ok()?;
    Some(text)
}

fn draw(
    text: &mut String,
    unit: Unit,
    curves: &[Curve],
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>> {
    let area = SVGBackend::with_string(text, (WIDTH, HEIGHT)).into_drawing_area();
    let top = ceiling(curves);
    let oldest = curves.iter().filter_map(|curve| curve.points.first()).map(|point| -point.0);
    let back = oldest.fold(MINUTES.0, f64::max).ceil().min(MINUTES.1);
    let label = ("sans-serif", 16).into_font().color(&INK);
    let mut chart = ChartBuilder::on(&area)
        .margin_top(8)
        .margin_right(18)
        .x_label_area_size(26)
        .y_label_area_size(62)
        .build_cartesian_2d(-back..0.0, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GRID)
        .x_labels(4)
        .y_labels(3)
        .set_all_tick_mark_size(5)
        .label_style(label)
        .x_label_formatter(&|minutes: &f64| match *minutes {
            // It would stand under the other axis.
            at if at < 0.05 - back => String::new(),
            at if at > -0.05 => "now".into(),
            at => format!("{at:.0} min"),
        })
        .y_label_formatter(&|value: &f64| unit.written(*value))
        .draw()?;
    for (curve, colour) in curves.iter().zip(CURVES) {
        let points = || curve.points.iter().copied();
        let filled = AreaSeries::new(points(), 0.0, colour.mix(0.12)).border_style(colour.stroke_width(2));
        chart.draw_series(filled)?;
    }
    area.present()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn history() -> History {
        let mut history = History::default();
        for step in 0..60 {
            history.push(Sample {
                at: Duration::from_secs(step * 5),
                reads: step * 3,
                writes: step,
                writes_used: 0.42,
                buffered: 17,
                syncs: step,
                syncs_ms: step * 120,
                ..Sample::default()
            });
        }
        history
    }

    #[test]
    fn what_a_chart_shows_is_also_in_words() {
        let html = charts(&history()).into_string();
        for words in [
            "<b>36</b> reads per minute",
            "<b>12</b> writes per minute",
            "<b>17</b> addresses buffered",
            "<b>120 ms</b> per sync",
            "write budget 42%",
        ] {
            assert!(html.contains(words), "{words} is not in {html}");
        }
        assert_eq!(html.matches("<svg").count(), 4);
    }

    #[test]
    fn the_policy_lets_every_chart_through_and_the_style_sheet_knows_its_colours() {
        let html = charts(&history()).into_string();
        assert!(!html.contains("style=") && !html.contains("<style") && !html.contains("<script"));
        for colour in CURVES.into_iter().chain([GRID, INK]) {
            let name = format!("#{:02X}{:02X}{:02X}", colour.0, colour.1, colour.2);
            assert!(html.contains(&name), "{name} is not in the charts");
            assert!(crate::assets::STYLE.body.contains(&name), "{name} is not in the style sheet");
        }
    }

    #[test]
    fn the_axis_ends_at_a_round_number_not_below_the_curve() {
        for (highest, top) in
            [(0.0, 4.0), (3.0, 4.0), (7.0, 8.0), (11.0, 20.0), (100.0, 100.0), (4_100.0, 5_000.0)]
        {
            let curve = Curve { name: "", points: vec![(0.0, highest)] };
            assert_eq!(ceiling(&[curve]), top, "{highest}");
        }
    }

    #[test]
    fn an_empty_history_makes_empty_charts_and_no_trouble() {
        assert_eq!(charts(&History::default()).into_string().matches("<svg").count(), 4);
    }
}
