//! The lines of the long table: every service and egress in one shape, and which of them are asked for.
//!
//! `table.js` does the same in the browser; what counts as a match and what comes first is written
//! down in both, and the browser test compares them.

use sluice_view::{EgressStatus, Progress, ServiceStatus, State};

use crate::words::escaped;

/// Lines of one page, for readers without JavaScript.
pub const PAGE_ROWS: usize = 100;

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A Service.
    Service,
    /// An egress.
    Egress,
}

impl Kind {
    /// The fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Service => "service",
            Kind::Egress => "egress",
        }
    }
}

/// One line.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// Service or egress.
    pub kind: Kind,
    /// What people call it: `shop/web`, `blue`.
    pub title: String,
    /// Its page.
    pub href: String,
    /// How far it is.
    pub progress: &'a Progress,
}

impl<'a> Row<'a> {
    /// A service's line.
    pub fn service(service: &'a ServiceStatus) -> Row<'a> {
        let (namespace, name) = match (&service.namespace, &service.name) {
            (Some(namespace), Some(name)) => (namespace.as_str(), name.as_str()),
            _ => ("-", service.uid.as_str()),
        };
        Row {
            kind: Kind::Service,
            title: service.title(),
            href: format!("/services/{}/{}", escaped(namespace), escaped(name)),
            progress: &service.progress,
        }
    }

    /// An egress's line.
    pub fn egress(egress: &'a EgressStatus) -> Row<'a> {
        Row {
            kind: Kind::Egress,
            title: egress.name.clone(),
            href: format!("/egresses/{}", escaped(&egress.name)),
            progress: &egress.progress,
        }
    }

    /// How much it needs a look, the most first.
    pub fn attention(&self) -> u8 {
        let progress = self.progress;
        let on_its_way = progress.state != State::Created;
        if progress.parked || progress.trouble {
            0
        } else if progress.why.is_some() || progress.attempts > 0 {
            1
        } else if progress.addresses.quarantined > 0 {
            2
        } else if on_its_way {
            3
        } else {
            4
        }
    }

    /// Whether a word stands in it.
    fn has(&self, word: &str) -> bool {
        let progress = self.progress;
        let holds = |text: &str| text.to_lowercase().contains(word);
        holds(&self.title)
            || holds(self.kind.word())
            || holds(progress.state.word())
            || progress.public_ip.is_some_and(|ip| holds(&ip.to_string()))
            || progress.why.as_ref().is_some_and(|why| holds(&why.reason) || holds(&why.code))
    }
}

/// What the table is sorted by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Order {
    /// What needs a look first.
    #[default]
    Attention,
    /// Names.
    Name,
    /// The longest in its state first.
    Age,
    /// The most attempts first.
    Attempts,
    /// The most addresses first.
    Addresses,
}

impl Order {
    /// All of them.
    pub const ALL: [Order; 5] =
        [Order::Attention, Order::Name, Order::Age, Order::Attempts, Order::Addresses];

    /// The fixed word.
    pub const fn word(self) -> &'static str {
        match self {
            Order::Attention => "attention",
            Order::Name => "name",
            Order::Age => "age",
            Order::Attempts => "attempts",
            Order::Addresses => "addresses",
        }
    }
}

/// Which lines are asked for, as it stands in the URL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Words that must all stand in a line.
    pub text: String,
    /// One state, or all.
    pub state: Option<State>,
    /// One kind, or both.
    pub kind: Option<Kind>,
    /// What comes first.
    pub order: Order,
    /// Which page, from 0.
    pub page: usize,
}

impl Filter {
    /// Reads the pairs of a query. What is not understood is left out: a URL that a person has typed
    /// should show something.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Filter {
        let mut filter = Filter::default();
        for (name, value) in pairs {
            match name {
                "q" => filter.text = value.trim().chars().take(200).collect(),
                "state" => filter.state = State::parse(value),
                "kind" => {
                    filter.kind = [Kind::Service, Kind::Egress].into_iter().find(|kind| kind.word() == value);
                }
                "sort" => {
                    let order = Order::ALL.into_iter().find(|order| order.word() == value);
                    filter.order = order.unwrap_or_default();
                }
                "page" => filter.page = value.parse::<usize>().map_or(0, |page| page.saturating_sub(1)),
                _ => {}
            }
        }
        filter
    }

    /// The same as a link.
    pub fn href(&self) -> String {
        let mut pairs = Vec::new();
        if !self.text.is_empty() {
            pairs.push(format!("q={}", escaped(&self.text)));
        }
        if let Some(state) = self.state {
            pairs.push(format!("state={}", state.word()));
        }
        if let Some(kind) = self.kind {
            pairs.push(format!("kind={}", kind.word()));
        }
        if self.order != Order::default() {
            pairs.push(format!("sort={}", self.order.word()));
        }
        if self.page > 0 {
            pairs.push(format!("page={}", self.page + 1));
        }
        if pairs.is_empty() { "/".into() } else { format!("/?{}", pairs.join("&")) }
    }

    /// Says of a line whether it is asked for.
    pub(crate) fn sieve(&self) -> impl Fn(&Row<'_>) -> bool {
        let words: Vec<String> = self.text.to_lowercase().split_whitespace().map(str::to_owned).collect();
        let (kind, state) = (self.kind, self.state);
        move |row| {
            kind.is_none_or(|kind| row.kind == kind)
                && state.is_none_or(|state| row.progress.state == state)
                && words.iter().all(|word| row.has(word))
        }
    }

    /// The lines that are asked for, in order, on all pages.
    pub fn rows<'a>(&self, services: &'a [ServiceStatus], egresses: &'a [EgressStatus]) -> Vec<Row<'a>> {
        let lets_through = self.sieve();
        let all = services.iter().map(Row::service).chain(egresses.iter().map(Row::egress));
        let mut rows: Vec<Row<'a>> = all.filter(|row| lets_through(row)).collect();
        // A pair of what comes first and the name, so that the order is one and the same everywhere.
        let place = |row: &Row<'_>| match self.order {
            Order::Attention => u64::from(row.attention()),
            Order::Name => 0,
            Order::Age => u64::MAX - row.progress.since.age_seconds,
            Order::Attempts => u64::MAX - u64::from(row.progress.attempts),
            Order::Addresses => u64::MAX - row.progress.addresses.desired,
        };
        rows.sort_by(|a, b| place(a).cmp(&place(b)).then_with(|| a.title.cmp(&b.title)));
        rows
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use sluice_model::reason::Reason;
    use sluice_view::{Addresses, Since, Why};

    use super::*;

    pub(crate) fn progress(state: State) -> Progress {
        Progress {
            state,
            since: Since { at: "2026-11-16T02:40:00Z".into(), age_seconds: 65 },
            desired: !matches!(state, State::DeletionPending | State::DeletionInProgress),
            live: matches!(state, State::Created | State::UpdateInProgress),
            operation: None,
            attempts: 0,
            last_attempt: None,
            next_retry: None,
            parked: false,
            trouble: false,
            why: None,
            last_failure: None,
            public_ip: None,
            addresses: Addresses::default(),
            held: None,
        }
    }

    pub(crate) fn service(namespace: &str, name: &str, state: State) -> ServiceStatus {
        ServiceStatus {
            namespace: Some(namespace.into()),
            name: Some(name.into()),
            uid: format!("5e1f0000-0000-4000-8000-{:012x}", namespace.len() * 1_000 + name.len()),
            progress: progress(state),
        }
    }

    pub(crate) fn egress(name: &str, state: State) -> EgressStatus {
        EgressStatus { name: name.into(), is_default: false, pods: 2, progress: progress(state) }
    }

    pub(crate) fn parked(mut service: ServiceStatus, reason: Reason) -> ServiceStatus {
        service.progress.parked = true;
        service.progress.trouble = true;
        service.progress.attempts = 2;
        service.progress.why = Some(Why::new(reason, "PublicIPCountLimitReached: no more public IPs"));
        service
    }

    fn titles(filter: &Filter, services: &[ServiceStatus], egresses: &[EgressStatus]) -> Vec<String> {
        filter.rows(services, egresses).into_iter().map(|row| row.title).collect()
    }

    #[test]
    fn what_needs_a_look_comes_first_and_names_decide_the_rest() {
        let services = [
            service("shop", "web", State::Created),
            service("bank", "web", State::CreationInProgress),
            parked(service("shop", "api", State::NotStarted), Reason::QuotaExceeded),
        ];
        let egresses = [egress("blue", State::Created)];
        assert_eq!(
            titles(&Filter::default(), &services, &egresses),
            ["shop/api", "bank/web", "blue", "shop/web"]
        );
        let by_name = Filter { order: Order::Name, ..Filter::default() };
        assert_eq!(titles(&by_name, &services, &egresses), ["bank/web", "blue", "shop/api", "shop/web"]);
    }

    #[test]
    fn all_words_must_stand_in_a_line() {
        let mut web = service("shop", "web", State::Created);
        web.progress.public_ip = Some("198.51.100.7".parse().unwrap());
        let services = [web, parked(service("shop", "api", State::NotStarted), Reason::QuotaExceeded)];
        for (query, found) in [
            ("SHOP", &["shop/api", "shop/web"][..]),
            ("shop quota", &["shop/api"]),
            ("sgw0008", &["shop/api"]),
            ("100.7", &["shop/web"]),
            ("shop bank", &[]),
        ] {
            let filter = Filter::read([("q", query)]);
            assert_eq!(titles(&filter, &services, &[]), found, "{query}");
        }
        assert_eq!(titles(&Filter::read([("kind", "egress")]), &services, &[]).len(), 0);
        assert_eq!(titles(&Filter::read([("state", "created")]), &services, &[]), ["shop/web"]);
    }

    #[test]
    fn a_filter_and_its_link_say_the_same() {
        let filter = Filter {
            text: "shop & co".into(),
            state: Some(State::DeletionPending),
            kind: Some(Kind::Service),
            order: Order::Age,
            page: 2,
        };
        assert_eq!(filter.href(), "/?q=shop%20%26%20co&state=DeletionPending&kind=service&sort=age&page=3");
        let read = Filter::read([
            ("q", "shop & co"),
            ("state", "deletionpending"),
            ("kind", "service"),
            ("sort", "age"),
            ("page", "3"),
            ("moon", "full"),
        ]);
        assert_eq!(read, filter);
        assert_eq!(
            Filter::read([("state", "x"), ("kind", "y"), ("sort", "z"), ("page", "-1")]),
            Filter::default()
        );
        assert_eq!(Filter::default().href(), "/");
    }

    #[test]
    fn a_service_whose_object_is_gone_has_a_page_by_its_uid() {
        let mut gone = service("shop", "web", State::DeletionPending);
        (gone.namespace, gone.name) = (None, None);
        assert_eq!(Row::service(&gone).href, format!("/services/-/{}", gone.uid));
    }
}
