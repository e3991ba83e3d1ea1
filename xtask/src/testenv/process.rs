//! A running control plane: the line that it prints when it is ready, and the commands that it takes.
//!
//! It holds our end of its standard input and ends when that closes: also when we are killed.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// One that is ready.
pub(crate) struct ControlPlane {
    /// Where the API server is.
    pub(crate) url: String,
    /// The file for kubectl.
    pub(crate) kubeconfig: String,
    /// The folder that has everything.
    pub(crate) dir: String,
    /// Of Kubernetes.
    pub(crate) version: String,
    process: Child,
    input: Option<ChildStdin>,
    output: Lines<BufReader<ChildStdout>>,
}

impl ControlPlane {
    /// Starts it and waits until it is ready.
    pub(crate) fn start(program: &Path) -> Result<ControlPlane, String> {
        let mut command = Command::new(program);
        command.arg("up").stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C is for us; that we end is how it hears of it, and it then clears up.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut process =
            command.spawn().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let input = process.stdin.take();
        let output = process.stdout.take().ok_or("the control plane has no output")?;
        let mut output = BufReader::new(output).lines();
        let Some(Ok(line)) = output.next() else {
            let end = process.wait().map_or_else(|error| error.to_string(), |end| end.to_string());
            return Err(format!("the control plane did not start ({end}); what it said is above"));
        };
        let field =
            |name| field(&line, name).ok_or(format!("the control plane did not say its {name}: {line}"));
        let (url, kubeconfig, dir, version) =
            (field("url")?, field("kubeconfig")?, field("dir")?, field("version")?);
        Ok(ControlPlane { url, kubeconfig, dir, version, process, input, output })
    }

    /// Gives it a command and waits for its answer, a line of JSON.
    pub(crate) fn tell(&mut self, command: &str) -> Result<String, String> {
        let input = self.input.as_mut().ok_or("the control plane is stopped")?;
        writeln!(input, "{command}")
            .map_err(|error| format!("the control plane does not listen: {error}"))?;
        match self.output.next() {
            Some(Ok(line)) => Ok(line),
            _ => Err(format!("the control plane ended at {command:?}; what it said is above")),
        }
    }

    /// Gives it a command that must succeed.
    pub(crate) fn must(&mut self, command: &str) -> Result<(), String> {
        let answer = self.tell(command)?;
        if answer.starts_with("{\"ok\":true") { Ok(()) } else { Err(format!("{command}: {answer}")) }
    }

    /// Closes its input, and waits until it has cleared up.
    pub(crate) fn stop(&mut self) -> Result<(), String> {
        self.input = None;
        self.wait()
    }

    /// Waits until it ends.
    pub(crate) fn wait(&mut self) -> Result<(), String> {
        match self.process.wait() {
            Ok(end) if end.success() => Ok(()),
            Ok(end) => Err(format!("the control plane ended with {end}")),
            Err(error) => Err(format!("the control plane was lost: {error}")),
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        // Whatever went wrong, nobody leaves before it has cleared up.
        self.input = None;
        let _ = self.process.wait();
    }
}

/// A value of the one flat line of JSON; paths with quotes or backslashes are not for us.
pub(crate) fn field(line: &str, name: &str) -> Option<String> {
    let (_, rest) = line.split_once(&format!("\"{name}\":\""))?;
    let value = rest.split('"').next()?;
    (!value.contains('\\')).then(|| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_whole_name() {
        let line = r#"{"url":"https://127.0.0.1:1","dir":"/a b","odd":"x\"y"}"#;
        assert_eq!(field(line, "url").as_deref(), Some("https://127.0.0.1:1"));
        assert_eq!(field(line, "dir").as_deref(), Some("/a b"));
        assert_eq!(field(line, "rl"), None);
        assert_eq!(field(line, "odd"), None);
    }
}
