//! Reads server-sent events, and keeps the picture that they make.

use std::collections::BTreeMap;
use std::time::Instant;

use sluice_view::{Delta, EgressStatus, Goodbye, Progress, Removed, ServiceStatus, Status};

/// One event of a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Told {
    /// Where to go on from.
    pub(super) id: Option<String>,
    /// What it is.
    pub(super) event: String,
    /// What it says.
    pub(super) data: String,
}

/// Cuts a stream of bytes into events.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// More bytes have come.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next event that is complete.
    pub(super) fn next(&mut self) -> Option<Told> {
        loop {
            let end = self.bytes.windows(2).position(|pair| pair == b"\n\n")?;
            let event: Vec<u8> = self.bytes.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&event);
            let mut told = Told { event: "message".into(), ..Told::default() };
            let mut has_data = false;
            for line in text.lines() {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match name {
                    "id" => told.id = Some(value.into()),
                    "event" => told.event = value.into(),
                    "data" => {
                        if has_data {
                            told.data.push('\n');
                        }
                        told.data.push_str(value);
                        has_data = true;
                    }
                    _ => {}
                }
            }
            // A comment only says that somebody is there.
            if has_data {
                return Some(told);
            }
        }
    }
}

/// What an event of the API says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Said {
    /// What has changed, or everything.
    Delta(Box<Delta>),
    /// It ends the stream.
    Goodbye(Goodbye),
    /// Nothing that this version understands.
    Nothing,
}

impl Told {
    /// Reads what it says.
    pub(super) fn said(&self) -> anyhow::Result<Said> {
        Ok(match self.event.as_str() {
            Delta::SNAPSHOT | Delta::DELTA => Said::Delta(serde_json::from_str(&self.data)?),
            Goodbye::EVENT => Said::Goodbye(serde_json::from_str(&self.data)?),
            _ => Said::Nothing,
        })
    }
}

/// How everything stands, as far as has been told.
#[derive(Debug, Default)]
pub(super) struct Picture {
    services: BTreeMap<String, (Instant, ServiceStatus)>,
    egresses: BTreeMap<String, (Instant, EgressStatus)>,
}

impl Picture {
    /// Takes a step in; returns what it was about and is still there.
    pub(super) fn apply(&mut self, now: Instant, delta: Delta) -> Vec<Status> {
        if delta.complete {
            self.services.clear();
            self.egresses.clear();
        }
        for removed in delta.removed {
            match removed {
                Removed::Service { uid } => drop(self.services.remove(&uid)),
                Removed::Egress { name } => drop(self.egresses.remove(&name)),
            }
        }
        let mut news: Vec<Status> = Vec::new();
        for service in delta.services {
            news.push(Status::Service(service.clone()));
            self.services.insert(service.uid.clone(), (now, service));
        }
        for egress in delta.egresses {
            news.push(Status::Egress(egress.clone()));
            self.egresses.insert(egress.name.clone(), (now, egress));
        }
        news
    }

    /// Everything as it stands now, in order; what was told a while ago is that much older.
    pub(super) fn all(&self, now: Instant) -> Vec<Status> {
        let services = self.services.values().map(|(told, service)| {
            let mut service = service.clone();
            age(&mut service.progress, now.saturating_duration_since(*told).as_secs());
            service
        });
        let mut services: Vec<ServiceStatus> = services.collect();
        services.sort_by_key(|service| (service.title(), service.uid.clone()));
        let egresses = self.egresses.values().map(|(told, egress)| {
            let mut egress = egress.clone();
            age(&mut egress.progress, now.saturating_duration_since(*told).as_secs());
            Status::Egress(egress)
        });
        services.into_iter().map(Status::Service).chain(egresses).collect()
    }
}

fn age(progress: &mut Progress, seconds: u64) {
    progress.since.age_seconds += seconds;
    if let Some(last) = &mut progress.last_attempt {
        last.age_seconds += seconds;
    }
    if let Some(next) = &mut progress.next_retry {
        next.in_seconds = next.in_seconds.saturating_sub(seconds);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::status::table::tests::{fine, parked};

    #[test]
    fn events_are_whole_however_the_bytes_come() {
        let stream = b": still here\n\nid: a-1\nevent: snapshot\ndata: {\"x\":\ndata: 1}\n\nevent: goodbye\ndata:{}\n\n";
        for size in [1, 2, 7, stream.len()] {
            let mut reader = Reader::default();
            let mut told = Vec::new();
            for piece in stream.chunks(size) {
                reader.take(piece);
                while let Some(event) = reader.next() {
                    told.push(event);
                }
            }
            assert_eq!(told.len(), 2, "{size}");
            assert_eq!((told[0].id.as_deref(), told[0].event.as_str()), (Some("a-1"), "snapshot"));
            assert_eq!(told[0].data, "{\"x\":\n1}");
            assert_eq!((told[1].event.as_str(), told[1].data.as_str()), ("goodbye", "{}"));
        }
    }

    fn delta(complete: bool, all: &[Status]) -> Delta {
        let mut delta = Delta { complete, ..Delta::default() };
        for status in all {
            match status {
                Status::Service(service) => delta.services.push(service.clone()),
                Status::Egress(egress) => delta.egresses.push(egress.clone()),
            }
        }
        delta
    }

    #[test]
    fn steps_add_up_and_a_snapshot_begins_anew() {
        let now = Instant::now();
        let mut picture = Picture::default();
        picture.apply(now, delta(true, &[fine(), parked()]));
        assert_eq!(picture.all(now).len(), 2);
        let mut step = delta(false, &[]);
        step.removed.push(Removed::Egress { name: "blue".into() });
        assert_eq!(picture.apply(now, step), []);
        assert_eq!(picture.all(now), [fine()]);
        picture.apply(now, delta(true, &[parked()]));
        assert_eq!(picture.all(now), [parked()]);
    }

    #[test]
    fn what_was_told_a_while_ago_is_that_much_older() {
        let now = Instant::now();
        let mut picture = Picture::default();
        picture.apply(now, delta(true, &[parked()]));
        let later = picture.all(now + Duration::from_secs(600));
        let progress = later[0].progress();
        assert_eq!((progress.since.age_seconds, progress.next_retry.as_ref().unwrap().in_seconds), (665, 0));
    }
}
