//! Turns a credential into tokens, by way of `azure_identity`.
//!
//! A credential of theirs is made for every fetch and thrown away: it keeps a cache that cannot
//! be told to forget, and [`crate::tokens`] wants a new token when it asks for one. That also
//! reads certificates and federated tokens anew each time, as their rotation needs.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use azure_core::cloud::{CloudConfiguration, CustomConfiguration};
use azure_core::credentials::TokenCredential;
use azure_core::http::{ClientMethodOptions, ClientOptions, RetryOptions, Transport};
use azure_identity::{
    ClientAssertion, ClientAssertionCredential, ClientAssertionCredentialOptions, ClientSecretCredential,
    ClientSecretCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId, WorkloadIdentityCredential, WorkloadIdentityCredentialOptions,
};
use url::Url;

use crate::certificate::Certificate;
use crate::connection::Connections;
use crate::error::SetupError;
use crate::issuer_transport::IssuerTransport;
use crate::secret::{self, Secret};
use crate::settings::{self, Credential, Limits, Places, Settings, UserAssigned};
use crate::tokens::{Fetched, Fetching, NoToken, Source};

/// How long a token that somebody else fetched is taken for good; Azure will say.
const GIVEN_TOKEN_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Whoever issues our tokens.
pub(crate) struct Issuer {
    credential: Credential,
    places: Places,
    metadata: Option<Url>,
    http: reqwest::Client,
    proxy: Option<String>,
    limits: Limits,
}

impl Issuer {
    /// Looks at everything that can be wrong before the first token is needed.
    pub(crate) fn new(
        settings: &Settings,
        places: &Places,
        connections: &Connections,
    ) -> Result<Issuer, SetupError> {
        let metadata = match &settings.credential {
            Credential::ManagedIdentity { metadata_endpoint: Some(text), .. } => {
                let setting = "sluice.azure.metadataEndpoint";
                let url = settings::bare(setting, text)?;
                if url.scheme() != "https" && !settings::is_near(&url) {
                    let why =
                        "must be https://, because it issues tokens (http:// only on loopback or link-local)";
                    let value = text.clone();
                    return Err(SetupError::Setting { setting, value, why: why.to_owned() });
                }
                Some(url)
            }
            _ => None,
        };
        let issuer = Issuer {
            credential: settings.credential.clone(),
            places: places.clone(),
            metadata,
            http: connections.identity.clone(),
            proxy: connections.proxy.clone(),
            limits: settings.limits.clone(),
        };
        issuer.check()?;
        Ok(issuer)
    }

    fn check(&self) -> Result<(), SetupError> {
        let missing =
            |what: &str, keys: &str| Err(SetupError::Credential(format!("{what} is empty; set {keys}")));
        match &self.credential {
            Credential::ClientSecret { tenant, client_id, .. }
            | Credential::ClientCertificate { tenant, client_id, .. }
            | Credential::WorkloadIdentity { tenant, client_id, .. } => {
                if tenant.is_empty() {
                    return missing("the tenant ID", "tenantId or AZURE_TENANT_ID");
                }
                if client_id.is_empty() {
                    return missing("the client ID", "aadClientId or AZURE_CLIENT_ID");
                }
            }
            Credential::ManagedIdentity { .. } | Credential::Token(_) => {}
        }
        match &self.credential {
            Credential::ClientSecret { secret, .. } if secret.is_empty() => {
                return missing("the client secret", "aadClientSecret or AZURE_CLIENT_SECRET");
            }
            Credential::Token(token) if token.is_empty() => {
                return missing("the token", "sluice.azure.tokenFile");
            }
            Credential::ClientCertificate { certificate, .. } => {
                Certificate::read(certificate)?;
            }
            Credential::WorkloadIdentity { token_file, .. } => {
                let what = "the federated token (AZURE_FEDERATED_TOKEN_FILE)";
                std::fs::File::open(token_file).map_err(|source| SetupError::File {
                    what,
                    path: token_file.clone(),
                    source,
                })?;
            }
            _ => {}
        }
        self.source(Arc::new(self.transport())).map(|_| ()).map_err(SetupError::Credential)
    }

    fn transport(&self) -> IssuerTransport {
        let secret = match &self.credential {
            Credential::ClientSecret { secret, .. } => Some(secret.clone()),
            _ => None,
        };
        IssuerTransport {
            http: self.http.clone(),
            proxy: self.proxy.clone(),
            limits: self.limits.clone(),
            metadata: self.metadata.clone(),
            secret,
            trouble: Mutex::default(),
        }
    }

    /// A credential of theirs; `None` for a token that needs no fetching.
    fn source(&self, transport: Arc<IssuerTransport>) -> Result<Option<Arc<dyn TokenCredential>>, String> {
        // Always said, or the environment would be asked behind our back.
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host = self.places.authority.to_string();
        let client_options = ClientOptions {
            retry: RetryOptions::none(),
            transport: Some(Transport::new(transport)),
            cloud: Some(Arc::new(CloudConfiguration::Custom(cloud))),
            ..ClientOptions::default()
        };
        let made: azure_core::Result<Arc<dyn TokenCredential>> = match &self.credential {
            Credential::Token(_) => return Ok(None),
            Credential::ClientSecret { tenant, client_id, secret } => {
                let options = ClientSecretCredentialOptions { client_options };
                let secret = secret.reveal().to_owned().into();
                ClientSecretCredential::new(tenant, client_id.clone(), secret, Some(options))
                    .map(|it| it as _)
            }
            Credential::ClientCertificate { tenant, client_id, certificate } => {
                let options = ClientAssertionCredentialOptions { client_options };
                let assertion = self.assertion(tenant, client_id, certificate)?;
                ClientAssertionCredential::new(tenant.clone(), client_id.clone(), assertion, Some(options))
                    .map(|it| it as _)
            }
            Credential::ManagedIdentity { user_assigned, .. } => {
                let user_assigned_id = user_assigned.as_ref().map(|identity| match identity {
                    UserAssigned::ClientId(id) => UserAssignedId::ClientId(id.clone()),
                    UserAssigned::ObjectId(id) => UserAssignedId::ObjectId(id.clone()),
                    UserAssigned::ResourceId(id) => UserAssignedId::ResourceId(id.clone()),
                });
                let options = ManagedIdentityCredentialOptions { user_assigned_id, client_options };
                ManagedIdentityCredential::new(Some(options)).map(|it| it as _)
            }
            Credential::WorkloadIdentity { tenant, client_id, token_file } => {
                let options = WorkloadIdentityCredentialOptions {
                    credential_options: ClientAssertionCredentialOptions { client_options },
                    client_id: Some(client_id.clone()),
                    tenant_id: Some(tenant.clone()),
                    token_file_path: Some(token_file.clone()),
                };
                WorkloadIdentityCredential::new(Some(options)).map(|it| it as _)
            }
        };
        made.map(Some).map_err(|error| secret::scrub(&error.to_string(), None))
    }

    fn assertion(&self, tenant: &str, client_id: &str, pem: &settings::Pem) -> Result<Assertion, String> {
        let certificate = Certificate::read(pem).map_err(|error| error.to_string())?;
        let mut audience = self.places.authority.clone();
        audience.set_path(&format!("/{tenant}/oauth2/v2.0/token"));
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let signed = certificate.assertion(client_id, audience.as_str(), now);
        signed
            .map(|text| Assertion(Secret::new(text)))
            .map_err(|_| "cannot sign the client assertion with the private key".to_owned())
    }

    async fn token(&self) -> Result<Fetched, NoToken> {
        if let Credential::Token(token) = &self.credential {
            return Ok(Fetched { token: token.clone(), good_for: Some(GIVEN_TOKEN_LIFE) });
        }
        let transport = Arc::new(self.transport());
        let source = self.source(transport.clone())?.expect("every other credential has a source");
        let token = source.get_token(&[&self.places.scope], None).await.map_err(|error| {
            let Some(said) = transport.said() else { return secret::scrub(&error.to_string(), None).into() };
            let text = match advice(&self.credential, said.refusal.as_deref()) {
                "" => said.text,
                advice => format!("{}; {advice}", said.text),
            };
            // A machine may be given its identity after it has started, so that refusal passes.
            let is_machines = matches!(self.credential, Credential::ManagedIdentity { .. });
            NoToken { text, wait: said.wait, for_people: said.is_denial && !is_machines }
        })?;
        let good_for = SystemTime::from(token.expires_on).duration_since(SystemTime::now()).ok();
        Ok(Fetched {
            token: Secret::new(token.token.secret()),
            good_for: good_for.filter(|it| !it.is_zero()),
        })
    }
}

impl Source for Issuer {
    fn fetch(&self) -> Fetching<'_> {
        Box::pin(self.token())
    }
}

/// What a person can do, as far as Entra's number of a refusal or the kind of credential says.
fn advice(credential: &Credential, refusal: Option<&str>) -> &'static str {
    if let Credential::ManagedIdentity { .. } = credential {
        return "check that this machine runs in Azure and has the identity; if it has several, set userAssignedIdentityID";
    }
    // What went wrong on the way explains itself.
    let Some(number) = refusal else { return "" };
    match number {
        "90002" | "900023" => "check tenantId",
        "700016" => "check aadClientId, and that the application is in this tenant (tenantId)",
        "500011" => "check cloud and sluice.azure.scope; this tenant does not know the resource",
        "7000215" | "7000222" => "create a new client secret and set aadClientSecret",
        "700027" => "upload this certificate to the application in Entra, or renew it if it has expired",
        "70021" | "700211" | "700212" | "700213" => {
            "check issuer, subject and audience of the federated credential in Entra"
        }
        "" => "check sluice.azure.authorityHost; if it is correct, the token issuer is failing",
        _ => "check the application in Entra",
    }
}

/// An assertion that has been signed.
#[derive(Debug)]
struct Assertion(Secret);

#[async_trait::async_trait]
impl ClientAssertion for Assertion {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        Ok(self.0.reveal().to_owned())
    }
}
