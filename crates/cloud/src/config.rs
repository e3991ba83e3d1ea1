//! What can be set, with the defaults of the wire contract.

use core::time::Duration;

/// How a cloud behaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// How many items a list page has at most; at least one.
    pub page_size: usize,
    /// How long operations take.
    pub latency: Latencies,
    /// How many calls are allowed; `None` is as many as one likes.
    pub buckets: Option<Buckets>,
    /// How much of everything there may be.
    pub quota: Quota,
    /// The two gateway POSTs are carried out at once and answer 200 (API versions from 2025-09-01 on).
    pub synchronous_posts: bool,
    /// The largest body of a request; a larger one answers 413.
    pub body_bytes_max: usize,
    /// Decides every latency.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            page_size: 100,
            latency: Latencies::default(),
            buckets: Some(Buckets::default()),
            quota: Quota::default(),
            synchronous_posts: false,
            body_bytes_max: 4 << 20,
            seed: 0,
        }
    }
}

/// A shortest and a longest time, both of them possible.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// The shortest.
    pub min: Duration,
    /// The longest.
    pub max: Duration,
}

impl Span {
    /// From so many to so many milliseconds.
    pub const fn millis(min: u64, max: u64) -> Span {
        Span { min: Duration::from_millis(min), max: Duration::from_millis(max) }
    }
}

/// How long each kind of operation takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// Writing a public IP.
    pub public_ip: Span,
    /// Writing a load balancer.
    pub load_balancer: Span,
    /// Writing a NAT gateway.
    pub nat_gateway: Span,
    /// Writing a gateway, and its two POSTs.
    pub gateway: Span,
    /// Writing a virtual network or subnet.
    pub network: Span,
    /// Deleting anything.
    pub delete: Span,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            public_ip: Span::millis(2_000, 3_000),
            load_balancer: Span::millis(5_000, 8_000),
            nat_gateway: Span::millis(5_000, 8_000),
            gateway: Span::millis(1_000, 2_000),
            network: Span::millis(1_000, 2_000),
            delete: Span::millis(1_000, 3_000),
        }
    }
}

impl Latencies {
    /// Everything is done in the moment it is asked for.
    pub const INSTANT: Latencies = Latencies {
        public_ip: Span::millis(0, 0),
        load_balancer: Span::millis(0, 0),
        nat_gateway: Span::millis(0, 0),
        gateway: Span::millis(0, 0),
        network: Span::millis(0, 0),
        delete: Span::millis(0, 0),
    };
}

/// A token bucket: how much it holds and how fast it fills.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rate {
    /// The most that can be spent at once.
    pub burst: u32,
    /// What comes back every second.
    pub per_second: u32,
}

/// The limits of the resource provider, counted from the first call of each window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// PUT, PATCH, POST and DELETE.
    pub writes: u32,
    /// GET, polls among them.
    pub reads: u32,
    /// How long a window is.
    pub length: Duration,
}

/// How many calls are allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Buckets {
    /// The resource manager's bucket for GET.
    pub reads: Rate,
    /// Its bucket for PUT, PATCH and POST.
    pub writes: Rate,
    /// Its bucket for DELETE.
    pub deletes: Rate,
    /// The network resource provider's own limit.
    pub network: Option<Window>,
}

impl Default for Buckets {
    fn default() -> Buckets {
        Buckets {
            reads: Rate { burst: 250, per_second: 25 },
            writes: Rate { burst: 200, per_second: 10 },
            deletes: Rate { burst: 200, per_second: 10 },
            network: Some(Window { writes: 1_000, reads: 10_000, length: Duration::from_secs(300) }),
        }
    }
}

/// How many of each kind there may be in a subscription. The model knows of no regions, so all of a
/// subscription is in one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quota {
    /// Public IPs.
    pub public_ips: usize,
    /// Load balancers.
    pub load_balancers: usize,
    /// NAT gateways.
    pub nat_gateways: usize,
    /// Service gateways.
    pub gateways: usize,
    /// Virtual networks.
    pub virtual_networks: usize,
    /// Public IPs of one family on one NAT gateway.
    pub public_ips_per_nat_gateway: usize,
    /// Rules of one load balancer.
    pub rules_per_load_balancer: usize,
    /// Subnets of one virtual network.
    pub subnets_per_network: usize,
}

impl Quota {
    /// As much as one likes.
    pub const UNLIMITED: Quota = Quota {
        public_ips: usize::MAX,
        load_balancers: usize::MAX,
        nat_gateways: usize::MAX,
        gateways: usize::MAX,
        virtual_networks: usize::MAX,
        public_ips_per_nat_gateway: usize::MAX,
        rules_per_load_balancer: usize::MAX,
        subnets_per_network: usize::MAX,
    };
}

impl Default for Quota {
    fn default() -> Quota {
        Quota {
            public_ips: 1_000,
            load_balancers: 1_000,
            nat_gateways: 1_000,
            gateways: 100,
            virtual_networks: 1_000,
            public_ips_per_nat_gateway: 16,
            rules_per_load_balancer: 1_500,
            subnets_per_network: 3_000,
        }
    }
}
