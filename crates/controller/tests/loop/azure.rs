//! A small Azure that keeps what it is sent and can be told to misbehave.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluice_controller::{Azure, Clock, Monotonic};
use sluice_model::Time;
use sluice_model::azure::{
    ArmId, ETag, Gateway, LoadBalancer, Meta, NatGateway, Provisioning, PublicIp, Registration, Subnet,
};
use sluice_model::call::{Answer, ArmError, Body, Method, OperationState, Page, Payload, Reply, Request};

/// What becomes of a request.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    /// It is carried out and answered after the usual time.
    Ordinary,
    /// It is carried out and answered after this time.
    Slow(Duration),
    /// It is carried out and answered with the address of an operation, which has succeeded when it is polled.
    Operation(&'static str),
    /// The token that it needs takes so long; then it is ordinary.
    SlowToken(Duration),
    /// It is carried out, and nothing ever comes back.
    Hang,
    /// Whoever sends it panics, after it was carried out.
    Panic,
    /// It is not carried out, and answered with this status, code and message.
    #[allow(dead_code, reason = "the loop's own tests need no refusal, those of the admin server do")]
    Refuse(u16, &'static str, &'static str),
}

type Script = Box<dyn FnMut(&Request) -> Behaviour + Send>;

/// One request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrived {
    pub(crate) at: Time,
    pub(crate) what: String,
}

#[derive(Default)]
struct Books {
    resources: BTreeMap<ArmId, Payload>,
    registrations: BTreeMap<Arc<str>, Registration>,
    addresses: BTreeSet<(IpAddr, Arc<str>)>,
    arrived: Vec<Arrived>,
    open_puts: usize,
    open_puts_max: usize,
    issued: u32,
}

pub(crate) struct SmallAzure {
    clock: Monotonic,
    script: Mutex<Script>,
    books: Mutex<Books>,
}

impl SmallAzure {
    pub(crate) fn new(
        clock: Monotonic,
        script: impl FnMut(&Request) -> Behaviour + Send + 'static,
    ) -> Arc<SmallAzure> {
        Arc::new(SmallAzure { clock, script: Mutex::new(Box::new(script)), books: Mutex::default() })
    }

    pub(crate) fn arrived(&self) -> Vec<Arrived> {
        self.books.lock().unwrap().arrived.clone()
    }

    /// Writes, in the order in which they arrived.
    pub(crate) fn writes(&self) -> Vec<String> {
        let all = self.arrived();
        all.into_iter().map(|it| it.what).filter(|what| !what.starts_with("read")).collect()
    }

    /// How many PUTs of a service's own resources were open at once at most.
    pub(crate) fn open_puts_max(&self) -> usize {
        self.books.lock().unwrap().open_puts_max
    }

    /// Somebody removes the tags of all load balancers.
    #[allow(dead_code, reason = "the loop's own tests remove no tags, those of the admin server do")]
    pub(crate) fn untag_load_balancers(&self) {
        for payload in self.books.lock().unwrap().resources.values_mut() {
            if let Payload::LoadBalancer(lb) = payload {
                lb.meta.tags.clear();
            }
        }
    }

    pub(crate) fn registered(&self) -> usize {
        self.books.lock().unwrap().registrations.len()
    }

    pub(crate) fn addresses(&self) -> usize {
        self.books.lock().unwrap().addresses.len()
    }

    pub(crate) fn resources(&self, kind: &str) -> usize {
        self.books.lock().unwrap().resources.keys().filter(|id| id.segment(kind).is_some()).count()
    }
}

/// Counts a PUT as open until it is answered, given up or dropped.
struct Open<'a>(&'a SmallAzure);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.books.lock().unwrap().open_puts -= 1;
    }
}

impl Azure for SmallAzure {
    async fn send(&self, request: Request, may_begin: impl FnOnce() -> bool + Send) -> Reply {
        let behaviour = (self.script.lock().unwrap())(&request);
        if let Behaviour::SlowToken(takes) = behaviour {
            self.clock.sleep_until(self.clock.now() + takes).await;
        }
        if !may_begin() {
            return Reply::not_sent("no leave to send");
        }
        let arrived = self.clock.now();
        if let Behaviour::Refuse(status, code, message) = behaviour {
            self.books.lock().unwrap().arrived.push(Arrived { at: arrived, what: words(&request) });
            let error = ArmError { code: code.into(), message: message.into() };
            return Reply::Answered(Answer::new(status, Payload::Error(error)));
        }
        let is_put = matches!(request.body, Body::PublicIp(_) | Body::LoadBalancer(_));
        let answer = {
            let mut books = self.books.lock().unwrap();
            books.open_puts += usize::from(is_put);
            books.open_puts_max = books.open_puts_max.max(books.open_puts);
            books.arrived.push(Arrived { at: arrived, what: words(&request) });
            let mut answer = books.handle(&request);
            if let Behaviour::Operation(address) = behaviour {
                answer.operation = Some(ArmId::new(address));
            }
            answer
        };
        let _open = is_put.then(|| Open(self));
        let takes = match behaviour {
            Behaviour::Ordinary | Behaviour::Operation(_) | Behaviour::SlowToken(_) => {
                Duration::from_millis(100)
            }
            Behaviour::Slow(takes) => takes,
            Behaviour::Hang => return std::future::pending().await,
            Behaviour::Panic => panic!("a sender that was told to panic"),
            Behaviour::Refuse(..) => unreachable!("refused above"),
        };
        self.clock.sleep_until(arrived + takes).await;
        Reply::Answered(answer)
    }
}

fn words(request: &Request) -> String {
    let name = request.target.name();
    match (request.method, &request.body) {
        (Method::Get | Method::List | Method::Poll, _) => format!("read {name}"),
        (Method::Put, Body::PublicIp(_)) => format!("put public IP {name}"),
        (Method::Put, Body::LoadBalancer(_)) => format!("put load balancer {name}"),
        (Method::Put, _) => format!("put {name}"),
        (Method::Delete, _) => format!("delete {name}"),
        (Method::UpdateServices, Body::Services(services)) => {
            format!("update {} services", services.len())
        }
        (Method::UpdateLocations, _) => "update locations".into(),
        (method, _) => format!("{method:?} {name}"),
    }
}

impl Books {
    fn meta(id: &ArmId, tags: &sluice_model::azure::Tags) -> Meta {
        Meta {
            id: id.clone(),
            tags: tags.clone(),
            etag: ETag("1".into()),
            provisioning: Provisioning::Succeeded,
        }
    }

    fn handle(&mut self, request: &Request) -> Answer {
        let id = &request.target;
        match (request.method, &request.body) {
            (Method::Get, _) => match self.resources.get(id) {
                Some(payload) => Answer::new(200, payload.clone()),
                None if id.segment("subnets").is_some() => Answer::new(200, bare_subnet(id, None)),
                None => not_found(),
            },
            (Method::List, _) => Answer::new(200, self.list(id)),
            (Method::Poll, _) => Answer::new(200, Payload::Operation(OperationState::Succeeded)),
            (Method::Put, body) => {
                let payload = match body {
                    Body::PublicIp(body) => {
                        self.issued += 1;
                        Payload::PublicIp(PublicIp {
                            meta: Self::meta(id, &body.tags),
                            family: body.family,
                            // The range that is kept for benchmarks.
                            address: Some(IpAddr::V4(Ipv4Addr::from_bits(0xC612_0000 + self.issued))),
                            used_by: None,
                        })
                    }
                    Body::LoadBalancer(body) => Payload::LoadBalancer(LoadBalancer {
                        meta: Self::meta(id, &body.tags),
                        public_ip: Some(body.public_ip.clone()),
                        pools: vec![id.name().into()],
                        rules: body.rules.clone(),
                        edited: false,
                    }),
                    Body::Gateway(body) => Payload::Gateway(Gateway {
                        meta: Self::meta(id, &body.tags),
                        virtual_network: body.virtual_network.clone(),
                        route_target_subnet: body.route_target_subnet.clone(),
                        route_target_address: None,
                        route_target_address_v6: None,
                        document: "".into(),
                    }),
                    Body::NatGateway(body) => Payload::NatGateway(NatGateway {
                        meta: Self::meta(id, &body.tags),
                        gateway: body.gateway.clone(),
                        public_ips: body.public_ips.clone(),
                        public_ips_v6: body.public_ips_v6.clone(),
                    }),
                    Body::Subnet(body) => bare_subnet(id, body.gateway.clone()),
                    other => panic!("this small Azure has no {other:?}"),
                };
                self.resources.insert(id.clone(), payload.clone());
                Answer::new(200, payload)
            }
            (Method::Delete, _) => {
                let there = self.resources.remove(id).is_some();
                Answer::new(if there { 200 } else { 204 }, Payload::None)
            }
            (Method::UpdateServices, Body::Services(services)) => {
                for service in services {
                    let name = service.service.name.clone();
                    match service.is_delete {
                        true => self.registrations.remove(&name),
                        false => self.registrations.insert(name, service.service.clone()),
                    };
                }
                Answer::new(200, Payload::None)
            }
            (Method::UpdateLocations, Body::Locations(locations)) => {
                for update in locations.iter().flat_map(|location| &location.addresses) {
                    let from = (update.address, Arc::from(""));
                    let old = self.addresses.range(from..).take_while(|it| it.0 == update.address);
                    let old: Vec<_> = old.cloned().collect();
                    for it in &old {
                        self.addresses.remove(it);
                    }
                    self.addresses.extend(update.services.iter().map(|name| (update.address, name.clone())));
                }
                Answer::new(200, Payload::None)
            }
            other => panic!("this small Azure does not understand {other:?}"),
        }
    }

    fn all<T>(&self, of_a_kind: impl Fn(&Payload) -> Option<T>) -> Vec<T> {
        self.resources.values().filter_map(of_a_kind).collect()
    }

    fn list(&self, id: &ArmId) -> Payload {
        match id.name() {
            "services" => Payload::Registrations(page(self.registrations.values().cloned().collect())),
            "addressLocations" => Payload::Locations(page(Vec::new())),
            "natGateways" => Payload::NatGateways(page(
                self.all(|it| if let Payload::NatGateway(it) = it { Some(it.clone()) } else { None }),
            )),
            "loadBalancers" => Payload::LoadBalancers(page(
                self.all(|it| if let Payload::LoadBalancer(it) = it { Some(it.clone()) } else { None }),
            )),
            "publicIPAddresses" => Payload::PublicIps(page(
                self.all(|it| if let Payload::PublicIp(it) = it { Some(it.clone()) } else { None }),
            )),
            other => panic!("this small Azure has no list of {other}"),
        }
    }
}

fn page<T>(items: Vec<T>) -> Page<T> {
    Page { items, next: None }
}

fn bare_subnet(id: &ArmId, gateway: Option<ArmId>) -> Payload {
    Payload::Subnet(Subnet { id: id.clone(), etag: ETag("1".into()), gateway, rest: "{}".into() })
}

fn not_found() -> Answer {
    let error = ArmError { code: "ResourceNotFound".into(), message: "it is not there".into() };
    Answer::new(404, Payload::Error(error))
}
