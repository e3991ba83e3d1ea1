//! The keys: path, default and description of each.
//!
//! The comment above a field is its description in `docs/reference/configuration.md`: it says what the key does and why
//! its default is what it is. A test compares defaults that also exist in the engine, the updaters or the
//! client.

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
use super::values::{LogFormat, RouteTargets, Setting as _, Share};

section! {
    /// The keys of `azure.json` that Sluice uses. It ignores all others.
    Azure {
        /// Azure cloud environment.
        "cloud" => cloud: Cloud = is("AzurePublicCloud");
        /// Tenant of the identity.
        "tenantId" => tenant_id: Option<String> =
            unset("required for a client secret, a client certificate or a workload identity")
                .ambient("AZURE_TENANT_ID");
        /// Subscription of the cluster.
        "subscriptionId" => subscription_id: String =
            required("the subscription ID, as printed by `az account show --query id`").checked(subscription);
        /// Client ID of the application or of the workload identity. The value `msi`, which AKS writes for
        /// clusters with a managed identity, is ignored.
        "aadClientId" => client_id: Option<String> =
            unset("required for a client secret, a client certificate or a workload identity")
                .ambient("AZURE_CLIENT_ID");
        /// Client secret of the application. The value `msi` is ignored.
        "aadClientSecret" => client_secret: Option<Secret> =
            unset("no client secret").ambient("AZURE_CLIENT_SECRET");
        /// File with the certificate of the application and its RSA key, in PEM. It is read again for each
        /// token, so a renewed certificate needs no restart.
        "aadClientCertPath" => client_certificate: Option<PathBuf> =
            unset("no client certificate").ambient("AZURE_CLIENT_CERTIFICATE_PATH");
        /// Use the managed identity of the machine that Sluice runs on.
        "useManagedIdentityExtension" => use_managed_identity: bool = is("false");
        /// Client ID or resource ID of a user-assigned managed identity.
        "userAssignedIdentityID" => user_assigned_identity: Option<String> =
            unset("the default identity of the machine");
        /// Use workload identity: exchange a service account token of the cluster for an Azure token.
        "useFederatedWorkloadIdentityExtension" => use_workload_identity: bool = is("false");
        /// File with the service account token for workload identity. AKS sets it for pods with the label
        /// `azure.workload.identity/use`. If the file is set and no other credential is set, Sluice uses
        /// workload identity, even if `useFederatedWorkloadIdentityExtension` is false.
        "aadFederatedTokenFile" => federated_token_file: Option<PathBuf> =
            unset("no service account token").ambient("AZURE_FEDERATED_TOKEN_FILE");
        /// Resource group of the gateway and of all resources that Sluice creates.
        "resourceGroup" => resource_group: String =
            required("the resource group of the gateway and load balancers, as listed by `az group list`")
                .checked(group);
        /// Region in which resources are created. `West Europe` is the same as `westeurope`.
        "location" => location: String =
            required("the region, as printed by `az group show --name GROUP --query location`");
        /// Virtual network of the nodes.
        "vnetName" => virtual_network: String =
            required("the virtual network of the nodes, as listed by `az network vnet list`")
                .checked(resource);
        /// Resource group of the virtual network.
        "vnetResourceGroup" => network_resource_group: Option<String> =
            unset("same as `resourceGroup`").checked(group);
        /// Subnet of the nodes. `sluice.gateway.subnet` overrides it.
        "subnetName" => subnet: Option<String> =
            unset("`sluice.gateway.subnet` must be set").checked(resource);
        /// Subscription of all network resources, if it differs from the subscription of the cluster.
        "networkResourceSubscriptionID" => network_subscription_id: Option<String> =
            unset("same as `subscriptionId`").checked(subscription);
        /// Endpoint of another Azure Resource Manager: an emulator, an Azure Stack or a private endpoint.
        /// Plain http is allowed for loopback only, because the access token is sent there.
        "resourceManagerEndpoint" => resource_manager_endpoint: Option<String> =
            unset("default of the cloud").checked(address);
    }
}

section! {
    /// Access to Azure beyond the keys of `azure.json`. A proxy is configured by `HTTPS_PROXY`, `ALL_PROXY`
    /// and `NO_PROXY`.
    Reach {
        /// `api-version` of Microsoft.Network. The default is the oldest version with all features that
        /// Sluice uses, so that it is available in each region.
        "sluice.azure.apiVersion" => api_version: String = is("2025-05-01").checked(api_version);
        /// Additional CA certificates (PEM) to trust, for example of an emulator or a TLS-inspecting proxy.
        "sluice.azure.caFile" => ca_file: Option<PathBuf> = unset("only the CAs of the system");
        /// Microsoft Entra endpoint that issues tokens. It must use https, because credentials are sent
        /// there.
        "sluice.azure.authorityHost" => authority_host: Option<String> =
            unset("default of the cloud").ambient("AZURE_AUTHORITY_HOST").checked(address);
        /// OAuth scope of the access token.
        "sluice.azure.scope" => scope: Option<String> = unset("default of the cloud");
        /// Text appended to `sluice/VERSION` in the user agent, to tell clusters apart in Azure logs.
        "sluice.azure.userAgentSuffix" => user_agent_suffix: Option<String> = unset("no suffix");
        /// Endpoint of the instance metadata service, for an emulator.
        "sluice.azure.metadataEndpoint" => metadata_endpoint: Option<String> =
            unset("the Azure endpoint, 169.254.169.254").checked(address);
        /// File with an access token to use instead of a credential, for example to run `sluice plan` with
        /// the output of `az account get-access-token`. It is read once and not renewed.
        "sluice.azure.tokenFile" => token_file: Option<PathBuf> = unset("a credential is used");
        /// Time limit for a connection, including name resolution, TCP and TLS. With leader election, it must
        /// not exceed `sluice.leaderElection.leaseDuration` minus `sluice.leaderElection.renewDeadline`. A
        /// longer limit would let a former leader send a request after another replica has become leader.
        "sluice.azure.connectTimeout" => connect_timeout: Duration = is("5s").within("100ms", "1m");
        /// Time limit for one call, up to the last byte of the response. Azure itself stops after 60 s, so a
        /// longer time has no benefit.
        "sluice.azure.responseTimeout" => response_timeout: Duration = is("1m").within("1s", "5m");
    }
}

section! {
    /// The Service Gateway.
    Gateway {
        /// Name of the gateway in `resourceGroup`. A gateway serves one cluster: Sluice does not use a
        /// gateway that belongs to another cluster.
        "sluice.gateway.name" => name: String = is("servicegateway").checked(resource);
        /// Action if the gateway is missing or the subnet is not attached to it. `ensure` creates the gateway
        /// and attaches the subnet. `verify` only reports what is missing, for networks that another team
        /// manages.
        "sluice.gateway.mode" => mode: GatewayMode = is("ensure");
        /// Subnet to attach to the gateway.
        "sluice.gateway.subnet" => subnet: Option<String> = unset("same as `subnetName`").checked(resource);
        /// Route target address of a gateway that Sluice creates: one IP address, or one of each family
        /// separated by a comma. An existing gateway keeps its address.
        "sluice.gateway.routeTargetAddress" => route_target_address: RouteTargets = unset("Azure chooses");
    }
}

section! {
    /// Settings of the whole controller.
    General {
        /// Outbound service for pods without an egress label. `ensure` creates `default-natgw` unless the
        /// gateway already has a default. `leave` creates nothing. Neither value deletes an existing default.
        "sluice.defaultOutbound" => default_outbound: DefaultOutbound = is("ensure");
        /// Value of the tag `sluice-cluster`, which marks managed resources. Do not change it while resources
        /// exist, because Sluice would treat them as resources of another cluster.
        "sluice.clusterId" => cluster_id: Option<String> =
            unset("the UID of the namespace kube-system").checked(cluster_id);
        /// Number of Services and egresses processed in parallel. The default is enough to use the whole
        /// write budget. With a higher value, operations only wait longer for the budget.
        "sluice.concurrency" => concurrency: usize = is("10").within("1", "200");
        /// Process only Services of this class, so that Sluice can run beside another service controller. If the
        /// key is not set, Sluice processes all Services without a class. The service controller of the cloud
        /// controller manager must then be disabled.
        "sluice.loadBalancerClass" => load_balancer_class: Option<String> =
            unset("process Services without a class").checked(class);
        /// Disable the mass-deletion guard. The guard holds deletions that Sluice infers from a comparison of
        /// Azure with Kubernetes. It acts on more than 5 such deletions if they are also more than 10% of all
        /// Services and egresses. Set this key only for an intended deletion, then remove it. Both changes
        /// need a restart of the controller. To allow only the deletions that are held now, run
        /// `sluice allow-deletion` instead.
        "sluice.allowMassDeletion" => allow_mass_deletion: bool = is("false");
    }
}

section! {
    /// Retries. `Retry-After` is honored in addition, and does not count as a failure.
    Retry {
        /// Initial backoff after a transient failure. It doubles with each further failure. For address updates,
        /// the first new change of an address during an outage ends the backoff early.
        "sluice.retry.backoffMin" => backoff_min: Duration = is("1s").within("100ms", "10m");
        /// Maximum backoff after a transient failure of a Service, an egress or an address update.
        "sluice.retry.backoffMax" => backoff_max: Duration = is("30s").within("100ms", "1h");
        /// Park time of a Service or egress after 12 consecutive transient failures. A park suspends its
        /// retries; then Sluice retries again. The number of retries is not limited.
        "sluice.retry.burstPark" => burst_park: Duration = is("5m").within("1s", "24h");
        /// Initial park time after an exhausted quota or a repeatedly rejected request. It doubles each time,
        /// up to 1 h. A person has to resolve both, so earlier retries would only cost calls.
        "sluice.retry.quotaParkMin" => quota_park_min: Duration = is("10m").within("1s", "1h");
        /// Initial park time after Azure denied a request because of a permission, a lock or a policy. It
        /// doubles each time, up to 1 h. A new role assignment takes up to 10 min to take effect in Azure.
        "sluice.retry.forbiddenParkMin" => forbidden_park_min: Duration = is("5m").within("1s", "1h");
    }
}

section! {
    /// Drift detection.
    Drift {
        /// Interval at which each resource kind is compared with Azure. The default uses less than 5% of the
        /// read budget with thousands of Services.
        "sluice.drift.interval" => interval: Duration = is("15m").within("10s", "24h");
        /// Delay before a difference is checked a second time, to confirm it.
        "sluice.drift.confirmAfter" => confirm_after: Duration = is("45s").within("1s", "1h");
        /// Time after a write in which new lists are ignored for the written resource. Azure lists lag behind
        /// writes. The same holds for reads, for at least 30 s.
        "sluice.drift.settle" => settle: Duration = is("30s").within("1s", "4m");
    }
}

section! {
    /// The share of the Azure rate limits that Sluice uses. The default buckets and windows are those that
    /// Azure documents; set them for a subscription with other limits.
    Budget {
        /// Share of each bucket and window that Sluice uses. The rest remains for other clients of the
        /// subscription.
        "sluice.budget.share" => share: Share = is("80%").within("1%", "100%");
        /// Capacity of the read bucket, in calls.
        "sluice.budget.reads.burst" => reads_burst: u32 = is("250").within("1", "1000000");
        /// Refill rate of the read bucket, in calls per second.
        "sluice.budget.reads.perSecond" => reads_per_second: u32 = is("25").within("1", "100000");
        /// Capacity of the write bucket, in calls.
        "sluice.budget.writes.burst" => writes_burst: u32 = is("200").within("1", "1000000");
        /// Refill rate of the write bucket, in calls per second.
        "sluice.budget.writes.perSecond" => writes_per_second: u32 = is("10").within("1", "100000");
        /// Capacity of the delete bucket, in calls.
        "sluice.budget.deletes.burst" => deletes_burst: u32 = is("200").within("1", "1000000");
        /// Refill rate of the delete bucket, in calls per second.
        "sluice.budget.deletes.perSecond" => deletes_per_second: u32 = is("10").within("1", "100000");
        /// Length of the rate limit window of Microsoft.Network.
        "sluice.budget.window" => window: Duration = is("5m").within("1s", "1h");
        /// Reads that Microsoft.Network allows per window.
        "sluice.budget.readsPerWindow" => reads_per_window: u32 = is("10000").within("1", "100000000");
        /// Writes and deletes together that Microsoft.Network allows per window.
        "sluice.budget.writesPerWindow" => writes_per_window: u32 = is("1000").within("1", "100000000");
    }
}

section! {
    /// Requests that update addresses.
    Locations {
        /// Interval at which quarantined addresses (rejected by Azure) are retried.
        "sluice.locations.quarantineRetry" => quarantine_retry: Duration = is("5m").within("1s", "24h");
    }
}

section! {
    /// Long-running Azure operations.
    Operations {
        /// Minimum interval between polls of one operation.
        "sluice.operations.pollMin" => poll_min: Duration = is("100ms").within("10ms", "1m");
        /// Maximum interval between polls of one operation. It also limits the delay of the first poll while
        /// Sluice does not know how long such operations take.
        "sluice.operations.pollMax" => poll_max: Duration = is("10s").within("10ms", "10m");
    }
}

section! {
    /// Egresses. The pod label is trusted cluster-wide, so there are limits.
    Egress {
        /// Maximum number of egresses, without the default outbound service. Each egress costs a NAT gateway
        /// and a public IP. Anyone who can label a pod can create one.
        "sluice.egress.max" => max: usize = is("50").within("0", "100000");
        /// Time that an egress is kept after its last pod is deleted. Set it to keep the public IP when a
        /// Deployment is recreated.
        "sluice.egress.linger" => linger: Duration = is("0s").within("0s", "168h");
        /// Namespaces whose pods may use an egress.
        "sluice.egress.namespaces" => namespaces: Vec<String> = unset("all namespaces").checked(namespaces);
    }
}

section! {
    /// Deletions.
    Deletion {
        /// Time that a deletion may wait for addresses before Sluice reports the addresses that block it.
        "sluice.deletion.reportAfter" => report_after: Duration = is("5m").within("1s", "24h");
    }
}

section! {
    /// Listeners.
    Listen {
        /// IP address and port of `/livez`, `/readyz` and `/metrics`. The kubelet and Prometheus connect to
        /// the pod IP. In a cluster with IPv6-only pods, use `[::]:8081`.
        "sluice.listen.health" => health: SocketAddr = is("0.0.0.0:8081");
        /// IP address and port of `/api/v1/` and the dashboard. An address other than loopback requires a
        /// token and TLS.
        "sluice.listen.api" => api: SocketAddr = is("127.0.0.1:8082");
        /// File with the bearer token that the API requires. It is reloaded when it changes. An empty file
        /// and an empty value of this key are errors.
        "sluice.listen.tokenFile" => token_file: Option<PathBuf> = unset("no token is required").filled();
        /// TLS certificate of the API with its intermediate certificates, in PEM. It is reloaded together
        /// with its key when it changes.
        "sluice.listen.tlsCertFile" => tls_certificate: Option<PathBuf> = unset("plain http");
        /// Private key of the TLS certificate, in PEM.
        "sluice.listen.tlsKeyFile" => tls_key: Option<PathBuf> = unset("plain http");
        /// Host names of the API, in addition to localhost and the IP address in `sluice.listen.api`. A
        /// request for another host is rejected, so that a web page cannot reach the API through a user's
        /// browser.
        "sluice.listen.hosts" => hosts: Vec<String> = unset("none");
    }
}

/// The upper bound of the lease and of its renewal deadline, in the form of the table.
static LONGEST_LEASE: LazyLock<String> = LazyLock::new(|| LEASE_MAX.write());

section! {
    /// Leader election among replicas.
    LeaderElection {
        /// Enable leader election. If false, run exactly one replica.
        "sluice.leaderElection.enabled" => enabled: bool = is("true");
        /// Namespace of the Lease. It must exist, and be the same for `run`, `cleanup` and `doctor`.
        "sluice.leaderElection.namespace" => namespace: Option<String> =
            unset("the namespace of the pod that Sluice runs in; outside a cluster `sluice-system`")
            .checked(namespace);
        /// Name of the Lease.
        "sluice.leaderElection.name" => name: String = is("sluice").checked(lease_name);
        /// Time without renewal after which a standby takes over. Values above the upper limit are an error,
        /// because a standby never waits longer than that.
        "sluice.leaderElection.leaseDuration" => lease_duration: Duration =
            is("15s").within("2s", &LONGEST_LEASE).checked(whole_seconds);
        /// Time after the last renewal at which the leader stops starting requests. It must be shorter than
        /// the lease duration, so that the leader has stopped before another one starts.
        "sluice.leaderElection.renewDeadline" => renew_deadline: Duration =
            is("10s").within("1s", &LONGEST_LEASE);
        /// Interval at which the leader renews the Lease and a standby checks it.
        "sluice.leaderElection.retryPeriod" => retry_period: Duration = is("2s").within("100ms", "1m");
    }
}

section! {
    /// Logs, written to standard error.
    Log {
        /// Log format: `text` for people, `json` for log collectors.
        "sluice.log.format" => format: LogFormat = is("text");
        /// Log level: `error`, `warn`, `info`, `debug` or `trace`, or comma-separated `module=level` pairs.
        /// `--log` and `RUST_LOG` override it.
        "sluice.log.level" => level: String = is("warn,sluice=info").checked(filter);
    }
}

section! {
    /// Migration from the Service Gateway mode of the cloud controller manager.
    Migration {
        /// Confirm that the Service Gateway mode of the cloud controller manager is disabled. Without this key,
        /// Sluice does not start beside a cloud controller manager that may use this mode. Set the key only for
        /// a migration. Its second step is `sluice migrate pods`.
        "sluice.migration.enabled" => enabled: bool = is("false");
    }
}

section! {
    /// The process.
    Process {
        /// Time to wait for in-flight requests after SIGTERM. The pod's `terminationGracePeriodSeconds` must
        /// be longer.
        "sluice.shutdown.grace" => shutdown_grace: Duration = is("30s").within("0s", "10m");
    }
}

/// Puts the sections together.
macro_rules! sections {
    ($($(#[$about:meta])* $field:ident: $type:ty,)*) => {
        /// The complete configuration.
        #[derive(Clone, PartialEq, Debug)]
        pub struct Config {
            $($(#[$about])* pub $field: $type,)*
            /// The proxy, from the environment variables that most tools use, not from a key.
            pub proxy: Proxy,
            /// The kind of credential, derived from the keys.
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
    /// Settings of the whole controller.
    general: General,
    /// Egresses.
    egress: Egress,
    /// Deletions.
    deletion: Deletion,
    /// Drift.
    drift: Drift,
    /// Retries.
    retry: Retry,
    /// Share of the Azure rate limits.
    budget: Budget,
    /// Addresses.
    locations: Locations,
    /// Operations.
    operations: Operations,
    /// Access to Azure.
    reach: Reach,
    /// Listeners.
    listen: Listen,
    /// Leader election.
    leader_election: LeaderElection,
    /// Logs.
    log: Log,
    /// Migration.
    migration: Migration,
    /// The process.
    process: Process,
}
