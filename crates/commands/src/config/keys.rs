//! The keys: what each is called, what holds without it, and why.
//!
//! The text above a field is what people read in `docs/configuration.md`, so it says what the key does
//! and why its default is what it is. Defaults that are also numbers of the engine, the updaters or the
//! client are compared with theirs by a test.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use sluice_arm::{Cloud, Proxy, Secret};
use sluice_engine::{DefaultOutbound, GatewayMode};
use sluice_k8s::lease::LEASE_MAX;

use super::credential::Identity;
use super::forms::{
    address, api_version, class, cluster_id, filter, group, lease_name, namespace, namespaces, resource,
    subscription, whole_seconds,
};
use super::table::{Reader, Row, Section, is, required, section, unset};
use super::values::{LogFormat, RouteTargets, Setting as _, Share, Size};

section! {
    /// The keys of `azure.json` that we use; all others there are left alone.
    Azure {
        /// Which of Azure's clouds.
        "cloud" => cloud: Cloud = is("AzurePublicCloud");
        /// The tenant that the identity is in.
        "tenantId" => tenant_id: Option<String> =
            unset("needed for every credential but a managed identity").ambient("AZURE_TENANT_ID");
        /// The subscription of the cluster.
        "subscriptionId" => subscription_id: String =
            required("what `az account show --query id` prints").checked(subscription);
        /// The application, or the identity that the cluster's token is exchanged for. `msi`, which
        /// AKS writes for clusters with a managed identity, counts as nothing.
        "aadClientId" => client_id: Option<String> =
            unset("needed for an application or a workload identity").ambient("AZURE_CLIENT_ID");
        /// The application's password. `msi` counts as nothing.
        "aadClientSecret" => client_secret: Option<Secret> =
            unset("no password").ambient("AZURE_CLIENT_SECRET");
        /// The application's certificate with its RSA key, in PEM, in one file. Read again for every
        /// token, so that a renewed one needs no restart.
        "aadClientCertPath" => client_certificate: Option<PathBuf> =
            unset("no certificate").ambient("AZURE_CLIENT_CERTIFICATE_PATH");
        /// Whether to use the identity of the machine that Sluice runs on.
        "useManagedIdentityExtension" => use_managed_identity: bool = is("false");
        /// Which identity of the machine, by client id or by resource id.
        "userAssignedIdentityID" => user_assigned_identity: Option<String> =
            unset("the machine's own identity");
        /// Whether to exchange a token of the cluster for one of Azure.
        "useFederatedWorkloadIdentityExtension" => use_workload_identity: bool = is("false");
        /// Where the cluster puts that token. If it is set (AKS does it for pods with the label
        /// `azure.workload.identity/use`) and no other credential is, it is used without the switch.
        "aadFederatedTokenFile" => federated_token_file: Option<PathBuf> =
            unset("no token of the cluster").ambient("AZURE_FEDERATED_TOKEN_FILE");
        /// The resource group of the gateway and of everything that Sluice makes.
        "resourceGroup" => resource_group: String =
            required("the resource group for gateway, load balancers and public IPs, as `az group list` names it")
                .checked(group);
        /// The region that resources are made in. `West Europe` is the same as `westeurope`.
        "location" => location: String =
            required("the region, as `az group show --name GROUP --query location` prints it");
        /// The virtual network of the nodes.
        "vnetName" => virtual_network: String =
            required("the virtual network of the nodes, as `az network vnet list` names it").checked(resource);
        /// The resource group of the virtual network.
        "vnetResourceGroup" => network_resource_group: Option<String> =
            unset("that of `resourceGroup`").checked(group);
        /// The subnet of the nodes; `sluice.gateway.subnet` wins over it.
        "subnetName" => subnet: Option<String> =
            unset("`sluice.gateway.subnet` must be set").checked(resource);
        /// The subscription of all network resources, should it be another one than the cluster's.
        "networkResourceSubscriptionID" => network_subscription_id: Option<String> =
            unset("that of `subscriptionId`").checked(subscription);
        /// Another resource manager: an emulator, an Azure Stack, a private endpoint. Plain http is
        /// for loopback only, because our token goes there.
        "resourceManagerEndpoint" => resource_manager_endpoint: Option<String> =
            unset("that of the cloud").checked(address);
    }
}

section! {
    /// How Azure is reached, beyond what `azure.json` has keys for. A proxy comes from `HTTPS_PROXY`,
    /// `ALL_PROXY` and `NO_PROXY`, as everywhere.
    Reach {
        /// The `api-version` of Microsoft.Network. The oldest one with all that we use, so that
        /// every region has it.
        "sluice.azure.apiVersion" => api_version: String = is("2025-05-01").checked(api_version);
        /// A CA to trust beside those of the system: an emulator's, or that of a proxy that looks inside.
        "sluice.azure.caFile" => ca_file: Option<PathBuf> = unset("the system's only");
        /// Another issuer of tokens. Always https, because credentials go there.
        "sluice.azure.authorityHost" => authority_host: Option<String> =
            unset("that of the cloud").ambient("AZURE_AUTHORITY_HOST").checked(address);
        /// What tokens are asked for.
        "sluice.azure.scope" => scope: Option<String> = unset("that of the cloud");
        /// Said behind `sluice/VERSION` in the user agent, so that Azure's logs tell clusters apart.
        "sluice.azure.userAgentSuffix" => user_agent_suffix: Option<String> = unset("nothing");
        /// Another address of the machine's metadata service, for an emulator.
        "sluice.azure.metadataEndpoint" => metadata_endpoint: Option<String> =
            unset("Azure's own, 169.254.169.254").checked(address);
        /// A file with a token that somebody else has fetched, instead of a credential: for a person with
        /// `az account get-access-token` who wants a plan. It is read once and not renewed.
        "sluice.azure.tokenFile" => token_file: Option<PathBuf> = unset("a credential is used");
        /// How long a connection may take, with name, TCP and TLS. Not longer than the lease outlives the renew
        /// deadline: what a leader has begun must have left before another one starts.
        "sluice.azure.connectLimit" => connect_limit: Duration = is("5s").within("100ms", "1m");
        /// How long one call may take until the last byte of its answer. Longer than Azure's own 60 s
        /// at its doors gains nothing.
        "sluice.azure.answerLimit" => answer_limit: Duration = is("1m").within("1s", "5m");
    }
}

section! {
    /// The service gateway.
    Gateway {
        /// Its name, in `resourceGroup`. A gateway serves one cluster; one that belongs to another is refused.
        "sluice.gateway.name" => name: String = is("servicegateway").checked(resource);
        /// What to do when the gateway is missing or the subnet is not attached to it: `ensure` makes
        /// it so; `verify` changes neither and says what is missing, for those whose network belongs to
        /// another team.
        "sluice.gateway.mode" => mode: GatewayMode = is("ensure");
        /// The subnet that is attached to the gateway.
        "sluice.gateway.subnet" => subnet: Option<String> = unset("that of `subnetName`").checked(resource);
        /// The route target address of a gateway that Sluice creates; two addresses, one of each family, with
        /// a comma between. A gateway that exists keeps its own.
        "sluice.gateway.routeTargetAddress" => route_target_address: RouteTargets = unset("Azure chooses");
    }
}

section! {
    /// What is said once for the whole controller.
    General {
        /// Whether the cluster gets a default outbound service: `ensure` makes `default-natgw` unless there
        /// is a default already; `leave` leaves whatever is there. Neither ever deletes it.
        "sluice.defaultOutbound" => default_outbound: DefaultOutbound = is("ensure");
        /// The value of the tag `sluice-cluster`, by which we know what is ours. Never change it while
        /// resources exist: they would be another cluster's.
        "sluice.clusterId" => cluster_id: Option<String> =
            unset("the UID of the namespace kube-system").checked(cluster_id);
        /// How many Services and egresses are worked on at once. Ten are as fast as the write budget
        /// lets them be; more only wait for it.
        "sluice.concurrency" => concurrency: usize = is("10").within("1", "200");
        /// Serve Services of this class only, and live beside another service controller. Without it
        /// Sluice is the service controller of the cluster, and the cloud controller manager's must be off.
        "sluice.loadBalancerClass" => load_balancer_class: Option<String> =
            unset("Services without a class").checked(class);
        /// Let more Services and egresses be torn down at once than is plausible (more than five and
        /// more than a tenth of all). Set it for as long as that is meant, and take it away again; to allow
        /// only what is held now, run `sluice allow-deletion` instead.
        "sluice.allowMassDeletion" => allow_mass_deletion: bool = is("false");
    }
}

section! {
    /// When what failed is tried again. `Retry-After` is obeyed besides, and is no failure.
    Retry {
        /// The first wait after a failure that may pass; it doubles.
        "sluice.retry.backoffMin" => backoff_min: Duration = is("1s").within("100ms", "10m");
        /// What that wait grows to.
        "sluice.retry.backoffMax" => backoff_max: Duration = is("30s").within("100ms", "1h");
        /// How many failures in a row lead to a longer pause.
        "sluice.retry.attempts" => attempts: u32 = is("12").within("1", "1000");
        /// That longer pause; then the next burst begins, for ever.
        "sluice.retry.burstPark" => burst_park: Duration = is("5m").within("1s", "24h");
        /// The first wait when a quota is used up or a request is refused. People have to act, so
        /// asking sooner costs calls and gains nothing.
        "sluice.retry.quotaParkMin" => quota_park_min: Duration = is("10m").within("1s", "24h");
        /// What that wait grows to.
        "sluice.retry.quotaParkMax" => quota_park_max: Duration = is("1h").within("1s", "24h");
        /// The first wait when a permission is missing or a lock or policy forbids it. A new role
        /// takes Azure up to five minutes to spread.
        "sluice.retry.forbiddenParkMin" => forbidden_park_min: Duration = is("5m").within("1s", "24h");
        /// What that wait grows to.
        "sluice.retry.forbiddenParkMax" => forbidden_park_max: Duration = is("1h").within("1s", "24h");
    }
}

section! {
    /// How changes behind our back are found.
    Drift {
        /// How often each kind of resource is compared with Azure. Fifteen minutes keep it below a
        /// twentieth of the read budget with thousands of Services.
        "sluice.drift.interval" => interval: Duration = is("15m").within("10s", "24h");
        /// How soon a difference is looked at again before it is believed.
        "sluice.drift.secondLook" => second_look: Duration = is("45s").within("1s", "1h");
        /// A listing says nothing about what was written so shortly before it began: Azure's lists lag.
        "sluice.drift.settle" => settle: Duration = is("30s").within("1s", "4m");
    }
}

section! {
    /// How much of Azure's limits we use. The buckets and windows are what Azure documents; a
    /// subscription with other ones can be told here.
    Budget {
        /// Our share of every bucket and window. The rest is for everybody else in the subscription.
        "sluice.budget.share" => share: Share = is("80%").within("1%", "100%");
        /// The part of our writes that addresses get; Services get the others. Pods that start must not
        /// wait behind five hundred new Services, nor those behind a rollout.
        "sluice.budget.locationShare" => location_share: Share = is("30%").within("5%", "95%");
        /// What the bucket for reads holds.
        "sluice.budget.reads.burst" => reads_burst: u32 = is("250").within("1", "1000000");
        /// What flows into it in a second.
        "sluice.budget.reads.perSecond" => reads_per_second: u32 = is("25").within("1", "100000");
        /// What the bucket for writes holds.
        "sluice.budget.writes.burst" => writes_burst: u32 = is("200").within("1", "1000000");
        /// What flows into it in a second.
        "sluice.budget.writes.perSecond" => writes_per_second: u32 = is("10").within("1", "100000");
        /// What the bucket for deletes holds.
        "sluice.budget.deletes.burst" => deletes_burst: u32 = is("200").within("1", "1000000");
        /// What flows into it in a second.
        "sluice.budget.deletes.perSecond" => deletes_per_second: u32 = is("10").within("1", "100000");
        /// The span in which Microsoft.Network counts.
        "sluice.budget.window" => window: Duration = is("5m").within("1s", "1h");
        /// How many reads it takes in that span.
        "sluice.budget.readsPerWindow" => reads_per_window: u32 = is("10000").within("1", "100000000");
        /// How many writes and deletes together it takes in that span.
        "sluice.budget.writesPerWindow" => writes_per_window: u32 = is("1000").within("1", "100000000");
    }
}

section! {
    /// The requests that carry addresses.
    Locations {
        /// Addresses in one request.
        "sluice.locations.addressesMax" => addresses_max: usize = is("1000").within("1", "100000");
        /// Bytes of one request.
        "sluice.locations.bytesMax" => bytes_max: Size = is("1MiB").within("4KiB", "16MiB");
        /// The first wait after a failure; it doubles, and the first new change of an outage ends it early.
        "sluice.locations.backoffMin" => backoff_min: Duration = is("1s").within("100ms", "10m");
        /// What that wait grows to.
        "sluice.locations.backoffMax" => backoff_max: Duration = is("30s").within("100ms", "1h");
        /// How often addresses that Azure refuses are tried again.
        "sluice.locations.quarantineRetry" => quarantine_retry: Duration = is("5m").within("1s", "24h");
        /// How many calls the search for a refused address may take before the rest is set aside.
        "sluice.locations.bisectCallsMax" => bisect_calls_max: u32 = is("40").within("1", "1000");
        /// After how many failures in a row it is said aloud.
        "sluice.locations.failuresReported" => failures_reported: u32 = is("12").within("1", "1000");
    }
}

section! {
    /// Operations that take a while in Azure.
    Operations {
        /// How long making or deleting a resource may take before its outcome counts as unknown and
        /// is read back.
        "sluice.operations.resourceLimit" => resource_limit: Duration = is("15m").within("1s", "2h");
        /// The same for a change of the gateway's services or addresses.
        "sluice.operations.gatewayLimit" => gateway_limit: Duration = is("3m").within("1s", "2h");
        /// How long "another operation is in progress" is waited for before it counts as a failure.
        "sluice.operations.busyLimit" => busy_limit: Duration = is("2m").within("1s", "1h");
        /// How many Services register in one call. Azure takes no more than a hundred.
        "sluice.operations.registrationsMax" => registrations_max: usize = is("100").within("1", "100");
        /// The shortest time between two questions about one operation.
        "sluice.operations.pollMin" => poll_min: Duration = is("100ms").within("10ms", "1m");
        /// Longest interval between polls; also the longest delay of the first poll while the usual duration of such operations is unknown.
        "sluice.operations.pollMax" => poll_max: Duration = is("10s").within("10ms", "10m");
    }
}

section! {
    /// Egresses: the label is cluster-wide trust, so there are limits.
    Egress {
        /// How many egresses there may be, without the default outbound. Each is a NAT gateway and a public IP that
        /// cost money, and anyone who may label a pod can create one.
        "sluice.egress.max" => max: usize = is("50").within("0", "100000");
        /// How long an egress outlives its last pod. Set it to keep the address when a Deployment
        /// is recreated.
        "sluice.egress.linger" => linger: Duration = is("0s").within("0s", "168h");
        /// The namespaces whose pods may name an egress.
        "sluice.egress.namespaces" => namespaces: Vec<String> = unset("all").checked(namespaces);
    }
}

section! {
    /// Deletions.
    Deletion {
        /// A deletion that waits longer says which addresses hold it.
        "sluice.deletion.reportAfter" => report_after: Duration = is("5m").within("1s", "24h");
    }
}

section! {
    /// Where we listen.
    Listen {
        /// Where `/livez`, `/readyz` and `/metrics` are. The kubelet and Prometheus come to the pod's
        /// address; `[::]:8081` in a cluster whose pods have IPv6 addresses only.
        "sluice.listen.health" => health: SocketAddr = is("0.0.0.0:8081");
        /// Where `/api/v1/` and the dashboard are. Anywhere but on loopback only with a token and TLS.
        "sluice.listen.api" => api: SocketAddr = is("127.0.0.1:8082");
        /// A file with the token that the API asks for. Read again when it changes. An empty file is an error, and so
        /// is an empty value of this key.
        "sluice.listen.tokenFile" => token_file: Option<PathBuf> = unset("no token is asked for").filled();
        /// The certificate of the API, in PEM, with those that signed it. Read again when it changes, with its key.
        "sluice.listen.tlsCertFile" => tls_certificate: Option<PathBuf> = unset("plain http");
        /// Its key, in PEM.
        "sluice.listen.tlsKeyFile" => tls_key: Option<PathBuf> = unset("plain http");
        /// Names by which people call the API, beside localhost and the address in `sluice.listen.api`. A request for
        /// another host is refused, so that no web page can reach it through somebody's browser.
        "sluice.listen.hosts" => hosts: Vec<String> = unset("none");
    }
}

/// The upper bound of the lease and of its renewal deadline, in the form of the table.
static LONGEST_LEASE: LazyLock<String> = LazyLock::new(|| LEASE_MAX.write());

section! {
    /// Which of several replicas works.
    LeaderElection {
        /// Whether there is one. Without it there must never be two processes.
        "sluice.leaderElection.enabled" => enabled: bool = is("true");
        /// The namespace of the Lease. It must exist, and be the same for `run`, `cleanup` and `doctor`.
        "sluice.leaderElection.namespace" => namespace: Option<String> =
            unset("the namespace of the pod that Sluice runs in; outside of a cluster `sluice-system`")
            .checked(namespace);
        /// The name of the Lease.
        "sluice.leaderElection.name" => name: String = is("sluice").checked(lease_name);
        /// How long a standby waits after the last renewal before it takes over from the leader. It never waits
        /// longer than the upper limit, whatever the Lease says: with a longer duration two replicas could
        /// lead at once.
        "sluice.leaderElection.leaseDuration" => lease_duration: Duration =
            is("15s").within("2s", &LONGEST_LEASE).checked(whole_seconds);
        /// How long after its last renewal a leader begins requests. Shorter than the lease, so
        /// that it has stopped before another starts.
        "sluice.leaderElection.renewDeadline" => renew_deadline: Duration =
            is("10s").within("1s", &LONGEST_LEASE);
        /// How often a leader renews and a standby looks.
        "sluice.leaderElection.retryPeriod" => retry_period: Duration = is("2s").within("100ms", "1m");
    }
}

section! {
    /// Logs, to the standard error.
    Log {
        /// Lines for people or JSON for collectors.
        "sluice.log.format" => format: LogFormat = is("text");
        /// What is logged: `error`, `warn`, `info`, `debug`, `trace`, or pairs of module and level with
        /// commas between. `--log` and `RUST_LOG` win over it.
        "sluice.log.level" => level: String = is("warn,sluice=info").checked(filter);
    }
}

section! {
    /// Moving from the Service Gateway mode of the cloud controller manager.
    Migration {
        /// Its Service Gateway mode is off, and its Services are to be taken over: without this nothing is begun
        /// beside one that is at work. Its finalizer `servicegateway.azure.com/pod-cleanup` is taken off pods at the
        /// start, which needs the permission to patch pods, so it is off until somebody moves.
        "sluice.migration.enabled" => enabled: bool = is("false");
    }
}

section! {
    /// The process.
    Process {
        /// How long one call to Kubernetes may take.
        "sluice.kubernetes.callLimit" => kubernetes_call_limit: Duration = is("30s").within("1s", "5m");
        /// How long what is on the wire is awaited after SIGTERM. The pod's
        /// `terminationGracePeriodSeconds` must be longer.
        "sluice.shutdown.grace" => shutdown_grace: Duration = is("30s").within("0s", "10m");
    }
}

/// Puts the sections together.
macro_rules! sections {
    ($($(#[$about:meta])* $field:ident: $type:ty,)*) => {
        /// What the operator decides.
        #[derive(Clone, PartialEq, Debug)]
        pub struct Config {
            $($(#[$about])* pub $field: $type,)*
            /// How to get out of here: from the environment, not from a key, as every tool does it.
            pub proxy: Proxy,
            /// Which of Azure's credentials is meant; follows from the keys.
            pub identity: Identity,
        }

        impl Config {
            /// Every row of the table, in order.
            pub(crate) fn rows() -> Vec<Row> {
                [$(<$type as Section>::rows()),*].into_iter().flatten().collect()
            }

            pub(crate) fn read(reader: &mut Reader, proxy: Proxy) -> Config {
                Config { $($field: <$type as Section>::read(reader),)* proxy, identity: Identity::ManagedIdentity }
            }
        }
    };
}

sections! {
    /// The keys of `azure.json`.
    azure: Azure,
    /// The gateway.
    gateway: Gateway,
    /// What is said once.
    general: General,
    /// Egresses.
    egress: Egress,
    /// Deletions.
    deletion: Deletion,
    /// Drift.
    drift: Drift,
    /// Retries.
    retry: Retry,
    /// Our share of Azure's limits.
    budget: Budget,
    /// Addresses.
    locations: Locations,
    /// Operations.
    operations: Operations,
    /// How Azure is reached.
    reach: Reach,
    /// Listeners.
    listen: Listen,
    /// The leader.
    leader_election: LeaderElection,
    /// Logs.
    log: Log,
    /// Migration.
    migration: Migration,
    /// The process.
    process: Process,
}
