//! The front page: findings, states, charts, and every service and egress.

use maud::{Markup, html};
use sluice_view::moment::span;
use sluice_view::{EgressStatus, Overview, Progress, ServiceStatus, State};

use crate::charts::charts;
use crate::diagram::diagram;
use crate::findings::{Finding, findings};
use crate::history::History;
use crate::layout::{Which, about, whole};
use crate::rows::{Filter, Kind, Order, PAGE_ROWS, Row};
use crate::words::{grouped, state_class};

/// What the front page is made from.
#[derive(Clone, Copy, Debug)]
pub struct Front<'a> {
    /// The controller as a whole.
    pub overview: &'a Overview,
    /// Every service.
    pub services: &'a [ServiceStatus],
    /// Every egress.
    pub egresses: &'a [EgressStatus],
    /// How it went.
    pub history: &'a History,
    /// Which lines of the table are asked for.
    pub filter: &'a Filter,
}

/// The whole page.
pub fn page(front: &Front<'_>) -> String {
    let main = html! {
        h1.unseen { "Sluice status" }
        (parts(front))
        (table(front))
    };
    whole("Findings", Which::Front, Some(front.overview), &main)
}

/// The parts of the page above the table, which `live.js` puts in place of the old ones.
pub fn summary(front: &Front<'_>) -> String {
    html! { (about(front.overview)) (parts(front)) }.into_string()
}

fn parts(front: &Front<'_>) -> Markup {
    let found = findings(front.overview, front.services, front.egresses);
    html! {
        div.top {
            section.panel.findings aria-labelledby="findings-title" {
                h2 #findings-title { "Findings" }
                // Read aloud when it changes, after what is being said.
                ul #findings aria-live="polite" { @for finding in &found { (line(finding)) } }
            }
            section.panel.lifecycle aria-labelledby="states-title" {
                h2 #states-title { "States" }
                div #states { (diagram(front.overview)) }
                (totals(front.overview))
            }
        }
        section.charts aria-labelledby="charts-title" {
            h2.unseen #charts-title { "Last 30 minutes" }
            div #charts { (charts(front.history)) }
        }
    }
}

fn line(finding: &Finding) -> Markup {
    let severity = finding.severity.word();
    html! {
        li.(severity) {
            span.mark { (severity) }
            div {
                p.sentence {
                    (ticked(&finding.sentence))
                    @for (at, link) in finding.names.iter().enumerate() {
                        (if at == 0 { ": " } else { ", " })
                        a href=(link.href) { (link.text) }
                    }
                    @if finding.more > 0 { " and " (grouped(finding.more)) " more" }
                    @if !finding.sentence.ends_with(['.', '!', '?']) { "." }
                }
                @if finding.next_step.is_some() || finding.all.is_some() {
                    p.next {
                        @if let Some(step) = &finding.next_step { (ticked(step)) " " }
                        @if let Some(link) = &finding.all { a href=(link.href) { (link.text) } }
                    }
                }
            }
        }
    }
}

/// What stands between backticks is a command.
pub(crate) fn ticked(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn totals(overview: &Overview) -> Markup {
    let addresses = &overview.addresses;
    let pending = addresses.dirty + addresses.in_flight;
    html! {
        dl.totals #totals {
            div { dt { "Services" } dd { (grouped(overview.services.total)) } }
            div { dt { "egresses" } dd { (grouped(overview.egresses.total)) } }
            div { dt { "addresses" } dd { (grouped(addresses.programmed)) " of " (grouped(addresses.desired)) } }
            div { dt { "updates pending" } dd { (grouped(pending)) } }
            div { dt { "operations" } dd { (grouped(overview.operations_active)) } }
        }
    }
}

fn table(front: &Front<'_>) -> Markup {
    let filter = front.filter;
    let rows = filter.rows(front.services, front.egresses);
    let all = front.services.len() + front.egresses.len();
    let pages = rows.len().div_ceil(PAGE_ROWS).max(1);
    let page = filter.page.min(pages - 1);
    let shown = rows.iter().skip(page * PAGE_ROWS).take(PAGE_ROWS);
    html! {
        section.panel.all #table aria-labelledby="table-title" {
            div.head {
                h2 #table-title { "Services and egresses" }
                (search(filter))
                p.muted #shown role="status" {
                    (grouped(rows.len() as u64)) " of " (grouped(all as u64))
                }
            }
            // The roles are said, since a phone lays the rows out in another way, and then they would be lost.
            table #rows role="table" {
                caption.unseen { "All Services and egresses with their state" }
                thead role="rowgroup" {
                    tr role="row" {
                        (column(filter, "name", "Name", Some(Order::Name)))
                        (column(filter, "state", "State", Some(Order::Attention)))
                        (column(filter, "age", "In state", Some(Order::Age)))
                        (column(filter, "attempts", "Failed", Some(Order::Attempts)))
                        (column(filter, "addresses", "Addresses", Some(Order::Addresses)))
                        (column(filter, "ip", "Public IP", None))
                        (column(filter, "reason", "Reason", None))
                    }
                }
                tbody role="rowgroup" { @for row in shown { (row_line(row)) } }
            }
            @if rows.is_empty() {
                p.none #none {
                    @if all == 0 { "No Services or egresses yet." } @else { "No matches. " a href="/#table" { "Show all" } }
                }
            }
            @if pages > 1 {
                nav.pages #pages aria-label="Table pages" {
                    @if page > 0 { a rel="prev" href=(at_page(filter, page - 1)) { "Previous" } }
                    span { "page " (page + 1) " of " (grouped(pages as u64)) }
                    @if page + 1 < pages { a rel="next" href=(at_page(filter, page + 1)) { "Next" } }
                }
            }
        }
    }
}

fn at_page(filter: &Filter, page: usize) -> String {
    format!("{}#table", Filter { page, ..filter.clone() }.href())
}

fn column(filter: &Filter, class: &str, title: &str, order: Option<Order>) -> Markup {
    let is_sorted = order == Some(filter.order);
    let direction = match (is_sorted, order) {
        (false, _) | (_, None) => None,
        (true, Some(Order::Name | Order::Attention)) => Some("ascending"),
        (true, Some(_)) => Some("descending"),
    };
    html! {
        th.(class) scope="col" role="columnheader" aria-sort=[direction] {
            @if let Some(order) = order {
                @let sorted = Filter { order, page: 0, ..filter.clone() };
                a href={ (sorted.href()) "#table" } data-sort=(order.word()) { (title) }
            } @else { (title) }
        }
    }
}

fn search(filter: &Filter) -> Markup {
    html! {
        form.search role="search" action="/#table" method="get" {
            label {
                span.unseen { "Search by name, IP, state or reason" }
                input #q type="search" name="q" value=(filter.text) placeholder="Search  /" autocomplete="off"
                    spellcheck="false" maxlength="200";
            }
            label {
                span.unseen { "State" }
                select #state name="state" {
                    option value="" { "All states" }
                    @for state in State::ALL {
                        option value=(state.word()) selected[filter.state == Some(state)] { (state.word()) }
                    }
                }
            }
            label {
                span.unseen { "Kind" }
                select #kind name="kind" {
                    option value="" { "All kinds" }
                    option value="service" selected[filter.kind == Some(Kind::Service)] { "Services" }
                    option value="egress" selected[filter.kind == Some(Kind::Egress)] { "Egresses" }
                }
            }
            @if filter.order != Order::default() { input type="hidden" name="sort" value=(filter.order.word()); }
            button.plain type="submit" { "Search" }
        }
    }
}

fn row_line(row: &Row<'_>) -> Markup {
    let progress = row.progress;
    let addresses = &progress.addresses;
    let why = progress.why.as_ref();
    html! {
        tr.(format!("need-{}", row.attention())) role="row" {
            th.name scope="row" role="rowheader" {
                a href=(row.href) { (row.title) }
                @if row.kind == Kind::Egress { span.kind { "egress" } }
            }
            td.state role="cell" { (pill(progress)) }
            td.age role="cell" { (span(progress.since.age_seconds)) }
            td.attempts role="cell" { @if progress.attempts > 0 { (progress.attempts) "×" } }
            td.addresses role="cell" {
                span.short[addresses.programmed < addresses.desired] { (grouped(addresses.programmed)) }
                span.of { " of " (grouped(addresses.desired)) }
            }
            td.ip role="cell" { @if let Some(ip) = progress.public_ip { (ip) } }
            td.reason role="cell" title=[why.map(|why| why.message.as_str())] {
                @if let Some(why) = why {
                    b { (why.reason) } " " span.muted { (why.message) }
                }
            }
        }
    }
}

/// A state as a word with a colour; what is in trouble has that colour in every state.
pub(crate) fn pill(progress: &Progress) -> Markup {
    let class = if progress.trouble { "is-trouble" } else { state_class(progress.state) };
    html! { span.pill.(class) { (progress.state.word()) } }
}

#[cfg(test)]
mod tests {
    use sluice_model::reason::Reason;

    use super::*;
    use crate::findings::tests::overview;
    use crate::rows::tests::{egress, parked, service};

    fn shown(services: &[ServiceStatus], egresses: &[EgressStatus], filter: &Filter) -> String {
        let (overview, history) = (overview(), History::default());
        page(&Front { overview: &overview, services, egresses, history: &history, filter })
    }

    #[test]
    fn the_page_opens_on_findings_and_then_has_every_line() {
        let services = [
            service("shop", "web", State::Created),
            parked(service("shop", "api", State::NotStarted), Reason::QuotaExceeded),
        ];
        let html = shown(&services, &[egress("blue", State::Created)], &Filter::default());
        let found = html.find("1 Service waiting for Azure quota").unwrap();
        let row = html
            .find("<th class=\"name\" scope=\"row\" role=\"rowheader\"><a href=\"/services/shop/web\">")
            .unwrap();
        assert!(found < row);
        assert!(html.contains("Request a higher limit"), "{html}");
        assert!(html.contains("<a href=\"/egresses/blue\">blue</a><span class=\"kind\">egress</span>"));
        assert!(html.contains("3 of 3"));
    }

    #[test]
    fn a_state_in_trouble_is_not_green() {
        let mut web = service("shop", "web", State::Created);
        assert!(shown(&[web.clone()], &[], &Filter::default()).contains("pill is-fine"));
        web.progress.trouble = true;
        let html = shown(&[web], &[], &Filter::default());
        assert!(html.contains("pill is-trouble") && !html.contains("pill is-fine"), "{html}");
    }

    #[test]
    fn what_others_have_written_stays_text() {
        let mut odd = parked(service("shop", "web", State::NotStarted), Reason::Rejected);
        odd.progress.why.as_mut().unwrap().message = "<img src=x onerror=alert(1)> \" onmouseover=\"x".into();
        odd.name = Some("<b>".into());
        let html = shown(&[odd], &[], &Filter::default());
        let message = "&lt;img src=x onerror=alert(1)&gt; &quot; onmouseover=&quot;x";
        for words in [
            format!("title=\"{message}\""),
            format!("<span class=\"muted\">{message}</span>"),
            ">shop/&lt;b&gt;</a>".into(),
        ] {
            assert!(html.contains(&words), "{words} is not in {html}");
        }
        assert!(!html.contains("<img") && !html.contains("shop/<b>"), "{html}");
        let html = shown(&[], &[], &Filter { text: "\"><script>".into(), ..Filter::default() });
        assert!(html.contains("&quot;&gt;&lt;script&gt;") && !html.contains("\"><script>"), "{html}");
    }

    #[test]
    fn a_long_table_has_pages_and_each_line_is_on_one() {
        let services: Vec<_> =
            (0..250).map(|n| service("shop", &format!("web-{n:03}"), State::Created)).collect();
        let mut lines = 0;
        for page in 0..3 {
            let html = shown(&services, &[], &Filter { page, ..Filter::default() });
            lines += html.matches("scope=\"row\"").count();
            assert_eq!(html.contains("rel=\"next\""), page < 2);
            assert_eq!(html.contains("rel=\"prev\""), page > 0);
        }
        assert_eq!(lines, 250);
        assert!(shown(&services, &[], &Filter { page: 99, ..Filter::default() }).contains("page 3 of 3"));
        let none = shown(&services, &[], &Filter { text: "bank".into(), ..Filter::default() });
        assert!(none.contains("No matches") && none.contains("0 of 250"));
    }

    #[test]
    fn the_page_is_within_the_policy() {
        let html = shown(&[service("shop", "web", State::Created)], &[], &Filter::default());
        assert!(!html.contains(" style=") && !html.contains("<style") && !html.contains("onclick"));
        assert_eq!(html.matches("<script").count(), html.matches("<script src=\"/assets/").count() + 2);
        assert_eq!(html.matches("<script type=\"module\" src=\"/assets/").count(), 2);
    }
}
