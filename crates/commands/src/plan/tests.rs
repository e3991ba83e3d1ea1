//! Plans of small worlds.

use std::net::IpAddr;
use std::time::Duration;

use expect_test::{Expect, expect};
use sluice_engine::{Config, DefaultOutbound, GatewayMode};
use sluice_model::azure::{AddressUpdate, Direction, Location, Registration};
use sluice_model::effect::Listing;
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, Kind, NodeObject, Phase, PodObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, SlicePort, TargetPort,
};
use sluice_model::names::Scope;
use sluice_model::{Event, ObjectName, Uid};

use super::foresight::{Forecast, Worlds, foresee};
use super::report::{Report, Verdict};
use crate::paint::Paint;

struct World {
    scope: Scope,
    services: Vec<ServiceObject>,
    slices: Vec<Slice>,
    pods: Vec<PodObject>,
    skipped: Vec<(Kind, String)>,
    azure: Vec<Listing>,
    mode: GatewayMode,
    second_look: Duration,
}

impl World {
    /// A cluster with one node, and an Azure with nothing but a subnet.
    fn empty() -> World {
        let scope = Scope {
            subscription: "s".into(),
            resource_group: "rg".into(),
            network_resource_group: "rg".into(),
            virtual_network: "vnet".into(),
            subnet: "pods".into(),
            gateway: "gw".into(),
            cluster_id: "c1".into(),
        };
        let mut cloud = sluice_cloud::Cloud::new(sluice_cloud::Config::default());
        cloud.prepare(sluice_model::Time::ZERO, &scope);
        let azure = listings(&cloud, &scope);
        World {
            scope,
            services: Vec::new(),
            slices: Vec::new(),
            pods: Vec::new(),
            skipped: Vec::new(),
            azure,
            mode: GatewayMode::Ensure,
            second_look: Duration::from_secs(45),
        }
    }

    fn service(mut self, name: &str, number: u128) -> World {
        let uid = Uid::from_number(number);
        let spec = ServiceSpec {
            ports: vec![ServicePort {
                name: "".into(),
                protocol: Protocol::Tcp,
                port: 80,
                target: TargetPort::Number(8080),
            }],
            ..ServiceSpec::default()
        };
        self.services.push(ServiceObject {
            uid,
            name: ObjectName::new("shop", name),
            version: 1,
            selected: true,
            load_balancer: true,
            deleting: false,
            finalizer: false,
            inherited: false,
            spec,
            ingress: Vec::new(),
            published: None,
            annotated: None,
            conditions: Vec::new(),
        });
        let [.., low] = number.to_be_bytes();
        self.slices.push(Slice {
            name: ObjectName::new("shop", name),
            version: 1,
            owner: SliceOwner::Uid(uid),
            ports: vec![SlicePort { name: "".into(), protocol: Protocol::Tcp, port: Some(8080) }],
            endpoints: vec![Endpoint {
                address: IpAddr::from([10, 244, 0, low]),
                node: Some("node-a".into()),
                ready: true,
                serving: true,
                terminating: false,
            }],
            malformed: Vec::new(),
        });
        self
    }

    fn egress(mut self, name: &str) -> World {
        self.pods.push(PodObject {
            uid: Uid::from_number(99),
            name: ObjectName::new("shop", "crawler"),
            version: 1,
            egress: Some(name.into()),
            node: Some("node-a".into()),
            ips: vec![IpAddr::from([10, 244, 0, 99])],
            host_ips: Vec::new(),
            phase: Phase::Running,
            terminating: false,
            host_network: false,
            created: 1,
        });
        self
    }

    fn foresee(&self) -> Forecast {
        let node =
            NodeObject { name: "node-a".into(), version: 1, internal_ips: vec![IpAddr::from([10, 0, 0, 4])] };
        let lists = [
            Relist::Services(self.services.clone()),
            Relist::Slices(self.slices.clone()),
            Relist::Nodes(vec![node]),
            Relist::Pods(self.pods.clone()),
        ];
        let kubernetes = lists.into_iter().map(|objects| Event::Relisted { version: 1, objects }).collect();
        let mut config = Config::new(self.scope.clone());
        config.default_outbound = DefaultOutbound::Leave;
        config.gateway_mode = self.mode;
        config.second_look = self.second_look;
        let worlds = Worlds { kubernetes, skipped: self.skipped.clone(), azure: self.azure.clone() };
        foresee(config, sluice_updater::Config::default(), &worlds)
    }

    /// The world in which everything that was foreseen has happened.
    fn carried_out(mut self) -> World {
        let forecast = self.foresee();
        self.azure = listings(&forecast.after, &self.scope);
        self.services = forecast.objects_after.into_values().collect();
        self
    }

    fn report(&self) -> Report {
        Report::of(&self.scope, &self.foresee())
    }

    fn shows(&self, expected: &Expect) {
        expected.assert_eq(&self.report().text(Paint::NONE));
    }
}

fn listings(cloud: &sluice_cloud::Cloud, scope: &Scope) -> Vec<Listing> {
    let (state, gateway) = (cloud.state(), scope.gateway_id());
    vec![
        Listing::Foundation {
            gateway: state.gateways.get(&gateway).cloned(),
            subnet: state.subnets.get(&scope.subnet_id()).cloned(),
        },
        Listing::Registrations(state.registrations(&gateway).cloned().collect()),
        Listing::Locations(state.locations(&gateway).collect()),
        Listing::LoadBalancers(state.load_balancers.values().cloned().collect()),
        Listing::NatGateways(state.nat_gateways.values().cloned().collect()),
        Listing::PublicIps(state.public_ips.values().cloned().collect()),
    ]
}

#[test]
fn a_new_service_and_a_new_egress_are_foreseen_with_everything_that_they_take() {
    World::empty().service("web", 1).egress("blue").shows(&expect![[r#"
        egress/blue
          + public IP       blue-pip
          + NAT gateway     blue
          + registration    blue
          + addresses       1
        gateway
          + service gateway gw  (in vnet)
          ~ subnet          pods  (attached to gw)
        service/shop/web
          + public IP       00000000-0000-0000-0000-000000000001-pip
          + load balancer   00000000-0000-0000-0000-000000000001  (tcp 80 → 8080)
          + registration    00000000-0000-0000-0000-000000000001
          + addresses       1
          ~ Service         shop/web  (finalizer added, public IP published, conditions)

        Plan: 9 to create, 2 to change, 0 to delete.
        Azure calls: 9 writes; in total 7 get, 9 list, 9 poll, 6 put, 2 updateAddressLocations, 1 updateServices.
    "#]]);
}

#[test]
fn what_was_carried_out_is_in_sync() {
    World::empty().service("web", 1).egress("blue").carried_out().shows(&expect![[r#"
        In sync: no changes to Azure or Kubernetes.
    "#]]);
}

#[test]
fn an_edit_is_one_load_balancer() {
    let mut world = World::empty().service("web", 1).carried_out();
    world.services[0].spec.ports[0].port = 443;
    world.services[0].version += 100;
    world.shows(&expect![[r#"
        service/shop/web
          ~ load balancer   00000000-0000-0000-0000-000000000001  (tcp 443 → 8080 instead of tcp 80 → 8080)

        Plan: 0 to create, 1 to change, 0 to delete.
        Azure calls: 1 write; in total 3 get, 5 list, 1 poll, 1 put.
    "#]]);
}

#[test]
fn what_nobody_wants_any_more_goes_and_says_so() {
    let mut world = World::empty().service("web", 1).service("api", 2).egress("blue").carried_out();
    world.services.remove(0);
    world.slices.remove(0);
    world.pods.clear();
    world.shows(&expect![[r#"
        egress/blue
          - public IP       blue-pip  (198.18.0.2)
          - NAT gateway     blue
          - registration    blue
          - addresses       1
        orphan/00000000-0000-0000-0000-000000000001
          - public IP       00000000-0000-0000-0000-000000000001-pip  (198.18.0.1)
          - load balancer   00000000-0000-0000-0000-000000000001
          - registration    00000000-0000-0000-0000-000000000001
          - addresses       1

        Plan: 0 to create, 0 to change, 8 to delete.
        Azure calls: 11 writes; in total 4 delete, 9 get, 10 list, 11 poll, 1 put, 2 updateAddressLocations, 4 updateServices.
    "#]]);
}

#[test]
fn services_that_only_inherited_finalizers_keep_are_foreseen_to_be_released() {
    let mut world = World::empty().service("web", 1).carried_out();
    for (name, number, deleting) in [("gone", 2, true), ("was", 3, false)] {
        world = world.service(name, number);
        let service = world.services.last_mut().unwrap();
        (service.selected, service.deleting, service.inherited) = (false, deleting, true);
    }
    let text = world.report().text(Paint::NONE);
    assert!(text.contains("shop/gone  (finalizer removed, then deleted)"), "{text}");
    assert!(text.contains("shop/was  (inherited finalizers removed)"), "{text}");
    assert!(text.contains("Plan: 0 to create, 2 to change, 0 to delete."), "{text}");
}

/// Eight services that are no longer ours, all at once.
fn braked() -> World {
    let mut world = World::empty();
    for number in 1..=8 {
        world = world.service(&format!("s{number}"), number);
    }
    let mut world = world.carried_out();
    for service in &mut world.services {
        service.selected = false;
        service.version += 100;
    }
    world
}

#[test]
fn a_mass_deletion_is_held_and_said() {
    braked().shows(&expect![[r#"
        service/shop/s1
          ~ Service         shop/s1  (conditions)
        service/shop/s2
          ~ Service         shop/s2  (conditions)
        service/shop/s3
          ~ Service         shop/s3  (conditions)
        service/shop/s4
          ~ Service         shop/s4  (conditions)
        service/shop/s5
          ~ Service         shop/s5  (conditions)
        service/shop/s6
          ~ Service         shop/s6  (conditions)
        service/shop/s7
          ~ Service         shop/s7  (conditions)
        service/shop/s8
          ~ Service         shop/s8  (conditions)

        held
          ! service/shop/s1 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s2 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s3 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s4 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s5 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s6 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s7 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`
          ! service/shop/s8 (MassDeletionHeld): held by the mass-deletion guard; if the deletion is intended, run `sluice allow-deletion`

        ! Mass-deletion guard: held deletion of 8 gateway services: service/shop/s1, service/shop/s2, service/shop/s3, service/shop/s4, service/shop/s5, service/shop/s6, service/shop/s7, service/shop/s8. Review `sluice plan`; if the deletions are intended, run `sluice allow-deletion`
        Plan: 0 to create, 8 to change, 0 to delete.
        Azure calls: 0 writes; in total 2 get, 5 list.
    "#]]);
}

#[test]
fn what_the_brake_holds_is_not_in_sync_once_its_conditions_are_written() {
    let world = braked().carried_out();
    let report = world.report();
    assert_eq!((report.verdict, report.in_sync, report.writes), (Verdict::Held, false, 0));
    let names: Vec<&str> = report.held.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, (1..=8).map(|it| format!("service/shop/s{it}")).collect::<Vec<_>>());
    assert!(report.held.iter().all(|it| it.reason == "MassDeletionHeld"));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((json["verdict"].as_str(), json["held"].as_array().map(Vec::len)), (Some("held"), Some(8)));
}

#[test]
fn a_gateway_that_cannot_be_used_holds_what_waits_for_it() {
    let mut world = World::empty().service("web", 1);
    world.mode = GatewayMode::Verify;
    world.carried_out().shows(&expect![[r#"
        held
          ! gateway (GatewayUnavailable): Gateway /subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/gw does not exist. Create it, or set sluice.gateway.mode to ensure
          ! service/shop/web (GatewayUnavailable): waiting for the service gateway

        Held: no changes to Azure or Kubernetes until the blockers above are resolved.
    "#]]);
}

#[test]
fn a_name_that_somebody_else_has_holds_the_egress() {
    let mut world = World::empty().egress("blue").carried_out();
    for listing in &mut world.azure {
        if let Listing::NatGateways(all) = listing {
            all.iter_mut().for_each(|it| it.meta.tags.clear());
        }
        if let Listing::Registrations(all) = listing {
            all.clear();
        }
    }
    let report = world.report();
    assert_eq!(report.verdict, Verdict::Held);
    expect![[r#"
        held
          ! egress/blue (Conflict): /subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/natGateways/blue exists and is not managed by this cluster. Delete it, or claim it as `sluice explain SGW0011` describes

        Held: no changes to Azure or Kubernetes until the blockers above are resolved.
    "#]].assert_eq(&report.text(Paint::NONE));
}

#[test]
fn addresses_of_services_of_others_are_counted_and_their_pods_named() {
    let mut world = World::empty().carried_out().egress("blue");
    let location = IpAddr::from([10, 0, 0, 4]);
    let pod_ip = world.pods[0].ips[0];
    for listing in &mut world.azure {
        if let Listing::Registrations(all) = listing {
            all.push(Registration {
                name: "partner".into(),
                direction: Direction::Outbound,
                is_default: true,
                pools: Vec::new(),
                nat_gateway: Some(world.scope.resource("natGateways", "theirs")),
            });
        }
        if let Listing::Locations(all) = listing {
            let of = |address| AddressUpdate { address, services: vec!["partner".into()] };
            let addresses = vec![of(pod_ip), of(IpAddr::from([10, 9, 0, 9]))];
            all.push(Location { location, addresses });
        }
    }
    let report = world.report();
    assert_eq!(report.kept_for_others, 2);
    let text = report.text(Paint::NONE);
    let belongs = format!("! Address {pod_ip} belongs to the unmanaged egress partner");
    assert!(text.contains(&belongs), "{text}");
    assert!(text.contains("! 2 addresses are kept for unmanaged gateway services\n"), "{text}");
}

#[test]
fn what_cannot_be_served_is_named_and_costs_nothing() {
    let mut world = World::empty().carried_out().service("web", 1);
    world.services[0].spec.client_ip_affinity = true;
    world.shows(&expect![[r#"
        service/shop/web
          ~ Service         shop/web  (finalizer added, conditions)

        ! service/shop/web is not served as specified (InvalidSpec): spec.sessionAffinity ClientIP is not supported; set it to None
        Plan: 0 to create, 1 to change, 0 to delete.
        Azure calls: 0 writes; in total 2 get, 5 list.
    "#]]);
    world.carried_out().shows(&expect![[r#"
        ! service/shop/web is not served as specified (InvalidSpec): spec.sessionAffinity ClientIP is not supported; set it to None
        No changes to Azure or Kubernetes; see the warning above.
    "#]]);
}

#[test]
fn a_plan_without_changes_counts_its_warnings_and_is_not_just_in_sync() {
    let mut world = World::empty().carried_out().service("web", 1).service("api", 2);
    for service in &mut world.services {
        service.spec.client_ip_affinity = true;
    }
    let report = world.carried_out().report();
    assert_eq!(report.verdict, Verdict::InSync);
    assert_eq!(report.not_served.len(), 2);
    let text = report.text(Paint::NONE);
    let last = "No changes to Azure or Kubernetes; see the 2 warnings above.\n";
    assert!(text.ends_with(last), "{text}");
    assert!(!text.contains("In sync"), "{text}");
}

#[test]
fn a_port_whose_name_no_pod_has_is_named() {
    let mut world = World::empty().service("web", 1).carried_out();
    let named = ServicePort {
        name: "admin".into(),
        protocol: Protocol::Tcp,
        port: 81,
        target: TargetPort::Name("admin".into()),
    };
    world.services[0].spec.ports[0].name = "http".into();
    world.services[0].spec.ports.push(named);
    world.services[0].version += 100;
    world.carried_out().shows(&expect![[r#"
        ! service/shop/web is not served as specified (PortUnresolved): No ready endpoint defines targetPort "admin"
        No changes to Azure or Kubernetes; see the warning above.
    "#]]);
}

#[test]
fn a_port_whose_name_no_pod_has_any_more_stays_and_is_named() {
    let mut world = World::empty().service("web", 1);
    world.services[0].spec.ports[0].target = TargetPort::Name("http".into());
    world.slices[0].ports[0].name = "http".into();
    world.services[0].spec.ports[0].name = "http".into();
    let mut world = world.carried_out();
    world.slices.clear();
    world.carried_out().shows(&expect![[r#"
        ! service/shop/web is not served as specified (PortUnresolved): No ready endpoint defines targetPort "http"; the load balancer keeps port 8080
        No changes to Azure or Kubernetes; see the warning above.
    "#]]);
}

#[test]
fn a_service_that_cannot_be_read_is_named_and_nothing_is_deleted_for_its_absence() {
    let mut world = World::empty().service("web", 1).carried_out();
    world.services.clear();
    world.slices.clear();
    assert_eq!(world.report().verdict, Verdict::Changes);
    world.skipped =
        vec![(Kind::Service, "one of the services cannot be read: its uid is odd; it is skipped".into())];
    world.shows(&expect![[r#"
        held
          ! service/00000000-0000-0000-0000-000000000001 (Unclear): not deleted before Kubernetes confirms that the Service is deleted

        ! Deletion is waiting for 1 address to be removed from the gateway: 10.244.0.1 on node IP 10.0.0.4. Run `sluice status --trouble`
        ! one of the services cannot be read: its uid is odd; it is skipped
        Held: no changes to Azure or Kubernetes until the blockers above are resolved.
    "#]]);
}

#[test]
fn a_second_look_that_comes_late_is_awaited() {
    let mut world = World::empty().carried_out();
    let address = IpAddr::from([10, 244, 0, 7]);
    let ghost = AddressUpdate { address, services: vec![Uid::from_number(7).to_string().into()] };
    let location = Location { location: IpAddr::from([10, 0, 0, 4]), addresses: vec![ghost] };
    for listing in &mut world.azure {
        if let Listing::Locations(all) = listing {
            all.push(location.clone());
        }
    }
    for seconds in [45, 3_600] {
        world.second_look = Duration::from_secs(seconds);
        let report = world.report();
        assert_eq!(report.verdict, Verdict::Changes, "nobody's address goes after {seconds} s");
    }
}

#[test]
fn a_wrong_name_of_the_gateway_counts_no_calls_that_wait_for_it() {
    let mut world = World::empty().service("web", 1).egress("blue").carried_out();
    world.scope.gateway = "wrong".into();
    if let Some(Listing::Foundation { gateway, .. }) = world.azure.first_mut() {
        *gateway = None;
    }
    world.azure.retain(|it| !matches!(it, Listing::Registrations(_) | Listing::Locations(_)));
    world.shows(&expect![[r#"
        service/shop/web
          ~ Service         shop/web  (conditions)

        held
          ! gateway (GatewayUnavailable): Subnet /subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/virtualNetworks/vnet/subnets/pods is attached to /subscriptions/s/resourceGroups/rg/providers/Microsoft.Network/serviceGateways/gw. Detach the subnet, or set sluice.gateway.name to the gateway that it is attached to
          ! service/shop/web (GatewayUnavailable): waiting for the service gateway
          ! egress/blue (GatewayUnavailable): waiting for the service gateway

        Plan: 0 to create, 1 to change, 0 to delete.
        Azure calls: 0 writes; in total 2 get, 5 list.
    "#]]);
}
