//! The emulated Azure of a measurement: its names, its network, and the product's client for it.

use serde_json::json;
use sluice_arm::{Client, Credential, Pem, Secret, Settings};
use sluice_emulator_client::Greeting;
use sluice_model::names::Scope;

/// The region of all resources.
const REGION: &str = "eastus";

/// The names of all resources.
pub fn scope(greeting: &Greeting) -> Scope {
    let group = greeting.resource_group.as_deref().unwrap_or("sluice");
    Scope {
        subscription: greeting.subscription_id.as_str().into(),
        resource_group: group.into(),
        network_resource_group: group.into(),
        virtual_network: "vnet".into(),
        subnet: "nodes".into(),
        gateway: "servicegateway".into(),
        cluster_id: "bench".into(),
    }
}

/// The client of the product, with a client secret and the emulator's CA.
pub fn product_client(greeting: &Greeting) -> anyhow::Result<Client> {
    let credential = Credential::ClientSecret {
        tenant: greeting.tenant_id.clone(),
        client_id: greeting.client_id.clone(),
        secret: Secret::new(greeting.client_secret.clone()),
    };
    let mut settings = Settings::new(REGION, credential);
    settings.resource_manager_endpoint = Some(greeting.url.clone());
    settings.authority_host = Some(greeting.url.clone());
    settings.extra_ca = Some(Pem::File(greeting.ca_path.clone()));
    settings.virtual_network = Some(scope(greeting).virtual_network_id());
    Ok(Client::new(&settings)?)
}

/// Creates the virtual network and the subnet that a gateway needs, as an administrator would.
pub async fn prepare_network(emulator: &sluice_emulator_client::Client) -> anyhow::Result<()> {
    let scope = scope(&emulator.greeting);
    let network = json!({
        "location": REGION,
        "properties": {
            "addressSpace": {"addressPrefixes": ["10.0.0.0/8"]},
            "subnets": [{"name": &*scope.subnet, "properties": {"addressPrefix": "10.1.0.0/16"}}],
        },
    });
    emulator.put_and_wait(scope.virtual_network_id().as_str(), &network).await
}
