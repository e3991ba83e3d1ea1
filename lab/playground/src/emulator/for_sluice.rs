//! What `sluice run` needs of an Azure before it can begin: a virtual network with a subnet, and a
//! configuration that says where all that is.

use std::fmt;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use serde_json::json;
use sluice_emulator::{Prepared, Running};
use sluice_emulator_client::Control;

use super::greeting::Greeting;
use crate::parts::private_file;

const NETWORK: &str = "cluster";
const SUBNET: &str = "nodes";
const REGION: &str = "eastus";

/// Makes the network and writes the configuration.
pub(super) async fn prepare(
    path: &Path,
    running: &Running,
    group: &Prepared,
    greeting: &Greeting<'_>,
) -> anyhow::Result<()> {
    let id = format!(
        "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/virtualNetworks/{NETWORK}",
        group.subscription, group.group
    );
    let body = json!({
        "location": REGION,
        "properties": {
            "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
            "subnets": [{ "name": SUBNET, "properties": { "addressPrefix": "10.1.0.0/16" } }],
        },
    });
    let url = format!("https://127.0.0.1:{}", running.address().port());
    let control = Control::new(&url, running.ca_pem().as_bytes())?;
    let deed = json!({ "do": "put", "id": id, "body": body });
    control.tamper(&deed).await.context("cannot create the virtual network")?;
    // There is a secret in it.
    private_file(path)?
        .write_all(configuration(group, greeting).as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// An azure.json, in YAML, that leads here.
fn configuration(group: &Prepared, greeting: &Greeting<'_>) -> String {
    let url = greeting.running.url();
    let (client, secret) = greeting.credentials();
    let leads = LeadsToAzure {
        url: &url,
        ca: &greeting.ca(),
        tenant: super::greeting::TENANT,
        subscription: &group.subscription,
        client,
        secret,
        group: &group.group,
        region: REGION,
        network: NETWORK,
        subnet: SUBNET,
    };
    format!("# For the emulator at {url}, while it runs.\n{leads}")
}

/// The keys that lead to an emulator, as lines of an azure.json in YAML. They end within `sluice.azure`, so that
/// more of that section may follow.
pub(crate) struct LeadsToAzure<'a> {
    pub(crate) url: &'a str,
    pub(crate) ca: &'a Path,
    pub(crate) tenant: &'a str,
    pub(crate) subscription: &'a str,
    pub(crate) client: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) group: &'a str,
    pub(crate) region: &'a str,
    pub(crate) network: &'a str,
    pub(crate) subnet: &'a str,
}

impl fmt::Display for LeadsToAzure<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeadsToAzure { url, ca, tenant, subscription, client, secret, group, region, network, subnet } =
            self;
        write!(
            f,
            "\
tenantId: {tenant}
subscriptionId: {subscription}
aadClientId: {client:?}
aadClientSecret: {secret:?}
resourceGroup: {group}
location: {region}
vnetName: {network}
subnetName: {subnet}
resourceManagerEndpoint: {url}
sluice:
  azure:
    authorityHost: {url}
    scope: {url}/.default
    caFile: {ca:?}
"
        )
    }
}
