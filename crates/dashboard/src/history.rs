//! How it went: a short ring of samples, taken by whoever serves the pages, and read by the charts.
//!
//! Counters are kept as they were read and turned into how much they rose in the minute before, so a
//! sample that comes late makes a longer step and never a wrong number. A counter that falls was begun
//! anew (a new loop in the same process), and the step over it counts for nothing.

use std::collections::VecDeque;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

/// What is known at one moment.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Sample {
    /// When, since the server was begun.
    pub at: Duration,
    /// Reads sent to Azure so far, polls among them.
    pub reads: u64,
    /// Writes and deletes sent to Azure so far.
    pub writes: u64,
    /// Share of our reads in Azure's window that is used, from 0 to 1.
    pub reads_used: f64,
    /// The same for writes.
    pub writes_used: f64,
    /// Addresses that wait until their service is ready.
    pub buffered: u64,
    /// Waits of addresses that have ended so far because their service became ready.
    pub promoted: u64,
    /// Location syncs so far.
    pub syncs: u64,
    /// What they took together.
    pub syncs_ms: u64,
    /// Changes of addresses that Azure has confirmed so far.
    pub confirmed: u64,
    /// What they took together, from the change to the confirmation.
    pub confirmed_ms: u64,
    /// Calls that wait for the budget.
    pub queued: u64,
    /// Operations that wait for a free worker.
    pub waiting: u64,
    /// Workers that are at work.
    pub working: u64,
}

/// The last samples.
#[derive(Clone, Debug)]
pub struct History {
    samples: VecDeque<Sample>,
}

impl Default for History {
    fn default() -> History {
        History { samples: VecDeque::with_capacity(History::SAMPLES_MAX) }
    }
}

/// A point of a curve: minutes before the last sample (never positive), and a value.
pub type Point = (f64, f64);

impl History {
    /// How often a sample is taken.
    pub const PACE: Duration = Duration::from_secs(5);
    /// How far back it reaches.
    pub const SPAN: Duration = Duration::from_secs(30 * 60);
    const SAMPLES_MAX: usize = (History::SPAN.as_secs() / History::PACE.as_secs()) as usize + 1;

    /// One more; the oldest goes. A sample that is not later than the last one is not taken.
    pub fn push(&mut self, sample: Sample) {
        if self.samples.back().is_some_and(|last| sample.at <= last.at) {
            return;
        }
        if self.samples.len() == History::SAMPLES_MAX {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// The newest.
    pub fn last(&self) -> Option<&Sample> {
        self.samples.back()
    }

    /// How something stood.
    pub fn gauge(&self, of: impl Fn(&Sample) -> f64) -> Vec<Point> {
        let Some(last) = self.last() else { return Vec::new() };
        self.samples.iter().map(|sample| (minutes_before(last, sample), of(sample))).collect()
    }

    /// How much a counter rose in the minute before each sample.
    pub fn per_minute(&self, of: impl Fn(&Sample) -> u64) -> Vec<Point> {
        // Steps of the last minute, and what they add up to.
        let mut steps: VecDeque<(Duration, u64)> = VecDeque::new();
        let mut sum = 0;
        self.steps(|before, after| {
            let rise = of(after).saturating_sub(of(before));
            steps.push_back((after.at, rise));
            sum += rise;
            while let Some((at, old)) = steps.front().copied()
                && at + MINUTE <= after.at
            {
                steps.pop_front();
                sum -= old;
            }
            sum as f64
        })
    }

    /// The mean of what ended in each step; the last mean while nothing ends.
    pub fn mean(&self, sum: impl Fn(&Sample) -> u64, count: impl Fn(&Sample) -> u64) -> Vec<Point> {
        let mut mean = 0.0;
        self.steps(|before, after| {
            let ended = count(after).checked_sub(count(before)).filter(|ended| *ended > 0);
            if let Some((ended, took)) = ended.zip(sum(after).checked_sub(sum(before))) {
                mean = took as f64 / ended as f64;
            }
            mean
        })
    }

    fn steps(&self, mut value: impl FnMut(&Sample, &Sample) -> f64) -> Vec<Point> {
        let Some(last) = self.last() else { return Vec::new() };
        let pairs = self.samples.iter().zip(self.samples.iter().skip(1));
        pairs.map(|(before, after)| (minutes_before(last, after), value(before, after))).collect()
    }
}

fn minutes_before(last: &Sample, sample: &Sample) -> f64 {
    -(last.at.saturating_sub(sample.at)).as_secs_f64() / 60.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Sample {
        Sample { at: Duration::from_secs(seconds), ..Sample::default() }
    }

    #[test]
    fn it_reaches_half_an_hour_back_and_no_further() {
        let mut history = History::default();
        (0..1_000).for_each(|step| history.push(at(step * 5)));
        let curve = history.gauge(|sample| sample.at.as_secs_f64());
        assert_eq!(curve.first().map(|point| point.0), Some(-30.0));
        assert_eq!(curve.last(), Some(&(0.0, 4_995.0)));
    }

    #[test]
    fn a_counter_is_shown_as_its_last_minute_whatever_the_step_and_a_fall_counts_for_nothing() {
        let mut history = History::default();
        for (seconds, reads) in [(0, 100), (5, 110), (35, 140), (40, 3), (45, 4), (65, 4), (200, 9), (205, 9)]
        {
            history.push(Sample { reads, ..at(seconds) });
        }
        let rates: Vec<f64> = history.per_minute(|sample| sample.reads).iter().map(|point| point.1).collect();
        assert_eq!(rates, [10.0, 40.0, 40.0, 41.0, 31.0, 5.0, 5.0]);
    }

    #[test]
    fn a_mean_stays_while_nothing_ends() {
        let mut history = History::default();
        for (seconds, syncs, syncs_ms) in [(0, 0, 0), (5, 2, 300), (10, 2, 300), (15, 3, 1_300)] {
            history.push(Sample { syncs, syncs_ms, ..at(seconds) });
        }
        let means = history.mean(|sample| sample.syncs_ms, |sample| sample.syncs);
        assert_eq!(means.iter().map(|point| point.1).collect::<Vec<_>>(), [150.0, 150.0, 1_000.0]);
    }

    #[test]
    fn a_sample_out_of_order_is_not_taken() {
        let mut history = History::default();
        history.push(at(5));
        history.push(at(5));
        history.push(at(4));
        assert_eq!(history.gauge(|_| 1.0).len(), 1);
        assert!(History::default().per_minute(|sample| sample.reads).is_empty());
    }
}
