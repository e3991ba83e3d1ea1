//! What the emulator says once it serves: to people, to shells and to scripts.

use std::fs::{self, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_emulator::{Prepared, Running};

/// The tenant that is shown; every one does.
pub(super) const TENANT: &str = "00000000-0000-0000-0000-000000000000";
/// The client id that is shown; every one does, unless some were named.
const CLIENT: &str = "11111111-1111-1111-1111-111111111111";
/// The secret that is shown, likewise.
const SECRET: &str = "any-secret-does";

/// All that there is to say.
pub(super) struct Greeting<'a> {
    pub(super) running: &'a Running,
    /// The first client id and secret that were named.
    pub(super) client: Option<&'a (String, String)>,
    /// The first group that was named.
    pub(super) prepared: Option<&'a Prepared>,
    pub(super) state: Option<&'a Path>,
    pub(super) time_factor: f64,
    pub(super) started_in: Duration,
}

impl Greeting<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let bold = |words: &str| {
            let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            if colours { format!("\u{1b}[1m{words}\u{1b}[0m") } else { words.to_owned() }
        };
        let url = self.running.url();
        let ca = self.ca().display().to_string();
        let (client, secret) = self.credentials();
        let group = self.prepared.map_or_else(
            || "none yet; create one with PUT".to_owned(),
            |it| format!("{} in subscription {}", it.group, it.subscription),
        );
        let clock = if self.time_factor == 1.0 {
            "real time".to_owned()
        } else {
            format!("{} times as fast as real time", self.time_factor)
        };
        let state = self.state.map_or_else(
            || "in memory; use --state FILE to keep it".to_owned(),
            |path| format!("{}", path.display()),
        );
        let plain =
            self.running.http_url().map(|url| format!("  Plain HTTP        {url}\n")).unwrap_or_default();
        let subscription = self.prepared.map_or(TENANT, |it| &it.subscription);
        let resource_group = self.prepared.map_or("my-group", |it| &it.group);
        format!(
            "{title}, in {started} ms

  Resource manager  {url}
  Token authority   {url}  ({who})
  CA certificate    {ca}
{plain}  Control API       {url}/_emulator/
  Resource group    {group}
  Clock             {clock}
  State             {state}

{python} (azure-identity, azure-mgmt-network), with REQUESTS_CA_BUNDLE={ca}

  from azure.identity import ClientSecretCredential
  from azure.mgmt.network import NetworkManagementClient
  azure = \"{url}\"
  credential = ClientSecretCredential(\"{TENANT}\", \"{client}\", \"{secret}\",
                                      authority=azure, disable_instance_discovery=True)
  network = NetworkManagementClient(credential, \"{subscription}\",
                                    base_url=azure, credential_scopes=[azure + \"/.default\"],
                                    polling_interval=1)
  print([it.name for it in network.public_ip_addresses.list(\"{resource_group}\")])

{shell}, to see the resources and a summary of the requests

  curl --cacert {ca} {url}/_emulator/state
  curl --cacert {ca} {url}/_emulator/requests/summary

Environment variables for other clients: --print-env. Stop with Ctrl-C.",
            title = bold("Azure emulator ready on this machine"),
            started = self.started_in.as_millis(),
            who = if self.client.is_some() {
                "only the clients of --client"
            } else {
                "any client ID and secret"
            },
            python = bold("Python"),
            shell = bold("curl"),
        )
    }

    /// For shells.
    pub(super) fn environment(&self) -> String {
        let url = self.running.url();
        let ca = self.ca().display().to_string();
        let (client, secret) = self.credentials();
        let identity = self.running.http_url().unwrap_or_else(|| url.clone());
        let subscription = self.prepared.map_or(TENANT, |it| &it.subscription).to_owned();
        let mut lines = vec![
            ("AZURE_AUTHORITY_HOST", url.clone()),
            ("AZURE_TENANT_ID", TENANT.to_owned()),
            ("AZURE_CLIENT_ID", client.to_owned()),
            ("AZURE_CLIENT_SECRET", secret.to_owned()),
            ("AZURE_SUBSCRIPTION_ID", subscription),
        ];
        if let Some(prepared) = self.prepared {
            lines.push(("AZURE_RESOURCE_GROUP", prepared.group.clone()));
        }
        lines.extend([
            ("AZURE_RESOURCE_MANAGER_ENDPOINT", url.clone()),
            ("ARM_CLOUD_METADATA_URL", format!("{url}/metadata/endpoints?api-version=2020-06-01")),
            ("IDENTITY_ENDPOINT", format!("{identity}/msi/token")),
            ("IDENTITY_HEADER", self.running.identity_header()),
            ("REQUESTS_CA_BUNDLE", ca.clone()),
            ("SSL_CERT_FILE", ca.clone()),
            ("CURL_CA_BUNDLE", ca.clone()),
            ("NODE_EXTRA_CA_CERTS", ca),
            ("SLUICE_EMULATOR", format!("{url}/_emulator/")),
        ]);
        let lines: Vec<String> =
            lines.into_iter().map(|(name, value)| format!("export {name}={}", quoted(&value))).collect();
        lines.join("\n")
    }

    /// For scripts.
    pub(super) fn json(&self) -> Value {
        let (client, secret) = self.credentials();
        let running = self.running;
        let identity = running.http_url().unwrap_or_else(|| running.url());
        json!({
            "url": running.url(),
            "httpUrl": running.http_url(),
            "controlUrl": format!("{}/_emulator/", running.url()),
            "caPath": self.ca(),
            "tenantId": TENANT,
            "clientId": client,
            "clientSecret": secret,
            "subscriptionId": self.prepared.map_or(TENANT, |it| &it.subscription),
            "resourceGroup": self.prepared.map(|it| &it.group),
            "identityEndpoint": format!("{identity}/msi/token"),
            "identityHeader": running.identity_header(),
            "timeFactor": self.time_factor,
            "state": self.state,
            "pid": std::process::id(),
            "startedInMs": u64::try_from(self.started_in.as_millis()).unwrap_or(u64::MAX),
        })
    }

    /// Writes the line for scripts so that nobody can read half of it, and nobody else the secret in it.
    pub(super) fn write_ready_file(&self, path: &Path) -> io::Result<()> {
        let mut unready = path.as_os_str().to_owned();
        unready.push(".part");
        // What an earlier life left behind may have other permissions.
        match fs::remove_file(&unready) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&unready)?.write_all(format!("{}\n", self.json()).as_bytes())?;
        fs::rename(&unready, path)
    }

    pub(super) fn credentials(&self) -> (&str, &str) {
        self.client.map_or((CLIENT, SECRET), |(client, secret)| (client, secret))
    }

    /// The CA's path, good in every folder.
    pub(super) fn ca(&self) -> PathBuf {
        let path = self.running.ca_path();
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }
}

/// A word for a POSIX shell.
fn quoted(word: &str) -> String {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./:=".contains(it);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_a_shell_would_read_otherwise_are_quoted() {
        assert_eq!(quoted("https://127.0.0.1:8443"), "https://127.0.0.1:8443");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$(rm)"), "'$(rm)'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("x?y"), "'x?y'");
    }
}
