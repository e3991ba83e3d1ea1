//! Lists, page by page.

use serde_json::json;
use sluice_cloud::{Config, Fault};

use crate::stage::*;

fn small_pages() -> Stage {
    Stage::with(Config { buckets: None, page_size: 2, ..Config::default() })
}

/// All items of a list, and how many pages it had.
fn all(stage: &mut Stage, path: String) -> (Vec<String>, usize) {
    let (mut names, mut pages) = (Vec::new(), 0);
    let mut page = stage.get_path(&path);
    loop {
        pages += 1;
        assert_eq!(page.status, 200, "{page:?}");
        for item in page.body["value"].as_array().unwrap() {
            names.push(item["name"].as_str().or(item["addressLocation"].as_str()).unwrap().to_owned());
        }
        match page.body.get("nextLink") {
            Some(next) => page = stage.follow(next.as_str().unwrap()),
            None => return (names, pages),
        }
    }
}

#[test]
fn every_list_goes_on_where_its_link_leads() {
    let mut stage = small_pages();
    let names = ["a", "b", "c", "d", "e"];
    for name in names {
        stage.load_balancer(name);
    }
    let services: Vec<_> = names.iter().map(|name| stage.inbound(name)).collect();
    stage.services(json!(services));
    let nodes: Vec<String> = (1..=5).map(|number| format!("10.1.0.{number}")).collect();
    let locations: Vec<_> = nodes.iter().map(|node| at(node, &[("10.2.0.4", &["a"])])).collect();
    stage.locations(json!(locations));
    let network = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network");
    for path in [
        stage.path("loadBalancers"),
        format!("{network}/loadBalancers"),
        stage.path("serviceGateways/gw/services"),
    ] {
        assert_eq!(all(&mut stage, path), (names.map(str::to_owned).to_vec(), 3));
    }
    let bound = stage.path("serviceGateways/gw/addressLocations");
    assert_eq!(all(&mut stage, bound), (nodes, 3));
    for (tail, name) in [("serviceGateways", "gw"), ("virtualNetworks", "vnet")] {
        let in_group = stage.path(tail);
        assert_eq!(all(&mut stage, in_group), (vec![name.to_owned()], 1));
        assert_eq!(all(&mut stage, format!("{network}/{tail}")), (vec![name.to_owned()], 1));
    }
    let none = stage.path("natGateways");
    assert_eq!(all(&mut stage, none), (vec![], 1), "an empty list is a list");
}

#[test]
fn a_link_has_the_path_and_the_version_of_its_list() {
    let mut stage = small_pages();
    for name in ["a", "b", "c"] {
        stage.public_ip(name);
    }
    let page = stage.get("publicIPAddresses").body;
    let next = page["nextLink"].as_str().unwrap();
    let expected = format!("{ORIGIN}{}?api-version={OLD}&$skiptoken=", stage.path("publicIPAddresses"));
    assert!(next.starts_with(&expected), "{next}");
    // Clients may encode the dollar.
    let encoded = next.replace("$skiptoken", "%24skiptoken");
    assert_eq!(stage.follow(&encoded).body["value"][0]["name"], "c");
}

#[test]
fn a_token_that_continues_nothing_is_refused() {
    let mut stage = small_pages();
    for name in ["a", "b", "c"] {
        stage.public_ip(name);
    }
    let next = stage.get("publicIPAddresses").body["nextLink"].as_str().unwrap().to_owned();
    let token = next.split("$skiptoken=").nth(1).unwrap().to_owned();
    for (tail, token) in
        [("publicIPAddresses", "nonsense"), ("publicIPAddresses", "%%%"), ("loadBalancers", &token)]
    {
        let path = format!("{}?api-version={OLD}&$skiptoken={token}", stage.path(tail));
        assert_eq!(stage.get_path(&path).refusal(), (400, "InvalidSkipToken"), "{tail} {token}");
    }
}

#[test]
fn a_page_may_be_short_or_fail() {
    let mut stage = small_pages();
    for name in ["a", "b", "c"] {
        stage.public_ip(name);
    }
    let list = |stage: &Stage| stage.request("GET", &stage.path("publicIPAddresses"), None);
    let page = stage.send_faulty(list(&stage), &Fault::ShortPage { items: 0 }).unwrap();
    assert_eq!(page.body["value"], json!([]));
    let next = page.body["nextLink"].as_str().unwrap().to_owned();
    assert_eq!(stage.follow(&next).body["value"][0]["name"], "a");
    let page = stage.send_faulty(list(&stage), &Fault::FailPage).unwrap();
    assert_eq!(page.refusal(), (500, "InternalServerError"));
}

#[test]
fn usages_count_what_there_is() {
    let mut stage = small_pages();
    stage.load_balancer("web");
    let path = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Network/locations/eastus/usages");
    let usages = stage.get_path(&path).body;
    let find = |name: &str| {
        usages["value"].as_array().unwrap().iter().find(|it| it["name"]["value"] == name).unwrap()
    };
    let balancers = find("LoadBalancers");
    assert_eq!(
        (&balancers["currentValue"], &balancers["limit"], &balancers["unit"]),
        (&json!(1), &json!(1000), &json!("Count"))
    );
    assert_eq!(find("PublicIPAddresses")["currentValue"], 1);
    assert_eq!(find("NatGateways")["currentValue"], 0);
}
