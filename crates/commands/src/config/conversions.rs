//! What the parts of the program are told.
//!
//! Every struct is written out in full and every section taken apart in full: a new number somewhere
//! stops the compiler here until somebody has decided whether people may set it.

use std::sync::Arc;
use std::time::Duration;

use sluice_arm::{Credential, Pem, Secret, Settings, SetupError, UserAssigned};
use sluice_engine::addresses;
use sluice_k8s::connect::CONNECT_LIMIT;
use sluice_k8s::convert::Selection;
use sluice_k8s::lease::Timing;
use sluice_model::names::Scope;
use sluice_updater::{BucketSize, PollSchedule};

use super::credential::Identity;
use super::keys::{
    Azure, Budget, Config, Deletion, Drift, Egress, Gateway, General, LeaderElection, Locations, Operations,
    Process, Reach, Retry,
};

/// How much longer the updaters wait for an answer than the client: its words are better than theirs.
const LONGER_THAN_THE_CLIENT: Duration = Duration::from_secs(5);
/// And the loop again, should both forget.
const LONGER_THAN_THE_UPDATERS: Duration = Duration::from_secs(25);

impl Config {
    /// Where our resources live.
    pub fn scope(&self, cluster_id: &str) -> Scope {
        let azure = &self.azure;
        let subnet = self.gateway.subnet.as_deref().or(azure.subnet.as_deref());
        Scope {
            subscription: azure.network_subscription_id.as_deref().unwrap_or(&azure.subscription_id).into(),
            resource_group: azure.resource_group.as_str().into(),
            network_resource_group: azure
                .network_resource_group
                .as_deref()
                .unwrap_or(&azure.resource_group)
                .into(),
            virtual_network: azure.virtual_network.as_str().into(),
            subnet: subnet.expect("the checks reject a configuration without a subnet").into(),
            gateway: self.gateway.name.as_str().into(),
            cluster_id: cluster_id.into(),
        }
    }

    /// What the engine is told. The cluster id is the configured one, else the UID of kube-system.
    pub fn engine(&self, cluster_id: &str) -> sluice_engine::Config {
        let Gateway { name: _, mode, subnet: _, route_target_address } = &self.gateway;
        let General {
            default_outbound,
            cluster_id: _,
            concurrency,
            load_balancer_class: _,
            allow_mass_deletion,
        } = &self.general;
        let Egress { max, linger, namespaces } = &self.egress;
        let Drift { interval, confirm_after, settle } = &self.drift;
        let Deletion { report_after } = &self.deletion;
        sluice_engine::Config {
            adoption_interval: self.adoption_interval(),
            scope: self.scope(cluster_id),
            slots_max: *concurrency,
            gateway_mode: *mode,
            route_target_address: route_target_address.v4,
            route_target_address_v6: route_target_address.v6,
            default_outbound: *default_outbound,
            egress_max: *max,
            linger: *linger,
            egress_namespaces: (!namespaces.is_empty())
                .then(|| namespaces.iter().map(|name| Arc::from(name.as_str())).collect()),
            allow_mass_deletion: *allow_mass_deletion,
            drift_interval: *interval,
            second_look: *confirm_after,
            settle: *settle,
            report_after: *report_after,
            retry: self.engine_retry(),
            locations: self.engine_locations(),
        }
    }

    fn engine_retry(&self) -> sluice_engine::config::Retry {
        let Retry { backoff_min, backoff_max, burst_park, quota_park_min, forbidden_park_min } = self.retry;
        // What has no key has the engine's value.
        let sluice_engine::config::Retry {
            attempts_max,
            quota_park: (_, quota_park_max),
            forbidden_park: (_, forbidden_park_max),
            ..
        } = sluice_engine::config::Retry::default();
        sluice_engine::config::Retry {
            backoff_min,
            backoff_max,
            attempts_max,
            burst_park,
            quota_park: (quota_park_min, quota_park_max),
            forbidden_park: (forbidden_park_min, forbidden_park_max),
        }
    }

    fn engine_locations(&self) -> addresses::Limits {
        let Retry { backoff_min, backoff_max, .. } = self.retry;
        let Locations { quarantine_retry } = self.locations;
        // What has no key has the engine's value.
        let addresses::Limits {
            addresses_max,
            bytes_max,
            bisect_calls_max,
            failures_reported,
            writes_remembered,
            listing_valid,
            ..
        } = addresses::Limits::default();
        addresses::Limits {
            addresses_max,
            bytes_max,
            backoff_min,
            backoff_max,
            quarantine_retry,
            bisect_calls_max,
            failures_reported,
            // The same lag of Azure's lists.
            listing_margin: self.drift.settle,
            writes_remembered,
            listing_valid,
        }
    }

    /// The tags of one Service are two writes, and tags get a fifth of our share of the writes at most.
    fn adoption_interval(&self) -> Duration {
        let Budget { share, window, writes_per_window, .. } = self.budget;
        let for_tags = u64::from(writes_per_window) * u64::from(share.permille) / 5_000;
        window.saturating_mul(2) / u32::try_from(for_tags.max(1)).unwrap_or(u32::MAX)
    }

    /// What the updaters are told.
    pub fn updaters(&self) -> sluice_updater::Config {
        let Budget {
            share,
            reads_burst,
            reads_per_second,
            writes_burst,
            writes_per_second,
            deletes_burst,
            deletes_per_second,
            window,
            reads_per_window,
            writes_per_window,
        } = self.budget;
        let Operations { poll_min, poll_max } = self.operations;
        // What nobody has a reason to set: they follow from Azure's ways, or balance our own parts.
        let ours = sluice_updater::Config::default();
        sluice_updater::Config {
            commit_size_max: ours.commit_size_max,
            gather_under_pressure: ours.gather_under_pressure,
            gather_locations_under_pressure: ours.gather_locations_under_pressure,
            answer_limit: self.reach.response_timeout + LONGER_THAN_THE_CLIENT,
            resource_operation_limit: ours.resource_operation_limit,
            gateway_operation_limit: ours.gateway_operation_limit,
            share_permille: share.permille,
            location_lane_permille: ours.location_lane_permille,
            reads: BucketSize { burst: reads_burst, per_second: reads_per_second },
            writes: BucketSize { burst: writes_burst, per_second: writes_per_second },
            deletes: BucketSize { burst: deletes_burst, per_second: deletes_per_second },
            window,
            reads_per_window,
            writes_per_window,
            pause_first: ours.pause_first,
            pause_max: ours.pause_max,
            busy_limit: ours.busy_limit,
            budget_patience: ours.budget_patience,
            reads_lag_max: self.drift.settle.max(ours.reads_lag_max),
            poll: PollSchedule { interval_min: poll_min, interval_max: poll_max, ..ours.poll },
            page_retries_max: ours.page_retries_max,
            readback_retries_max: ours.readback_retries_max,
            reread_wait_first: ours.reread_wait_first,
            reread_wait_max: ours.reread_wait_max,
            pages_max: ours.pages_max,
        }
    }

    /// What the client is told. Only a token from a file is read here; all else when it is used.
    pub fn arm_settings(&self) -> Result<Settings, SetupError> {
        let Reach {
            api_version,
            ca_file,
            authority_host,
            scope,
            user_agent_suffix,
            metadata_endpoint: _,
            token_file: _,
            connect_timeout,
            response_timeout,
        } = &self.reach;
        let ours = sluice_arm::Limits::default();
        Ok(Settings {
            cloud: self.azure.cloud,
            resource_manager_endpoint: self.azure.resource_manager_endpoint.clone(),
            authority_host: authority_host.clone(),
            scope: scope.clone(),
            api_version: api_version.as_str().into(),
            region: self.region().into(),
            virtual_network: Some(self.scope("").virtual_network_id()),
            extra_ca: ca_file.clone().map(Pem::File),
            user_agent_suffix: user_agent_suffix.clone(),
            proxy: self.proxy.clone(),
            limits: sluice_arm::Limits {
                connect: *connect_timeout,
                answer: *response_timeout,
                token: ours.token.min(*response_timeout),
                token_pause: ours.token_pause,
                body_bytes_max: ours.body_bytes_max,
            },
            credential: self.credential()?,
        })
    }

    /// The region as Azure itself writes it.
    pub fn region(&self) -> String {
        self.azure.location.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_lowercase()
    }

    fn credential(&self) -> Result<Credential, SetupError> {
        let Azure {
            cloud: _,
            tenant_id,
            subscription_id: _,
            client_id,
            client_secret,
            client_certificate,
            use_managed_identity: _,
            user_assigned_identity,
            use_workload_identity: _,
            federated_token_file,
            resource_group: _,
            location: _,
            virtual_network: _,
            network_resource_group: _,
            subnet: _,
            network_subscription_id: _,
            resource_manager_endpoint: _,
        } = self.azure.clone();
        // What a credential cannot do without was looked at when it was chosen.
        let (tenant, client_id) = (tenant_id.unwrap_or_default(), client_id.unwrap_or_default());
        Ok(match self.identity {
            Identity::ClientSecret => Credential::ClientSecret {
                tenant,
                client_id,
                secret: client_secret.unwrap_or_else(|| Secret::new("")),
            },
            Identity::ClientCertificate => Credential::ClientCertificate {
                tenant,
                client_id,
                certificate: Pem::File(client_certificate.unwrap_or_default()),
            },
            Identity::ManagedIdentity => Credential::ManagedIdentity {
                user_assigned: user_assigned_identity.as_deref().map(UserAssigned::from_id),
                metadata_endpoint: self.reach.metadata_endpoint.clone(),
            },
            Identity::WorkloadIdentity => Credential::WorkloadIdentity {
                tenant,
                client_id,
                token_file: federated_token_file.unwrap_or_default(),
            },
            Identity::TokenFile => {
                let path = self.reach.token_file.clone().unwrap_or_default();
                let token = std::fs::read_to_string(&path).map_err(|source| SetupError::File {
                    what: "the token (sluice.azure.tokenFile)",
                    path,
                    source,
                })?;
                Credential::Token(Secret::new(token))
            }
        })
    }

    /// What the loop is told.
    pub fn limits(&self) -> sluice_controller::Limits {
        let Process { shutdown_grace } = self.process;
        sluice_controller::Limits {
            call: self.reach.response_timeout + LONGER_THAN_THE_CLIENT + LONGER_THAN_THE_UPDATERS,
            kube_call: sluice_controller::Limits::default().kube_call,
            grace: shutdown_grace,
        }
    }

    /// Which Services are ours.
    pub fn selection(&self) -> Selection {
        Selection { class: self.general.load_balancer_class.clone() }
    }

    /// How long a connection to the API server may take: what is begun within the renew deadline must have
    /// left before the lease ends.
    pub fn kubernetes_connect_limit(&self) -> Duration {
        match self.leader_election.enabled {
            true => CONNECT_LIMIT.min(self.leader_election.margin()),
            false => CONNECT_LIMIT,
        }
    }

    /// What the elector is told; whether there is an election, and where, is in `leader_election`.
    pub fn lease_timing(&self) -> Timing {
        let LeaderElection {
            enabled: _,
            namespace: _,
            name: _,
            lease_duration,
            renew_deadline,
            retry_period,
        } = &self.leader_election;
        Timing { lease: *lease_duration, renew_deadline: *renew_deadline, retry: *retry_period }
    }
}

impl LeaderElection {
    /// From the end of a leader's leave to begin requests to the end of its lease.
    pub(super) fn margin(&self) -> Duration {
        self.lease_duration.saturating_sub(self.renew_deadline)
    }
}
