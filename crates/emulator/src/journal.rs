//! The state file: every write in the order in which it happened.
//!
//! The cloud is deterministic, so its history is its state. The first line says with which settings it
//! began; every other line is one write with its emulated time, written before its answer leaves. A time
//! without a write stands where a read made operations end, so that a restart never takes back what
//! somebody has seen. A start replays all of it.
//!
//! ```text
//! {"sluiceEmulatorJournal":1,"cloud":{"seed":0,…}}
//! {"at":1200,"http":{"method":"PUT","uri":"/subscriptions/…","body":"{…}"},"status":201}
//! {"at":3456}
//! {"at":3500,"control":"tamper","with":{"do":"delete",…}}
//! ```
//!
//! A crash can leave half a last line: whoever sent it got no answer, and it is dropped with a warning.
//! Any other line that cannot be read stops the start. Nothing is forced onto the disk: the process may
//! be killed at any time, the machine should not be.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderName, Request};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sluice_cloud::Config;
use tracing::warn;

use crate::faults::What;
use crate::settings::{read_config, show_config};

/// The form of the file; another number is another form.
const FORM: u64 = 1;
/// How a file of ours begins.
const HEAD: &str = r#"{"sluiceEmulatorJournal""#;
/// The headers that mean something for what a write does. Tokens are not among them.
const HEADERS: [HeaderName; 3] =
    [http::header::IF_MATCH, http::header::IF_NONE_MATCH, http::header::CONTENT_TYPE];

/// Why a state file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The file cannot be read or written.
    #[error("cannot use the state file {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another emulator has it.
    #[error("another emulator is using the state file {}", path.display())]
    InUse {
        /// Which.
        path: PathBuf,
    },
    /// It is some other file.
    #[error("{} is not a state file of the emulator: {why}", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// How one can tell.
        why: String,
    },
    /// A line cannot be read.
    #[error("line {line} of the state file {} cannot be read: {why}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
}

/// The file, open at its end.
#[derive(Debug)]
pub(crate) struct Journal {
    file: File,
    path: PathBuf,
    length: u64,
    /// Something was left half written and could not be taken back.
    is_torn: bool,
}

/// One line after the first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Record {
    /// Emulated milliseconds.
    pub(crate) at: u64,
    /// A request to the resource manager.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) http: Option<Recorded>,
    /// What befell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fault: Option<What>,
    /// What it was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// A call of the control API.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) control: Option<String>,
    /// Its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) with: Option<Value>,
}

/// A request to the resource manager, as far as it matters.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Recorded {
    method: String,
    uri: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    headers: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// A body that is no text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Journal {
    /// Opens a file and reads its history, or begins a new one. Says with which settings its cloud began:
    /// those of the file, where there is one.
    pub(crate) fn open(path: &Path, config: &Config) -> Result<(Journal, Config, Vec<Record>), JournalError> {
        let failed = |source| JournalError::File { path: path.to_owned(), source };
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // A new file is for its owner only, as the keys beside it are.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut journal = Journal { file, path: path.to_owned(), length: 0, is_torn: false };
        match journal.read()? {
            Some((config, records)) => Ok((journal, config, records)),
            None => {
                journal.begin(config).map_err(failed)?;
                Ok((journal, config.clone(), Vec::new()))
            }
        }
    }

    /// Forgets everything and begins anew.
    pub(crate) fn begin(&mut self, config: &Config) -> io::Result<()> {
        let head = json!({"sluiceEmulatorJournal": FORM, "cloud": show_config(config)});
        self.truncate(0)?;
        self.is_torn = false;
        self.append(head.to_string())
    }

    /// Writes one line, whole or not at all.
    pub(crate) fn write(&mut self, record: &Record) -> io::Result<()> {
        self.append(serde_json::to_string(record)?)
    }

    fn append(&mut self, mut line: String) -> io::Result<()> {
        if self.is_torn {
            return Err(io::Error::other("an earlier line is half written"));
        }
        line.push('\n');
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => {
                self.length += line.len() as u64;
                Ok(())
            }
            Err(error) => {
                self.is_torn = self.truncate(self.length).is_err();
                Err(error)
            }
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        self.length = length;
        Ok(())
    }

    /// Reads all lines; `None` if there are none.
    fn read(&mut self) -> Result<Option<(Config, Vec<Record>)>, JournalError> {
        let failed = |source| JournalError::File { path: self.path.clone(), source };
        let mut lines = BufReader::new(&self.file);
        let mut head = None;
        let mut records = Vec::new();
        let mut whole = 0u64;
        for number in 1.. {
            let mut line = Vec::new();
            let length = lines.read_until(b'\n', &mut line).map_err(failed)?;
            if length == 0 {
                break;
            }
            let known = line.len().min(HEAD.len());
            // Of a head that is torn within its first word only so much can be known.
            let is_ours = number > 1 || line[..known] == HEAD.as_bytes()[..known];
            if !is_ours {
                let why = "its first line does not say that it is".to_owned();
                return Err(JournalError::Foreign { path: self.path.clone(), why });
            }
            if line.last() != Some(&b'\n') {
                warn!(line = number, "the last line of the state file is half written and is dropped");
                break;
            }
            let bad = |why: String| JournalError::Line { path: self.path.clone(), line: number, why };
            if number == 1 {
                head = Some(self.read_head(&line)?);
            } else {
                let record: Record = serde_json::from_slice(&line).map_err(|it| bad(it.to_string()))?;
                record.check().map_err(bad)?;
                records.push(record);
            }
            whole += length as u64;
        }
        drop(lines);
        self.truncate(whole).map_err(|source| JournalError::File { path: self.path.clone(), source })?;
        Ok(head.map(|config| (config, records)))
    }

    fn read_head(&self, line: &[u8]) -> Result<Config, JournalError> {
        let bad = |why: String| JournalError::Line { path: self.path.clone(), line: 1, why };
        let head: Value = serde_json::from_slice(line).map_err(|problem| bad(problem.to_string()))?;
        if head["sluiceEmulatorJournal"] != FORM {
            let why = format!("it has form {}, and this version reads {FORM}", head["sluiceEmulatorJournal"]);
            return Err(JournalError::Foreign { path: self.path.clone(), why });
        }
        read_config(&head["cloud"]).map_err(bad)
    }
}

impl Record {
    /// A time and nothing else.
    pub(crate) fn mark(at: u64) -> Record {
        Record { at, ..Record::default() }
    }

    fn check(&self) -> Result<(), String> {
        match &self.http {
            Some(recorded) => recorded.request().map(drop),
            None => Ok(()),
        }
    }
}

impl Recorded {
    /// Writes a request down.
    pub(crate) fn of(request: &Request<Bytes>) -> Recorded {
        let headers = HEADERS.iter().filter_map(|name| {
            let value = request.headers().get(name)?.to_str().ok()?;
            Some((name.as_str().to_owned(), value.to_owned()))
        });
        let (body, base64) = match std::str::from_utf8(request.body()) {
            Ok("") => (None, None),
            Ok(text) => (Some(text.to_owned()), None),
            Err(_) => (None, Some(STANDARD.encode(request.body()))),
        };
        Recorded {
            method: request.method().to_string(),
            uri: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            headers: headers.collect(),
            body,
            base64,
        }
    }

    /// The request again.
    pub(crate) fn request(&self) -> Result<Request<Bytes>, String> {
        let body = match (&self.body, &self.base64) {
            (Some(text), None) => Bytes::from(text.clone()),
            (None, Some(text)) => Bytes::from(STANDARD.decode(text).map_err(|problem| problem.to_string())?),
            (None, None) => Bytes::new(),
            (Some(_), Some(_)) => return Err("it has two bodies".into()),
        };
        let mut request = Request::builder().method(self.method.as_str()).uri(&self.uri);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.body(body).map_err(|problem| problem.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(at: u64) -> Record {
        let request = Request::builder()
            .method("PUT")
            .uri("/subscriptions/s/resourcegroups/rg?api-version=2021-04-01")
            .header("if-match", "*")
            .header("authorization", "Bearer secret")
            .body(Bytes::from_static(b"{}"))
            .unwrap();
        let fault = Some(What::SlowBy { factor: 3 });
        Record { at, http: Some(Recorded::of(&request)), fault, status: Some(201), ..Record::default() }
    }

    fn written(lines: usize) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let config = Config { seed: 7, ..Config::default() };
        let (mut journal, ..) = Journal::open(&path, &config).unwrap();
        for at in 0..lines {
            journal.write(&record(at as u64)).unwrap();
        }
        (folder, path)
    }

    fn read(path: &Path) -> Result<(Config, Vec<Record>), JournalError> {
        Journal::open(path, &Config::default()).map(|(_, config, records)| (config, records))
    }

    #[test]
    fn what_is_written_is_read_again_with_the_settings_it_began_with() {
        let (_folder, path) = written(3);
        let (config, records) = read(&path).unwrap();
        assert_eq!(config.seed, 7);
        assert_eq!(records, [record(0), record(1), record(2)]);
        let request = records[0].http.as_ref().unwrap().request().unwrap();
        assert_eq!(request.uri().query(), Some("api-version=2021-04-01"));
        assert_eq!(request.headers()["if-match"], "*");
        assert_eq!(request.body(), "{}");
    }

    #[test]
    fn no_token_is_written() {
        let (_folder, path) = written(1);
        assert!(!std::fs::read_to_string(&path).unwrap().contains("secret"));
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_read_a_new_journal() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, path) = written(1);
        let mode = std::fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{mode:o}");
    }

    #[test]
    fn half_a_last_line_is_dropped_wherever_it_breaks_off() {
        let (_folder, path) = written(2);
        let whole = std::fs::read(&path).unwrap();
        let last = whole[..whole.len() - 1].iter().rposition(|it| *it == b'\n').unwrap() + 1;
        for length in last..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&path).unwrap().1, [record(0)], "{length}");
            // What is dropped is gone, so that the next line does not begin in the middle.
            assert_eq!(std::fs::read(&path).unwrap(), whole[..last]);
        }
    }

    #[test]
    fn half_a_first_line_is_a_new_file() {
        let (_folder, path) = written(0);
        let whole = std::fs::read(&path).unwrap();
        for length in 0..whole.len() {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(read(&path).unwrap(), (Config::default(), Vec::new()), "{length}");
        }
    }

    #[test]
    fn any_other_bad_line_stops_the_start_and_is_named() {
        for bad in [
            "nonsense",
            "{\"at\":\"soon\"}",
            "{\"at\":1,\"htp\":{}}",
            "{}",
            "{\"at\":1,\"http\":{\"method\":\"\",\"uri\":\"/\"}}",
        ] {
            let (_folder, path) = written(2);
            let text = std::fs::read_to_string(&path).unwrap();
            let mut lines: Vec<&str> = text.lines().collect();
            lines.insert(2, bad);
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
            match read(&path) {
                Err(JournalError::Line { line: 3, .. }) => {}
                other => panic!("{bad}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_file_that_is_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("letter");
        for text in ["Dear reader", "{}\n", "{\n", "Dear reader,\n\n", "{\"sluiceEmulatorJournal\":2}\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(read(&path), Err(JournalError::Foreign { .. })), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn two_emulators_cannot_have_the_same_file() {
        let (_folder, path) = written(1);
        let first = Journal::open(&path, &Config::default()).unwrap();
        assert!(matches!(read(&path), Err(JournalError::InUse { .. })));
        drop(first);
        assert!(read(&path).is_ok());
    }

    #[test]
    fn a_body_that_is_no_text_is_kept_too() {
        let request =
            Request::builder().method("PUT").uri("/").body(Bytes::from_static(b"\xff\x00")).unwrap();
        let recorded = Recorded::of(&request);
        let line = serde_json::to_string(&recorded).unwrap();
        let again: Recorded = serde_json::from_str(&line).unwrap();
        assert_eq!(again.request().unwrap().body(), request.body());
    }
}
