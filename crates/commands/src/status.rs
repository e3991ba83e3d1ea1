//! `sluice status`: every service and egress of the controller that leads, in a table.

mod events;
mod leader;
mod table;

use std::io::{IsTerminal as _, Write};
use std::pin::pin;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use futures::future::LocalBoxFuture;
use serde::Serialize;
use sluice_view::moment::span;
use sluice_view::overview::Role;
use sluice_view::{EgressStatus, Overview, ServiceStatus, State, Status};

pub use leader::{Leader, LeaderArguments, Refused};

#[cfg(test)]
pub(crate) use table::tests::parked as parked_for_tests;

use crate::paint::Paint;
use events::{Picture, Reader, Said};
use table::Layout;

/// After the stream of changes has broken, so long is waited before the leader is looked for again.
const RETRY: Duration = Duration::from_secs(2);

/// How often a table on a terminal is drawn again, so that its times go on.
const REDRAW: Duration = Duration::from_secs(1);

/// How often a watch asks for the overview, which the stream of changes does not carry.
const REFRESH: Duration = Duration::from_secs(5);

/// A table without an answer for so long says that it is out of date.
const STALE: Duration = Duration::from_secs(10);

/// Where the overview is.
const OVERVIEW: &str = "/api/v1/overview";

/// Select Services and egresses, and the output format.
#[derive(Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Arguments {
    /// Show only Services in this namespace, and no egresses
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    /// Show only these states, for example `NotStarted,DeletionPending`
    #[arg(long, value_name = "STATE", value_delimiter = ',', value_parser = state)]
    state: Vec<State>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
    /// Watch for changes
    ///
    /// A table on a terminal is redrawn. Otherwise one line is printed for each change.
    #[arg(short, long)]
    watch: bool,
    /// Show only Services and egresses in trouble
    ///
    /// In trouble: a change is blocked, keeps failing, or takes much longer than usual.
    #[arg(long)]
    trouble: bool,
    /// Exit with code 2 on trouble, or if the state is unknown
    ///
    /// Considers only the Services and egresses that the other options select.
    #[arg(long, conflicts_with = "watch")]
    check: bool,
    #[command(flatten)]
    leader: LeaderArguments,
}

const HELP: &str = "\
Example: sluice status --output wide

Columns:
  PODS         programmed and desired addresses, for example 2/3
  AGE          time in this state
With --output wide:
  DESIRED      addresses that Kubernetes requires
  BUFFERED     addresses that wait until the load balancer or NAT gateway is registered
  PROGRAMMED   addresses that Azure has confirmed
  MAPPED       addresses that may be in Azure, confirmed or not
  QUARANTINED  addresses that Azure rejected
  ATTEMPTS     failed attempts since the last success
  LAST, NEXT   start of the last attempt, and time until the next one
For details of one row, run `sluice explain NAME`.

The state is unknown if the replica that answers is not the leader, has not completed its first sync, cannot use the \
gateway, or cannot read Kubernetes or Azure.

Exit codes: 0 shown · 1 the controller cannot be reached, or invalid arguments · 2 only with --check: \
something that is shown is in trouble, or the state is unknown";

/// The form of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Output {
    /// Human-readable table.
    Table,
    /// Table with all columns and without truncation.
    Wide,
    /// JSON for scripts.
    Json,
    /// Names only, for `sluice explain`.
    Name,
}

/// What was seen, for the exit code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Nothing that was asked about.
    Fine,
    /// `--check` was asked for, and something is in trouble or the replica cannot know.
    Trouble,
}

/// All that is shown, as JSON.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    overview: &'a Overview,
    services: Vec<&'a ServiceStatus>,
    egresses: Vec<&'a EgressStatus>,
}

fn state(word: &str) -> Result<State, String> {
    State::parse(word)
        .ok_or_else(|| format!("unknown state; expected one of {}", State::ALL.map(State::word).join(", ")))
}

/// Asks the leader and shows what it says.
pub fn run(arguments: Arguments) -> LocalBoxFuture<'static, anyhow::Result<Verdict>> {
    Box::pin(execute(arguments))
}

async fn execute(arguments: Arguments) -> anyhow::Result<Verdict> {
    if arguments.watch {
        return watch(&arguments).await;
    }
    let leader = Leader::find(&arguments.leader).await?;
    let overview: Overview = leader.get(OVERVIEW).await?;
    let chosen = arguments.filtered(everything(&leader).await?);
    if arguments.output == Output::Name {
        table::doubts(&overview).iter().for_each(|doubt| eprintln!("{doubt}"));
    }
    let mut out = std::io::stdout().lock();
    // Whoever has stopped reading misses nothing.
    let _ = out.write_all(arguments.text(&overview, &chosen, Paint::for_stdout()).as_bytes());
    Ok(if arguments.check && is_trouble(&overview, &chosen) { Verdict::Trouble } else { Verdict::Fine })
}

/// Those that are asked for, the ones in trouble first.
#[derive(Debug, Default)]
struct Chosen {
    shown: Vec<Status>,
    /// How many of the others are in trouble.
    hidden_in_trouble: usize,
}

/// Whether one of them is in trouble, or the replica cannot say that none is.
fn is_trouble(overview: &Overview, chosen: &Chosen) -> bool {
    chosen.shown.iter().any(|status| status.progress().trouble) || !table::doubts(overview).is_empty()
}

pub(crate) async fn everything(leader: &Leader) -> anyhow::Result<Vec<Status>> {
    let services: Vec<ServiceStatus> = leader.all("/api/v1/services", &[]).await?;
    let egresses: Vec<EgressStatus> = leader.all("/api/v1/egresses", &[]).await?;
    let services = services.into_iter().map(Status::Service);
    Ok(services.chain(egresses.into_iter().map(Status::Egress)).collect())
}

impl Arguments {
    fn filtered(&self, all: Vec<Status>) -> Chosen {
        let (mut shown, hidden): (Vec<Status>, Vec<Status>) =
            all.into_iter().partition(|status| self.wants(status));
        table::sort(&mut shown);
        let hidden_in_trouble = hidden.iter().filter(|status| status.progress().trouble).count();
        Chosen { shown, hidden_in_trouble }
    }

    fn wants(&self, status: &Status) -> bool {
        let in_namespace = match (&self.namespace, status) {
            (None, _) => true,
            (Some(_), Status::Egress(_)) => false,
            (Some(_), Status::Service(service)) => service.namespace == self.namespace,
        };
        let in_trouble = !self.trouble || status.progress().trouble;
        in_namespace && in_trouble && (self.state.is_empty() || self.state.contains(&status.progress().state))
    }

    fn text(&self, overview: &Overview, chosen: &Chosen, paint: Paint) -> String {
        let all = &chosen.shown;
        let lines = match self.output {
            Output::Name => all.iter().map(Status::title).collect(),
            Output::Json => vec![self.json(overview, all)],
            Output::Table | Output::Wide => {
                let mut lines = vec![table::who(overview, paint), String::new()];
                match all.is_empty() {
                    true => lines.push("No matching Services or egresses.".into()),
                    false => lines.extend(table::lines(all, self.layout(), paint)),
                }
                lines.push(String::new());
                lines.extend(table::summary(overview, chosen, paint));
                lines
            }
        };
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn layout(&self) -> Layout {
        Layout::for_stdout(self.output == Output::Wide)
    }

    fn json(&self, overview: &Overview, all: &[Status]) -> String {
        let mut shown = Shown { overview, services: Vec::new(), egresses: Vec::new() };
        for status in all {
            match status {
                Status::Service(service) => shown.services.push(service),
                Status::Egress(egress) => shown.egresses.push(egress),
            }
        }
        serde_json::to_string_pretty(&shown).unwrap_or_default()
    }
}

/// Shows what changes, until somebody has seen enough. A leader that goes away is looked for again.
async fn watch(arguments: &Arguments) -> anyhow::Result<Verdict> {
    let mut board = Board {
        arguments,
        picture: Picture::default(),
        redraws: std::io::stdout().is_terminal() && matches!(arguments.output, Output::Table | Output::Wide),
        paint: Paint::for_stdout(),
        head_shown: false,
        out: Box::new(std::io::stdout()),
        refresh: REFRESH,
    };
    let mut has_seen = false;
    loop {
        let ended = tokio::select! {
            ended = board.follow(&mut has_seen) => ended,
            _ = tokio::signal::ctrl_c() => return Ok(Verdict::Fine),
        };
        let why = match ended {
            Ok(Ended::Nobody) => return Ok(Verdict::Fine),
            Ok(Ended::Because(why)) => why,
            // Who was never reached is not waited for.
            Err(error) if !has_seen => return Err(error),
            Err(error) => format!("{error:#}"),
        };
        eprintln!("watch interrupted: {}; reconnecting to the leader", why.trim_end_matches('.'));
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            _ = tokio::signal::ctrl_c() => return Ok(Verdict::Fine),
        }
    }
}

enum Ended {
    /// Nobody reads any more.
    Nobody,
    Because(String),
}

struct Board<'a> {
    arguments: &'a Arguments,
    picture: Picture,
    /// The table is drawn again and again; otherwise there is a line for each change.
    redraws: bool,
    paint: Paint,
    head_shown: bool,
    out: Box<dyn Write>,
    /// How often the overview is asked for.
    refresh: Duration,
}

impl Board<'_> {
    async fn follow(&mut self, has_seen: &mut bool) -> anyhow::Result<Ended> {
        let leader = Leader::find(&self.arguments.leader).await?;
        let mut overview: Overview = leader.get(OVERVIEW).await?;
        let mut heard = Instant::now();
        let mut chunks = leader.events(None).await?;
        let mut reader = Reader::default();
        let mut redraw = tokio::time::interval(REDRAW);
        let mut newer = pin!(newer_overview(&leader, self.refresh));
        loop {
            let chunk = tokio::select! {
                chunk = chunks.next() => chunk?,
                answer = &mut newer => {
                    let before = std::mem::replace(&mut overview, answer?);
                    heard = Instant::now();
                    if before.role == Role::Leader && overview.role != Role::Leader {
                        return Ok(Ended::Because(format!("{} is no longer the leader", leader.name())));
                    }
                    newer.set(newer_overview(&leader, self.refresh));
                    if self.redraws && *has_seen && !self.draw(&leader, &overview, heard) {
                        return Ok(Ended::Nobody);
                    }
                    continue;
                }
                _ = redraw.tick(), if self.redraws && *has_seen => {
                    if !self.draw(&leader, &overview, heard) {
                        return Ok(Ended::Nobody);
                    }
                    continue;
                }
            };
            let Some(chunk) = chunk else {
                return Ok(Ended::Because(format!("{} closed the connection", leader.name())));
            };
            heard = Instant::now();
            reader.take(&chunk);
            while let Some(told) = reader.next() {
                match told.said()? {
                    Said::Nothing => {}
                    Said::Goodbye(goodbye) => return Ok(Ended::Because(goodbye.message)),
                    Said::Delta(delta) => {
                        let news = self.picture.apply(Instant::now(), *delta);
                        *has_seen = true;
                        let goes_on = match self.redraws {
                            true => self.draw(&leader, &overview, heard),
                            false => self.tell(&news),
                        };
                        if !goes_on {
                            return Ok(Ended::Nobody);
                        }
                    }
                }
            }
        }
    }

    /// The whole table in the place of the last one; `false` when nobody reads any more.
    fn draw(&mut self, leader: &Leader, overview: &Overview, heard: Instant) -> bool {
        let text = self.table(leader.name(), overview, heard, Instant::now());
        let text = format!("\x1b[H\x1b[2J{text}");
        self.out.write_all(text.as_bytes()).and_then(|()| self.out.flush()).is_ok()
    }

    /// The table at this moment. Without an answer for long, its times stop and it says so.
    fn table(&self, leader: &str, overview: &Overview, heard: Instant, now: Instant) -> String {
        let silence = now.saturating_duration_since(heard);
        let is_stale = silence > STALE;
        let chosen = self.arguments.filtered(self.picture.all(if is_stale { heard } else { now }));
        let mut text = self.arguments.text(overview, &chosen, self.paint);
        if is_stale {
            let warning = format!("Stale: no response from {leader} for {}.", span(silence.as_secs()));
            text.insert_str(0, &format!("{}\n\n", self.paint.bad(&warning)));
        }
        text
    }

    /// A line for each change.
    fn tell(&mut self, news: &[Status]) -> bool {
        let news = self.arguments.filtered(news.to_vec()).shown;
        let mut lines = match self.arguments.output {
            Output::Name => news.iter().map(Status::title).collect(),
            Output::Json => news.iter().filter_map(|it| serde_json::to_string(it).ok()).collect(),
            Output::Table | Output::Wide => table::lines(&news, self.arguments.layout(), self.paint),
        };
        if matches!(self.arguments.output, Output::Table | Output::Wide) {
            if self.head_shown && !lines.is_empty() {
                lines.remove(0);
            }
            self.head_shown = true;
        }
        lines.iter().all(|line| writeln!(self.out, "{line}").is_ok()) && self.out.flush().is_ok()
    }
}

/// The overview after a while.
async fn newer_overview(leader: &Leader, after: Duration) -> anyhow::Result<Overview> {
    tokio::time::sleep(after).await;
    leader.get(OVERVIEW).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use sluice_view::Delta;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;
    use table::tests::{fine, overview, parked};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn arguments(words: &[&str]) -> Arguments {
        Line::parse_from([&["status"], words].concat()).arguments
    }

    fn titles(words: &[&str]) -> Vec<String> {
        arguments(words).filtered(vec![fine(), parked()]).shown.iter().map(Status::title).collect()
    }

    #[test]
    fn filters_choose_by_namespace_and_state() {
        assert_eq!(titles(&[]), ["egress/blue", "service/shop/web"], "trouble comes first");
        assert_eq!(titles(&["--trouble"]), ["egress/blue"]);
        assert_eq!(titles(&["-n", "shop"]), ["service/shop/web"]);
        assert_eq!(titles(&["-n", "bank"]), [""; 0]);
        assert_eq!(titles(&["--state", "notstarted,Created"]).len(), 2);
        assert_eq!(titles(&["--state", "NotStarted"]), ["egress/blue"]);
        assert!(Line::try_parse_from(["status", "--state", "Ready"]).is_err());
    }

    fn chosen(words: &[&str], all: &[Status]) -> Chosen {
        arguments(words).filtered(all.to_vec())
    }

    #[test]
    fn a_check_fails_for_what_is_shown_in_trouble_and_for_a_controller_that_cannot_know() {
        let all = [fine(), parked()];
        assert!(!is_trouble(&overview(), &chosen(&[], &all[..1])));
        assert!(is_trouble(&overview(), &chosen(&[], &all)));
        assert!(!is_trouble(&overview(), &chosen(&["-n", "shop"], &all)));
        // The kinds of doubt have their test beside the sentences.
        let standby = Overview { role: Role::Standby, ..overview() };
        assert!(is_trouble(&standby, &chosen(&[], &all[..1])));
    }

    #[test]
    fn trouble_elsewhere_is_counted_when_one_namespace_is_shown() {
        let asked = arguments(&["-n", "shop"]);
        let chosen = asked.filtered(vec![fine(), parked()]);
        let text = asked.text(&overview(), &chosen, Paint::NONE);
        assert!(text.contains("\n1 Service and 1 egress; 1 in trouble, not shown here ("), "{text}");
        assert!(text.contains("service/shop/web") && !text.contains("egress/blue"), "{text}");
    }

    #[test]
    fn names_are_what_explain_takes_and_json_reads_back() {
        let all = chosen(&[], &[fine(), parked()]);
        let names = arguments(&["-o", "name"]).text(&overview(), &all, Paint::NONE);
        assert_eq!(names, "egress/blue\nservice/shop/web\n");
        let json = arguments(&["-o", "json"]).text(&overview(), &all, Paint::NONE);
        let value: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(value["services"][0]["publicIp"], "20.1.2.3");
        assert_eq!(value["egresses"][0]["why"]["code"], "SGW0008");
        assert_eq!(value["overview"]["role"], "leader");
    }

    /// A leader whose overview says something else each time it is asked for, and whose services never change.
    async fn changing_leader(overviews: Vec<Overview>) -> String {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let body = |text: String| {
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{text}", text.len())
        };
        tokio::spawn(async move {
            let mut overviews = overviews.into_iter();
            let mut streams = Vec::new();
            let mut last = String::new();
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(socket.read_u8().await.unwrap());
                }
                if head.starts_with(b"GET /api/v1/overview ") {
                    if let Some(next) = overviews.next() {
                        last = serde_json::to_string(&next).unwrap();
                    }
                    socket.write_all(body(last.clone()).as_bytes()).await.unwrap();
                } else {
                    let delta = Delta { complete: true, ..Delta::default() };
                    let delta = serde_json::to_string(&delta).unwrap();
                    let stream =
                        format!("HTTP/1.1 200 OK\r\n\r\nevent: {}\ndata: {delta}\n\n", Delta::SNAPSHOT);
                    socket.write_all(stream.as_bytes()).await.unwrap();
                    streams.push(socket);
                }
            }
        });
        address
    }

    /// Hands on what is drawn.
    struct Screen(mpsc::UnboundedSender<String>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let text = String::from_utf8_lossy(bytes).into_owned();
            self.0.send(text).map_err(std::io::Error::other)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn board(arguments: &Arguments) -> (Board<'_>, mpsc::UnboundedReceiver<String>) {
        let (sender, drawn) = mpsc::unbounded_channel();
        let board = Board {
            arguments,
            picture: Picture::default(),
            redraws: true,
            paint: Paint::NONE,
            head_shown: false,
            out: Box::new(Screen(sender)),
            refresh: Duration::ZERO,
        };
        (board, drawn)
    }

    #[tokio::test]
    async fn a_watched_table_shows_the_overview_of_the_moment() {
        let held = Overview { mass_deletion_held: 7, ..overview() };
        let address = changing_leader(vec![overview(), held]).await;
        let arguments = arguments(&["--watch", "--address", &address]);
        let (mut board, mut drawn) = board(&arguments);
        let mut has_seen = false;
        let mut tables = 0;
        let shown = async {
            while let Some(table) = drawn.recv().await {
                tables += 1;
                if table.contains("Deletion of 7 gateway services is held") {
                    return true;
                }
                if tables > 5 {
                    return false;
                }
            }
            false
        };
        tokio::select! {
            shown = shown => assert!(shown, "the overview stayed as it was at the start"),
            ended = board.follow(&mut has_seen) => panic!("the watch has ended: {:?}", ended.err()),
        }
    }

    #[tokio::test]
    async fn a_watch_looks_for_the_leader_again_when_its_own_leads_no_longer() {
        let standby = Overview { role: Role::Standby, ..overview() };
        let address = changing_leader(vec![overview(), standby]).await;
        let arguments = arguments(&["--watch", "--address", &address]);
        let (mut board, _drawn) = board(&arguments);
        match board.follow(&mut false).await.unwrap() {
            Ended::Because(why) => assert_eq!(why, format!("{address}/ is no longer the leader")),
            Ended::Nobody => panic!("the screen is there"),
        }
    }

    #[test]
    fn a_watched_table_without_answers_says_that_it_is_out_of_date_and_its_times_stop() {
        let arguments = arguments(&["--watch", "--output", "wide"]);
        let (mut board, _drawn) = board(&arguments);
        let heard = Instant::now();
        let mut delta = Delta { complete: true, ..Delta::default() };
        if let Status::Service(service) = fine() {
            delta.services.push(service);
        }
        board.picture.apply(heard, delta);
        let table =
            |silence| board.table("sluice-0", &overview(), heard, heard + Duration::from_secs(silence));
        assert!(table(5).starts_with("sluice-0 (0.1.0) is leader"), "{}", table(5));
        assert!(table(5).contains("1 h 1 min "), "{}", table(5));
        let stale = table(600);
        assert!(stale.starts_with("Stale: no response from sluice-0 for 10 min.\n"), "{stale}");
        assert!(stale.contains("1 h 1 min ") && !stale.contains("1 h 11 min"), "{stale}");
    }

    #[test]
    fn a_cluster_without_services_is_no_empty_table() {
        let text = arguments(&[]).text(&overview(), &Chosen::default(), Paint::NONE);
        assert!(text.contains("\nNo matching Services or egresses.\n") && !text.contains("NAME"), "{text}");
    }
}
