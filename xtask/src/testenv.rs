//! The real control plane that tests run against: built once from Go modules, started when asked for.
//!
//! Its sources are in `testenv/`. The build takes minutes and its result depends on nothing but those
//! sources and the version of Go, so it is kept in the [`cache`] under a name made from both.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::checks::{self, Tool};
use crate::tree::{Tree, root};
use crate::{cache, packages, parts};

/// The words that the task takes.
pub(crate) const WORDS: [&str; 3] = ["build", "up", "try"];

/// The variable that names a program that is there already.
pub(crate) const VARIABLE: &str = "SLUICE_TESTENV";

/// The oldest Go that builds it; `go.mod` says so too.
const GO_MIN: (u32, u32) = (1, 26);

/// How many programs the cache keeps: one for each of a few branches.
const KEPT: usize = 3;

/// The task: `build`, `up` or `try`.
pub(crate) fn task(words: &[String]) -> ExitCode {
    let outcome = match words {
        [word] if word == "build" => program().map(|program| println!("{}", program.display())),
        [word] if word == "up" => checks::show(&["testenv-up"], &[Tool::Testenv, Tool::Kubectl]),
        [word] if word == "try" => run(&Tree::read_repository()).map(|text| println!("{text}")),
        _ => {
            eprintln!("cargo xtask testenv build   builds the control plane and prints where it is");
            eprintln!("cargo xtask testenv up      starts one for you; Ctrl-C stops it");
            eprintln!("cargo xtask testenv try     starts one, tries it, and sees that nothing is left");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}

/// The program: the one that is given, else the one in the cache, which is built if need be.
pub(crate) fn program() -> Result<PathBuf, Vec<String>> {
    find_program().map_err(|why| vec![why])
}

fn find_program() -> Result<PathBuf, String> {
    if let Some(given) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) {
        let given = PathBuf::from(given);
        return if given.is_file() {
            Ok(given)
        } else {
            Err(format!("{VARIABLE} names {}, and there is no such program", given.display()))
        };
    }
    parts::ensure_go()?;
    let go = Go::find()?;
    let tree = Tree::read_repository();
    let sources = Sources::of(&tree);
    let folder = cache::folder()?;
    let program = folder.join(sources.name(&go));
    if program.is_file() {
        return Ok(program);
    }
    let _lock = cache::Lock::take("testenv")?;
    // The last holder of the lock may have built it.
    if !program.is_file() {
        eprintln!("building a control plane from Go modules, some minutes the first time");
        let made = folder.join("testenv.building");
        packages::run(&mut go.build(&sources.kubernetes()?, &made))
            .map_err(|why| format!("{why}; above is why the control plane could not be built"))?;
        cache::put(&made, &program)?;
        cache::keep_newest(&folder, "testenv-", KEPT);
    }
    Ok(program)
}

/// Installs Go and downloads the modules, unless the program is there already.
pub(crate) fn download() -> Result<(), String> {
    if std::env::var_os(VARIABLE).is_some_and(|value| !value.is_empty()) {
        return Ok(());
    }
    parts::ensure_go()?;
    let tree = Tree::read_repository();
    if cache::folder()?.join(Sources::of(&tree).name(&Go::find()?)).is_file() {
        return Ok(());
    }
    packages::run(&mut Go::command(&["mod", "download"])).map_err(|why| {
        format!("{why}; above is why the modules of the control plane could not be downloaded")
    })
}

/// Whether there is a Go that can build it; if not, why.
pub(crate) fn find_go() -> Result<(), String> {
    Go::find().map(|_| ())
}

/// The Go toolchain of this machine.
struct Go {
    /// What it says of itself, the machine's kind included.
    version: String,
}

impl Go {
    fn find() -> Result<Go, String> {
        let (major, minor) = GO_MIN;
        let remedy = format!("install Go {major}.{minor} or newer (https://go.dev/dl) and have `go` on PATH");
        // Asked beside `go.mod`, where Go may choose to fetch a newer one of itself.
        let output = Go::command(&["version"]).output().map_err(|error| format!("go: {error}; {remedy}"))?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_string();
        match number_of(&version) {
            Some(found) if found >= GO_MIN => Ok(Go { version }),
            _ => Err(format!("go is too old or broken ({version:?}); {remedy}")),
        }
    }

    fn command(arguments: &[&str]) -> Command {
        let mut command = parts::tool("go");
        // No C compiler, and no workspace that this checkout may lie in.
        command
            .args(arguments)
            .current_dir(root().join("testenv"))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off");
        command
    }

    /// Builds the program, with the version that the API server says it has.
    fn build(&self, kubernetes: &str, made: &Path) -> Command {
        let mut command =
            Go::command(&["build", "-trimpath", "-buildvcs=false", "-ldflags", &stamp(kubernetes)]);
        command.arg("-o").arg(made).arg(".");
        command
    }
}

/// `(1, 26)` of `go version go1.26.8 linux/amd64`.
fn number_of(version: &str) -> Option<(u32, u32)> {
    let mut parts =
        version.split_whitespace().find_map(|word| word.strip_prefix("go1."))?.split(['.', 'r', 'b']);
    Some((1, parts.next()?.parse().ok()?))
}

/// What is put into the program: Kubernetes learns its own version from its release scripts only.
fn stamp(kubernetes: &str) -> String {
    let mut numbers = kubernetes.trim_start_matches('v').split('.');
    let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
    let set = |name: &str, value: &str| format!(" -X k8s.io/component-base/version.{name}={value}");
    ["-s -w", &set("gitVersion", kubernetes), &set("gitMajor", major), &set("gitMinor", minor)].concat()
}

/// What the program is made from.
struct Sources<'a> {
    files: Vec<(&'a str, &'a str)>,
}

impl<'a> Sources<'a> {
    fn of(tree: &'a Tree) -> Sources<'a> {
        let is_source = |path: &str| {
            path.ends_with(".go") && !path.ends_with("_test.go")
                || path.ends_with("/go.mod")
                || path.ends_with("/go.sum")
        };
        Sources { files: tree.below("testenv/").filter(|(path, _)| is_source(path)).collect() }
    }

    /// The name of the program in the cache.
    fn name(&self, go: &Go) -> String {
        let texts = self.files.iter().flat_map(|(path, text)| [*path, *text]);
        format!("testenv-{}", cache::key(texts.chain([go.version.as_str(), &stamp("")])))
    }

    /// The version of Kubernetes.
    fn kubernetes(&self) -> Result<String, String> {
        self.version_of("k8s.io/kubernetes")
    }

    /// The version of a module, as `go.mod` has it.
    fn version_of(&self, module: &str) -> Result<String, String> {
        let text = self.files.iter().find(|(path, _)| path.ends_with("/go.mod")).map_or("", |(_, text)| text);
        let mut lines = text.lines().map(str::trim);
        let version = lines.find_map(|line| line.strip_prefix(module)?.strip_prefix(' '));
        version.map(str::to_string).ok_or(format!("testenv/go.mod does not say which version of {module}"))
    }
}

/// The stage: gofmt, go vet and go test pass, and a control plane starts, answers and stops.
pub(crate) fn run(_: &Tree) -> Result<String, Vec<String>> {
    parts::ensure_go().and_then(|()| sources()).map_err(|why| vec![why])?;
    checks::run(&["testenv-trial"], &[Tool::Testenv, Tool::Kubectl])
}

/// What Go's own tools say of the code that is ours alone; that of Kubernetes takes them minutes.
fn sources() -> Result<(), String> {
    match gofmt(&["-l", "."])? {
        files if files.is_empty() => {}
        files => return Err(format!("testenv: not formatted by gofmt:\n{files}")),
    }
    go(&["vet", "./internal/..."])?;
    go(&["test", "./internal/..."])?;
    Ok(())
}

/// Runs Go over our sources, and gives back what it printed.
fn go(arguments: &[&str]) -> Result<String, String> {
    spoken(&mut Go::command(arguments), &format!("go {}", arguments.join(" ")))
}

/// Runs the gofmt that came with Go.
fn gofmt(arguments: &[&str]) -> Result<String, String> {
    let program = Path::new(&go(&["env", "GOROOT"])?).join("bin").join("gofmt");
    let mut command = Command::new(program);
    spoken(command.args(arguments).current_dir(root().join("testenv")), "gofmt")
}

fn spoken(command: &mut Command, line: &str) -> Result<String, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{line}` cannot be started: {error}"))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).trim().to_string();
    if output.status.success() { Ok(said) } else { Err(format!("`{line}`:\n{said}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go_of(version: &str) -> Go {
        Go { version: version.to_string() }
    }

    #[test]
    fn the_version_of_go_is_read_from_its_own_words() {
        assert_eq!(number_of("go version go1.26.8 linux/amd64"), Some((1, 26)));
        assert_eq!(number_of("go version go1.27rc1 darwin/arm64"), Some((1, 27)));
        assert_eq!(number_of("gccgo"), None);
    }

    #[test]
    fn a_program_is_named_after_everything_that_it_is_made_from_and_nothing_else() {
        let files = [("testenv/main.go", "a"), ("testenv/go.mod", "b"), ("testenv/README.md", "c")];
        let name =
            |files: &[(&str, &str)], version: &str| Sources::of(&Tree::of(files)).name(&go_of(version));
        let first = name(&files, "go1.26.8");
        assert_eq!(name(&files[..2], "go1.26.8"), first);
        let tested = [&files[..], &[("testenv/main_test.go", "d")]].concat();
        assert_eq!(name(&tested, "go1.26.8"), first);
        assert_ne!(name(&files, "go1.26.9"), first);
        assert_ne!(name(&[("testenv/main.go", "x"), files[1]], "go1.26.8"), first);
    }

    #[test]
    fn the_page_shows_the_versions_in_go_mod() {
        let tree = Tree::read_repository();
        let page = tree.text("testenv/README.md").unwrap();
        for (part, module) in [
            ("etcd", "go.etcd.io/etcd/server/v3"),
            ("kube-apiserver", "k8s.io/kubernetes"),
            ("kube-controller-manager", "k8s.io/kubernetes"),
        ] {
            let version = Sources::of(&tree).version_of(module).unwrap();
            let row = format!("| {part} | {} |", version.trim_start_matches('v'));
            assert!(page.contains(&row), "testenv/README.md should have a row {row:?}");
        }
    }

    #[test]
    fn the_stamp_and_kubectl_are_of_the_version_in_go_mod() {
        let tree = Tree::read_repository();
        let version = Sources::of(&tree).kubernetes().unwrap();
        assert_eq!(version, format!("v{}", crate::kubectl::VERSION));
        assert!(Sources::of(&tree).version_of("k8s.io/kube").is_err());
        assert!(stamp("v1.36.3").ends_with("version.gitMinor=36"), "{}", stamp("v1.36.3"));
    }
}
