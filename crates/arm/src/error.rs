//! Why there is no client, grouped by what a person can do about it.
//!
//! What goes wrong with a single call is no error of this type: it is in the reply, because
//! the updaters decide what to do about it.

use std::path::PathBuf;

/// Why a client cannot be made from these settings. The text says how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// An address, or another setting that is one line of text, must be written differently.
    #[error("invalid {setting} `{value}`: {why}")]
    Setting {
        /// Which setting.
        setting: &'static str,
        /// What it says.
        value: String,
        /// What is wrong and what to write instead.
        why: String,
    },

    /// There is nothing to check Azure's certificates against.
    #[error(
        "no root certificates found on this machine, so Sluice cannot verify server certificates; install the \
         package ca-certificates, set SSL_CERT_FILE to a bundle, or set sluice.azure.caFile"
    )]
    NoRoots,

    /// A file is missing or must not be read by us.
    #[error("cannot read {what} {}: {source}; check the path, the mount and the permissions", path.display())]
    File {
        /// What the file should hold.
        what: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },

    /// A file is there, and what is in it cannot be used.
    #[error("cannot use {what} {from}: {why}")]
    Content {
        /// What it should hold.
        what: &'static str,
        /// Where it came from.
        from: String,
        /// What is wrong and what to do.
        why: String,
    },

    /// A setting of the credential is missing or cannot be right.
    #[error("invalid credential: {0}")]
    Credential(String),

    /// The HTTP client could not be made; nothing in the settings explains it.
    #[error("cannot create the HTTP client: {0}; this is a bug in Sluice, please report it")]
    Internal(String),
}

impl SetupError {
    /// A fixed word for metrics and tests.
    pub const fn word(&self) -> &'static str {
        match self {
            SetupError::Setting { .. } => "setting",
            SetupError::NoRoots => "no-roots",
            SetupError::File { .. } => "file",
            SetupError::Content { .. } => "content",
            SetupError::Credential(_) => "credential",
            SetupError::Internal(_) => "internal",
        }
    }
}

/// Why there is no token.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct NoCredential {
    /// Who, what, and what to do.
    pub text: String,
    /// Its issuer has looked at our credential and refuses it, so waiting does not help.
    pub is_refused: bool,
}
