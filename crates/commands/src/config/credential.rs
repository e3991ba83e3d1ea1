//! Which of Azure's credentials is meant.
//!
//! `azure.json` has a key for each and no key that chooses. What the file or a flag says is meant;
//! two of those are refused rather than ranked, because the wrong identity fails much later and with
//! other words. What merely lies in the environment counts only when nothing else was said.

use super::keys::Config;
use super::origin::Origin;
use super::problems::Problem;
use super::table::Value;

/// Which kind of credential.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Identity {
    /// An application with a password.
    ClientSecret,
    /// An application with a certificate.
    ClientCertificate,
    /// The identity of the machine.
    ManagedIdentity,
    /// A token of the cluster, exchanged.
    WorkloadIdentity,
    /// A token that somebody else has fetched.
    TokenFile,
}

impl Identity {
    /// For people.
    pub const fn name(self) -> &'static str {
        match self {
            Identity::ClientSecret => "a client secret",
            Identity::ClientCertificate => "a client certificate",
            Identity::ManagedIdentity => "a managed identity",
            Identity::WorkloadIdentity => "a workload identity",
            Identity::TokenFile => "a token from a file",
        }
    }

    /// The key that asks for it.
    const fn key(self) -> &'static str {
        match self {
            Identity::ClientSecret => "aadClientSecret",
            Identity::ClientCertificate => "aadClientCertPath",
            Identity::ManagedIdentity => "useManagedIdentityExtension",
            Identity::WorkloadIdentity => "useFederatedWorkloadIdentityExtension",
            Identity::TokenFile => "sluice.azure.tokenFile",
        }
    }
}

/// The one that is meant, with everything it needs, or what is wrong.
pub(super) fn choose(config: &Config, values: &[Value], file: &str) -> Result<Identity, Vec<Problem>> {
    let azure = &config.azure;
    if config.reach.token_file.is_some() {
        return Ok(Identity::TokenFile);
    }
    let origin =
        |key: &str| values.iter().find(|value| value.key == key).map_or(&Origin::Default, |it| &it.origin);
    let is_ambient = |key: &str| matches!(origin(key), Origin::Ambient { .. });
    let candidates = [
        (Identity::WorkloadIdentity, azure.use_workload_identity),
        (Identity::ManagedIdentity, azure.use_managed_identity),
        (Identity::ClientSecret, azure.client_secret.is_some()),
        (Identity::ClientCertificate, azure.client_certificate.is_some()),
    ];
    let there: Vec<Identity> =
        candidates.into_iter().filter_map(|(identity, is_there)| is_there.then_some(identity)).collect();
    let mut meant: Vec<Identity> = there.iter().copied().filter(|it| !is_ambient(it.key())).collect();
    if meant.is_empty() {
        meant = there;
        if azure.federated_token_file.is_some() {
            meant.push(Identity::WorkloadIdentity);
        }
    }
    match meant.as_slice() {
        [] => Err(vec![Problem::new(
            "credential",
            "is missing; set one of useFederatedWorkloadIdentityExtension, useManagedIdentityExtension, \
             aadClientSecret (with aadClientId and tenantId) or aadClientCertPath",
        )]),
        [identity] => needs(*identity, config).map(|()| *identity),
        several => {
            let asked: Vec<String> = several
                .iter()
                .map(|identity| {
                    let key = match identity {
                        Identity::WorkloadIdentity if !azure.use_workload_identity => "aadFederatedTokenFile",
                        identity => identity.key(),
                    };
                    format!("{} by {key} ({})", identity.name(), origin(key).place(file))
                })
                .collect();
            let what = format!("more than one is configured: {}; keep one", asked.join(", and "));
            Err(vec![Problem::new("credential", what)])
        }
    }
}

/// Whether everything is there that the credential cannot do without.
fn needs(identity: Identity, config: &Config) -> Result<(), Vec<Problem>> {
    let azure = &config.azure;
    let by_id = !matches!(identity, Identity::ManagedIdentity | Identity::TokenFile);
    let missing = [
        (
            by_id && azure.tenant_id.is_none(),
            "tenantId",
            "AZURE_TENANT_ID",
            "the tenant ID, as printed by `az account show --query tenantId`",
        ),
        (
            by_id && azure.client_id.is_none(),
            "aadClientId",
            "AZURE_CLIENT_ID",
            "the client ID of the application or identity",
        ),
        (
            identity == Identity::WorkloadIdentity && azure.federated_token_file.is_none(),
            "aadFederatedTokenFile",
            "AZURE_FEDERATED_TOKEN_FILE",
            "the service account token file, which AKS mounts in pods with the label azure.workload.identity/use",
        ),
    ];
    let problems: Vec<Problem> = missing
        .into_iter()
        .filter(|(is_missing, ..)| *is_missing)
        .map(|(_, key, variable, source)| {
            let what = format!(
                "is missing, but {} requires it; set it to {source}, or set {variable}",
                identity.name()
            );
            Problem::new(key, what)
        })
        .collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
