//! Plans of small worlds.

use std::net::IpAddr;

use expect_test::{Expect, expect};
use sluice_engine::{Config, DefaultOutbound};
use sluice_model::effect::Listing;
use sluice_model::event::Relist;
use sluice_model::kube::{
    Endpoint, NodeObject, Phase, PodObject, Protocol, ServiceObject, ServicePort, ServiceSpec, Slice,
    SliceOwner, SlicePort, TargetPort,
};
use sluice_model::names::Scope;
use sluice_model::{Event, ObjectName, Uid};

use super::foresight::{Forecast, Worlds, foresee};
use super::report::Report;
use crate::paint::Paint;

struct World {
    scope: Scope,
    services: Vec<ServiceObject>,
    slices: Vec<Slice>,
    pods: Vec<PodObject>,
    azure: Vec<Listing>,
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
        World { scope, services: Vec::new(), slices: Vec::new(), pods: Vec::new(), azure }
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
            deleting: false,
            finalizer: false,
            spec,
            ingress: Vec::new(),
            published: None,
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
        let worlds = Worlds { kubernetes, azure: self.azure.clone() };
        foresee(config, sluice_updater::Config::default(), &worlds)
    }

    /// The world in which everything that was foreseen has happened.
    fn carried_out(mut self) -> World {
        let forecast = self.foresee();
        self.azure = listings(&forecast.after, &self.scope);
        self.services = forecast.objects_after.into_values().collect();
        self
    }

    fn shows(&self, expected: &Expect) {
        let report = Report::of(&self.scope, &self.foresee());
        expected.assert_eq(&report.text(Paint::NONE));
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
          ~ Service         shop/web  (finalizer on, IP published, conditions)

        Plan: 9 to create, 2 to change, 0 to delete.
        Calls to Azure: 9 writes; in all 7 get, 9 list, 9 poll, 6 put, 2 updateAddressLocations, 1 updateServices.
    "#]]);
}

#[test]
fn what_was_carried_out_is_in_sync() {
    World::empty().service("web", 1).egress("blue").carried_out().shows(&expect![[r#"
        In sync: nothing would be written, neither to Azure nor to Kubernetes.
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
        Calls to Azure: 1 write; in all 2 get, 5 list, 1 poll, 1 put.
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
        Calls to Azure: 11 writes; in all 4 delete, 4 get, 10 list, 11 poll, 1 put, 2 updateAddressLocations, 4 updateServices.
    "#]]);
}

#[test]
fn a_mass_deletion_is_held_and_said() {
    let mut world = World::empty();
    for number in 1..=8 {
        world = world.service(&format!("s{number}"), number);
    }
    let mut world = world.carried_out();
    for service in &mut world.services {
        service.selected = false;
        service.version += 100;
    }
    world.shows(&expect![[r#"
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

        ! 8 services would be torn down at once; this is held until sluice.allowMassDeletion is set or they are deleted one by one
        Plan: 0 to create, 8 to change, 0 to delete.
        Calls to Azure: 0 writes; in all 2 get, 7 list.
    "#]]);
}

#[test]
fn what_cannot_be_served_is_named_and_costs_nothing() {
    let mut world = World::empty().carried_out().service("web", 1);
    world.services[0].spec.client_ip_affinity = true;
    world.shows(&expect![[r#"
        service/shop/web
          ~ Service         shop/web  (finalizer on, conditions)

        ! service/shop/web is not served (InvalidSpec): sessionAffinity ClientIP is not supported; use None
        Plan: 0 to create, 1 to change, 0 to delete.
        Calls to Azure: 0 writes; in all 2 get, 5 list.
    "#]]);
}
