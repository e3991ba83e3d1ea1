//! The tour of `docs/tour.md`, as a reader has it: a control plane, an emulator and a controller, and every
//! command of the page run in its order, with its output compared.
//!
//! What is made anew each time is not compared: times, addresses, node ports, UIDs, names of processes. Numbers
//! of other things are: that twenty addresses are programmed is what the page is about. A command whose output
//! is not yet what the page shows is repeated for a while, as a reader would.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::programs::target_folder;
use crate::stage::cargo_quietly;
use crate::testenv::{self, process::ControlPlane};
use crate::tree::{Tree, root};
use crate::{kubectl, packages};

/// The page.
pub(crate) const PAGE: &str = "docs/tour.md";
/// How long a command is repeated until it prints what the page shows.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long one waits before it is repeated.
const PAUSE: Duration = Duration::from_millis(500);
/// The ports of the page; others are used here, since somebody may have these.
const PORTS: [&str; 2] = ["8081", "8082"];

/// The stage.
pub(crate) fn run(tree: &Tree) -> Result<String, Vec<String>> {
    let steps = steps(tree.text(PAGE).unwrap_or(""));
    if !steps.iter().any(|step| step.shows.is_some()) {
        return Err(vec![format!("{PAGE} has no command whose output is shown")]);
    }
    cargo_quietly(&["build", "--quiet", "--release", "-p", "sluice"])?;
    let plane = ControlPlane::start(&testenv::program()?).map_err(|why| vec![why])?;
    let stage = Stage::set(&plane).map_err(|why| vec![why])?;
    let played = stage.play(&steps);
    played.map(|count| format!("{count} commands print what {PAGE} shows")).map_err(|why| vec![why])
}

/// One block of commands, and what the page shows of its output.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Step {
    pub(crate) commands: String,
    pub(crate) shows: Option<String>,
}

/// The blocks of the page. A `text` block belongs to the `sh` block before it, unless a heading or the start of
/// a process that stays (which is shown as text too) stands between them.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut open = false;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let mut block = || lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n");
        match line {
            "```sh" => {
                steps.push(Step { commands: block(), shows: None });
                open = true;
            }
            "```text" => {
                let text = block();
                if let Some(last) = steps.last_mut().filter(|_| open) {
                    last.shows = Some(text);
                } else {
                    steps.push(Step { commands: format!("# {text}"), shows: None });
                }
                open = false;
            }
            line if line.starts_with('#') => open = false,
            _ => {}
        }
    }
    steps
}

/// Where the commands run.
struct Stage {
    folder: PathBuf,
    path: String,
    kubeconfig: String,
    ports: [String; 2],
}

/// A process that ends with us.
struct Staying(Child);

impl Drop for Staying {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stage {
    fn set(plane: &ControlPlane) -> Result<Stage, String> {
        let folder = target_folder().join("tour");
        // The configuration of an earlier tour leads to an emulator that is gone.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let kubectl = kubectl::program().map_err(|why| why.join("; "))?;
        let tools =
            [target_folder().join("release"), kubectl.parent().map(Path::to_owned).unwrap_or_default()];
        let before = std::env::var("PATH").unwrap_or_default();
        let path =
            tools.iter().map(|it| it.display().to_string()).chain([before]).collect::<Vec<_>>().join(":");
        // Both are held until both are known, so that none is given twice.
        let free = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0"));
        let port = |it: &std::io::Result<TcpListener>| {
            it.as_ref().ok().and_then(|it| it.local_addr().ok()).map(|it| it.port().to_string())
        };
        let [Some(health), Some(api)] = [port(&free[0]), port(&free[1])] else {
            return Err("there is no free port".to_string());
        };
        #[cfg(unix)]
        std::os::unix::fs::symlink(root().join("docs"), folder.join("docs"))
            .map_err(|error| error.to_string())?;
        Ok(Stage { folder, path, kubeconfig: plane.kubeconfig.clone(), ports: [health, api] })
    }

    fn play(&self, steps: &[Step]) -> Result<usize, String> {
        let mut staying: Vec<Staying> = Vec::new();
        let mut compared = 0;
        for step in steps {
            if let Some(command) = step.commands.strip_prefix("# ") {
                staying.extend(self.stay(command)?);
                continue;
            }
            if step.commands.contains("cleanup") {
                // The page stops the controller with Ctrl-C before this.
                self.interrupt(&staying)?;
            }
            match &step.shows {
                None => drop(self.run(&step.commands)?),
                Some(shows) => {
                    self.until_as_shown(&step.commands, shows)?;
                    compared += 1;
                }
            }
        }
        Ok(compared)
    }

    /// Starts what stays; the control plane is there already.
    fn stay(&self, command: &str) -> Result<Option<Staying>, String> {
        let command = command.trim();
        let Some(words) =
            command.strip_prefix("cargo run --release -- ").or_else(|| command.strip_prefix("sluice "))
        else {
            return Ok(None);
        };
        let log =
            std::fs::File::create(self.folder.join(format!("{}.log", words.split(' ').next().unwrap_or(""))));
        let log = log.map_err(|error| error.to_string())?;
        let mut words: Vec<String> = words.split(' ').map(str::to_string).collect();
        if words.first().is_some_and(|word| word == "run") {
            let [health, api] = &self.ports;
            words.push(format!("--set=sluice.listen.health=127.0.0.1:{health}"));
            words.push(format!("--set=sluice.listen.api=127.0.0.1:{api}"));
        }
        let child = Command::new(target_folder().join("release/sluice"))
            .args(&words)
            .current_dir(&self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(|error| error.to_string())?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("{command}: {error}"))?;
        if words.iter().any(|word| word == "--sluice-config") {
            self.until_there(&self.folder.join("azure.yaml"))?;
        }
        Ok(Some(Staying(child)))
    }

    fn until_there(&self, path: &Path) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        while !path.is_file() {
            if Instant::now() >= end {
                return Err(format!("{} did not come", path.display()));
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Ctrl-C for the one that was started last.
    fn interrupt(&self, staying: &[Staying]) -> Result<(), String> {
        let Some(last) = staying.last() else { return Ok(()) };
        packages::run(Command::new("kill").args(["-INT", &last.0.id().to_string()]))
    }

    fn until_as_shown(&self, commands: &str, shows: &str) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let printed = self.run(commands);
            let same = printed.as_ref().is_ok_and(|printed| plain(printed) == plain(shows));
            if same {
                return Ok(());
            }
            if Instant::now() >= end {
                let printed = printed.unwrap_or_else(|why| why);
                return Err(format!("{PAGE}:\n$ {commands}\nprints\n{printed}\nand the page shows\n{shows}"));
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn run(&self, commands: &str) -> Result<String, String> {
        let mut commands = commands.to_string();
        for (shown, used) in PORTS.iter().zip(&self.ports) {
            commands = commands.replace(shown, used);
        }
        let output = Command::new("sh")
            .args(["-e", "-c", &commands])
            .current_dir(&self.folder)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("PATH", &self.path)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("sh cannot be started: {error}"))?;
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        // A plan with changes ends with 2.
        let is_plan = commands.contains("sluice plan") && output.status.code() == Some(2);
        if output.status.success() || is_plan {
            return Ok(printed);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(format!("$ {commands}\nended with {}\n{printed}{complaint}", output.status))
    }
}

/// What of an output can be compared: all of it but what has the form of something that is made anew each time.
/// A number that is just a number is compared.
pub(crate) fn plain(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(|line| words(line).join(" ")).collect()
}

fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut all = line.split_whitespace().peekable();
    while let Some(word) = all.next() {
        let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '.');
        let unit = all.next_if(|next| is_number && is_unit(next));
        let word = match unit {
            // What stands behind the unit stays: `24 s.`
            Some(unit) => format!("TIME{}", unit.trim_start_matches(char::is_alphabetic)),
            None => blurred(word),
        };
        // `1 min 3 s` and `63 s` are times alike.
        if words.last().is_some_and(|last| last == "TIME") && word.starts_with("TIME") {
            words.pop();
        }
        words.push(word);
    }
    words
}

fn is_unit(word: &str) -> bool {
    matches!(word.trim_end_matches(['.', ',', ';', ')']), "ms" | "s" | "min" | "h" | "d")
}

/// A word without what is made anew each time.
fn blurred(word: &str) -> String {
    let has_digit = word.chars().any(|c| c.is_ascii_digit());
    if !has_digit {
        return word.to_string();
    }
    if word.contains('_') && word.contains('-') {
        return "PROCESS".to_string();
    }
    let made_of = |more: &str| word.chars().all(|c| c.is_ascii_digit() || more.contains(c));
    // `75s` and `2m3s`, but not `75`; `2026-11-16T04:14:56.094Z`.
    let is_age = word.ends_with(['s', 'm', 'h', 'd']) && made_of("smhd");
    let is_moment = word.contains('T') && word.ends_with('Z') && made_of("-:.TZ");
    if is_age || is_moment {
        return "TIME".to_string();
    }
    // Operations are counted in the order in which their services come.
    if word.strip_prefix('#').is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit())) {
        return "#N".to_string();
    }
    if let Some(blurred) = ports(word).or_else(|| address(word)) {
        return blurred;
    }
    uid(word)
}

/// `80:30758/TCP`: the second is the node's, and chosen by the API server.
fn ports(word: &str) -> Option<String> {
    let (port, rest) = word.split_once(':')?;
    let (node_port, protocol) = rest.split_once('/')?;
    let is_number = |it: &str| !it.is_empty() && it.chars().all(|c| c.is_ascii_digit());
    (is_number(port) && is_number(node_port)).then(|| format!("{port}:PORT/{protocol}"))
}

/// `198.18.0.1`, `127.0.0.1:32899`, `https://127.0.0.1:23846`: an address, with its port if it has one.
fn address(word: &str) -> Option<String> {
    let (before, rest) = word.rfind('/').map_or(("", word), |at| word.split_at(at + 1));
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ':').unwrap_or(rest.len());
    let (own, after) = rest.split_at(end);
    let (own, dot) = own.strip_suffix('.').map_or((own, ""), |own| (own, "."));
    let host = own.split(':').next().unwrap_or_default();
    host.parse::<std::net::Ipv4Addr>().ok()?;
    Some(format!("{before}ADDRESS{dot}{after}"))
}

/// A UID in a word becomes `UID`: five groups of hexadecimal digits, of these lengths.
fn uid(word: &str) -> String {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    const WHOLE: usize = 36;
    let is_uid = |text: &str| {
        let groups: Vec<&str> = text.split('-').collect();
        groups.len() == LENGTHS.len()
            && groups
                .iter()
                .zip(LENGTHS)
                .all(|(group, length)| group.len() == length && group.chars().all(|c| c.is_ascii_hexdigit()))
    };
    for at in 0..word.len() {
        if let Some(part) = word.get(at..at + WHOLE).filter(|part| is_uid(part)) {
            return word.replace(part, "UID");
        }
    }
    word.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_a_row_of_commands_with_what_they_show() {
        let page = "# A\n```text\nsluice run\n```\n```sh\na\nb\n```\nand\n```text\nx\n```\n```sh\nc\n```\n";
        let step = |commands: &str, shows: Option<&str>| Step {
            commands: commands.into(),
            shows: shows.map(str::to_string),
        };
        assert_eq!(steps(page), [step("# sluice run", None), step("a\nb", Some("x")), step("c", None)]);
    }

    #[test]
    fn what_is_made_anew_is_not_compared_and_words_are() {
        let same = [
            (
                "web-0  LoadBalancer 10.96.66.111  80:30758/TCP  75s",
                "web-0 LoadBalancer 10.96.1.1 80:31111/TCP 2m3s",
            ),
            ("up for 24 s.", "up for 1 min 2 s."),
            ("operation #33 done, 198.18.0.1 published", "operation #7 done, 198.18.0.12 published"),
            ("at https://127.0.0.1:23846 answers", "at https://127.0.0.1:80 answers"),
            ("for 127.0.0.1:32899 by", "for 127.0.0.1:1 by"),
            ("2026-11-16T04:14:56.094Z 25 s ago", "2027-01-16T04:14:56Z 1 min ago"),
            ("since 1 min 3 s ago", "since 9 s ago"),
            ("laptop_3038-1a1e290af8d leads", "vm_7-1a leads"),
            ("cluster 02d13f4c-d0c4-417d-bbff-4c0433011b85", "cluster dd78c552-fd9c-4bd5-9349-484e717287a3"),
            (
                "+ registration 77dd9a1c-8f3d-4b8e-bb5c-6cf2f11d7c4d",
                "+ registration 9a1b1f0e-2d0f-4d6e-8f3f-0f6d4e5a3b21",
            ),
        ];
        for (one, two) in same {
            assert_eq!(plain(one), plain(two));
        }
        for (one, two) in [
            ("Created", "NotStarted"),
            ("✓ a", "✗ a"),
            ("a\nb", "a"),
            ("service/shop/web", "service/shop/api"),
            ("+ addresses 20", "+ addresses 0"),
            ("Created 23 s 198.18.0.1 - 20 0 20 0 23 s ago", "Created 23 s 198.18.0.1 - 20 20 0 7 23 s ago"),
            ("Plan: 48 to create", "Plan: 0 to create"),
            ("10 services and", "9 services and"),
            ("20 wanted, 0 buffered, 20 programmed", "20 wanted, 20 buffered, 0 programmed"),
            ("web-0 80:30758/TCP", "web-0 81:30758/TCP"),
            ("service/shop/web-0", "service/shop/web-1"),
            ("(0.1.0) is leader", "(0.2.0) is leader"),
            ("for 24 s", "for 24"),
        ] {
            assert_ne!(plain(one), plain(two));
        }
    }
}
