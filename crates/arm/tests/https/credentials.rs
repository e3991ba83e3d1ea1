//! Every kind of credential, by the real `azure_identity`, against a token endpoint over HTTPS.
//!
//! Managed identity: the metadata service's link-local address is replaced by an address on
//! loopback (`metadata_endpoint`), behind the transport that we give to `azure_identity`. The
//! App Service kind runs through `IDENTITY_ENDPOINT` and `IDENTITY_HEADER`, in a child process,
//! since a process cannot change its environment safely.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RSA_PSS_2048_8192_SHA256, UnparsedPublicKey};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use sluice_arm::{Client, Cloud, Credential, Pem, Secret, Settings, SetupError, UserAssigned};

use crate::authority::{CLIENT, CLIENT_SECRET, TENANT, client_secret, entra, is_for_token, token};
use crate::leaks;
use crate::server::{Act, Door, Seen, Server, json};
use crate::world::{World, answered, not_sent, public_ip_json, read, settings};

const CERTIFICATE: &str = include_str!("../keys/application.crt.pem");
const KEY: &str = include_str!("../keys/application.key.pem");
const SCOPE: &str = "https://management.azure.com/.default";

async fn with(credential: Credential) -> World {
    World::with(|settings| settings.credential = credential, entra).await
}

fn token_requests(server: &Server) -> Vec<Seen> {
    server.seen().into_iter().filter(is_for_token).collect()
}

/// One call works, and this is how the token for it was asked for.
async fn asked(world: &World) -> Seen {
    answered(&world.read().await);
    let seen = world.server.seen();
    assert_eq!(seen[1].header("authorization"), format!("Bearer {}", token(1)));
    seen[0].clone()
}

#[tokio::test]
async fn a_client_secret_buys_a_token() {
    let world = with(client_secret()).await;
    let request = asked(&world).await;
    assert_eq!((request.method.as_str(), request.path), ("POST", format!("/{TENANT}/oauth2/v2.0/token")));
    let field = |name: &str| Seen::field(&world.server.seen()[0], name);
    assert_eq!(field("grant_type"), "client_credentials");
    assert_eq!((field("client_id"), field("client_secret")), (CLIENT.into(), CLIENT_SECRET.into()));
    assert_eq!(field("scope"), SCOPE);
}

#[tokio::test]
async fn the_scope_is_the_clouds_own_or_the_one_that_was_given() {
    for (cloud, given, scope) in [
        (Cloud::UsGovernment, None, "https://management.usgovcloudapi.net/.default"),
        (
            Cloud::Public,
            Some("https://management.stack.local/1/.default"),
            "https://management.stack.local/1/.default",
        ),
    ] {
        let change = move |settings: &mut Settings| {
            settings.credential = client_secret();
            settings.cloud = cloud;
            settings.scope = given.map(str::to_owned);
        };
        let world = World::with(change, entra).await;
        assert_eq!(asked(&world).await.field("scope"), scope);
    }
}

#[tokio::test]
async fn a_certificate_signs_an_assertion_that_its_public_key_confirms() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{CERTIFICATE}{KEY}")).unwrap();
    for certificate in
        [Pem::File(file.path().to_owned()), Pem::Bytes(format!("{KEY}{CERTIFICATE}").into_bytes())]
    {
        let world = with(Credential::ClientCertificate {
            tenant: TENANT.into(),
            client_id: CLIENT.into(),
            certificate,
        })
        .await;
        let request = asked(&world).await;
        let assertion = request.field("client_assertion");
        leaks::also(&assertion);
        assert_eq!(
            request.field("client_assertion_type"),
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        );
        assert_eq!((request.field("client_id"), request.field("scope")), (CLIENT.into(), SCOPE.into()));

        let (signed, signature) = assertion.rsplit_once('.').unwrap();
        let PrivateKeyDer::Pkcs8(der) = PrivateKeyDer::from_pem_slice(KEY.as_bytes()).unwrap() else {
            panic!("the key is in PKCS#8")
        };
        let key = ring::rsa::KeyPair::from_pkcs8(der.secret_pkcs8_der()).unwrap();
        UnparsedPublicKey::new(&RSA_PSS_2048_8192_SHA256, key.public())
            .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
            .unwrap();
        let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().1).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(claims["aud"], format!("https://{}/{TENANT}/oauth2/v2.0/token", world.server.address));
        assert_eq!(claims["sub"], CLIENT);
    }
}

#[tokio::test]
async fn a_federated_token_is_read_again_for_every_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "federated-s3cr3t-1").unwrap();
    let credential = Credential::WorkloadIdentity {
        tenant: TENANT.into(),
        client_id: CLIENT.into(),
        token_file: file.path().to_owned(),
    };
    let refused_once = |seen: &Seen| match seen.number {
        2 => json(401, ""),
        _ => entra(seen),
    };
    let world = World::with(|settings| settings.credential = credential, refused_once).await;
    not_sent(&world.read().await, &["a new token"]);
    std::fs::write(file.path(), "federated-s3cr3t-2").unwrap();
    answered(&world.read().await);
    let assertions: Vec<String> =
        token_requests(&world.server).iter().map(|request| request.field("client_assertion")).collect();
    assert_eq!(assertions, ["federated-s3cr3t-1", "federated-s3cr3t-2"]);
}

/// A metadata service in plain http, and a client that uses it.
async fn with_identity(user_assigned: Option<UserAssigned>) -> (World, Server) {
    let metadata = Server::start(Door::Plain, |seen| {
        let token = token(1);
        let body = format!(
            r#"{{"access_token":"{token}","expires_in":"3599","expires_on":"4102444800","resource":"{}","token_type":"Bearer"}}"#,
            seen.field("resource"),
        );
        json(200, &body)
    })
    .await;
    let metadata_endpoint = Some(format!("http://{}", metadata.address));
    let credential = Credential::ManagedIdentity { user_assigned, metadata_endpoint };
    let world =
        World::with(|settings| settings.credential = credential, |_| json(200, &public_ip_json())).await;
    (world, metadata)
}

#[tokio::test]
async fn the_identity_of_the_machine_or_one_of_several_is_asked_for() {
    for (user_assigned, field, id) in [
        (None, "client_id", ""),
        (Some(UserAssigned::from_id("id-1")), "client_id", "id-1"),
        (Some(UserAssigned::ObjectId("id-2".into())), "object_id", "id-2"),
        (Some(UserAssigned::from_id("/subscriptions/s/id-3")), "msi_res_id", "/subscriptions/s/id-3"),
    ] {
        let (world, metadata) = with_identity(user_assigned).await;
        answered(&world.read().await);
        assert_eq!(world.server.seen()[0].header("authorization"), format!("Bearer {}", token(1)));
        let request = &metadata.seen()[0];
        assert!(request.path.starts_with("/metadata/identity/oauth2/token?"), "{}", request.path);
        assert_eq!(request.header("metadata"), "true");
        assert_eq!(request.field("resource"), "https://management.azure.com");
        assert_eq!(request.field(field), id);
    }
}

#[tokio::test]
async fn a_metadata_service_that_refuses_ends_at_once_and_says_what_to_check() {
    // A machine may be given its identity later, so even Entra's own words are no last word.
    for (status, says) in [
        (400, "Identity not found"),
        (404, "Identity not found"),
        (500, "Identity not found"),
        (400, "AADSTS700016: no such application"),
    ] {
        let metadata = Server::start(Door::Plain, move |_| {
            json(status, &format!(r#"{{"error":"invalid_request","error_description":"{says}"}}"#))
        })
        .await;
        let credential = Credential::ManagedIdentity {
            user_assigned: None,
            metadata_endpoint: Some(format!("http://{}", metadata.address)),
        };
        let world = World::with(|settings| settings.credential = credential, |_| json(200, "")).await;
        not_sent(&world.read().await, &[says, "userAssignedIdentityID", "runs in Azure"]);
        assert_eq!(metadata.seen().len(), 1, "nobody waits and tries again behind our back");
    }
}

/// Runs itself once more in a child process, where the environment can be set.
#[tokio::test]
async fn identity_endpoint_and_header_of_the_environment_are_used() {
    const IS_CHILD: &str = "SLUICE_TEST_IDENTITY_CHILD";
    if std::env::var_os(IS_CHILD).is_some() {
        let credential = Credential::ManagedIdentity { user_assigned: None, metadata_endpoint: None };
        let world =
            World::with(|settings| settings.credential = credential, |_| json(200, &public_ip_json()));
        let world = world.await;
        answered(&world.read().await);
        assert_eq!(world.server.seen()[0].header("authorization"), format!("Bearer {}", token(1)));
        return;
    }
    leaks::listen();
    let endpoint = Server::start(Door::Plain, |seen| {
        if seen.header("x-identity-header") != "header-s3cr3t" {
            return json(401, "");
        }
        json(200, &format!(r#"{{"access_token":"{}","expires_on":4102444800}}"#, token(1)))
    })
    .await;
    let run = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "credentials::identity_endpoint_and_header_of_the_environment_are_used"])
        .env("IDENTITY_ENDPOINT", format!("http://{}/token", endpoint.address))
        .env("IDENTITY_HEADER", "header-s3cr3t")
        .env(IS_CHILD, "1")
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success() && output.contains("1 passed"), "{output}");
    assert_eq!(endpoint.seen().len(), 1);
}

#[tokio::test]
async fn a_token_that_was_given_is_used_as_it_is() {
    let world = World::new(|_| json(200, &public_ip_json())).await;
    answered(&world.read().await);
    assert_eq!(world.server.seen().len(), 1);
}

#[tokio::test]
async fn the_credential_does_not_go_to_a_stranger() {
    let world = with(client_secret()).await;
    let stranger = crate::certificates::Ca::new();
    let door = Door::Tls(stranger.acceptor(&["127.0.0.1"], &["http/1.1"]));
    let impostor = Server::start(door, entra).await;
    let mut settings = settings(&world.ca, &world.server);
    settings.credential = client_secret();
    settings.authority_host = Some(format!("https://{}", impostor.address));
    let reply = Client::new(&settings).unwrap().send(&read()).await;
    not_sent(&reply, &[&impostor.address.to_string(), "unknown CA", "sluice.azure.caFile"]);
    assert_eq!((impostor.seen().len(), world.server.seen().len()), (0, 0));
}

#[tokio::test]
async fn a_credential_that_cannot_work_is_refused_before_the_first_call() {
    let world = World::new(|_| Act::Reset).await;
    let refused = |credential: Credential| -> SetupError {
        let settings = Settings { credential, ..settings(&world.ca, &world.server) };
        Client::new(&settings).unwrap_err()
    };
    let secret = |tenant: &str, client_id: &str, secret: &str| Credential::ClientSecret {
        tenant: tenant.into(),
        client_id: client_id.into(),
        secret: Secret::new(secret),
    };
    let certificate = |pem: &[u8]| Credential::ClientCertificate {
        tenant: TENANT.into(),
        client_id: CLIENT.into(),
        certificate: Pem::Bytes(pem.to_vec()),
    };
    let no_file = Credential::WorkloadIdentity {
        tenant: TENANT.into(),
        client_id: CLIENT.into(),
        token_file: PathBuf::from("/no/such/token"),
    };
    let far = Credential::ManagedIdentity {
        user_assigned: None,
        metadata_endpoint: Some("http://10.0.0.1".into()),
    };
    for (credential, says) in [
        (secret("", CLIENT, "x-s3cr3t"), "tenantId"),
        (secret("no tenant!", CLIENT, "x-s3cr3t"), "invalid tenant ID"),
        (secret(TENANT, "", "x-s3cr3t"), "aadClientId"),
        (secret(TENANT, CLIENT, " "), "aadClientSecret"),
        (certificate(b"\x30\x82..."), "openssl pkcs12"),
        (certificate(KEY.as_bytes()), "BEGIN CERTIFICATE"),
        (no_file, "/no/such/token"),
        (far, "must be https://"),
        (Credential::Token(Secret::new("")), "the token is empty"),
    ] {
        let error = refused(credential);
        assert!(error.to_string().contains(says), "{error}");
        assert!(!format!("{error} {error:?}").contains(leaks::MARK));
    }
}
