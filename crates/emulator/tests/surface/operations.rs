//! Operations and how they are followed.

use serde_json::json;
use sluice_cloud::Fault;

use crate::stage::*;

#[test]
fn an_operation_belongs_to_its_region_and_subscription() {
    let mut stage = Stage::new();
    let mut west = public_ip("IPv4");
    west["location"] = json!("West Europe");
    let answer = stage.send(stage.put("publicIPAddresses/west", west));
    let url = answer.header("azure-asyncoperation").unwrap().to_owned();
    assert!(url.contains("/locations/westeurope/operations/"), "{url}");
    assert_eq!(stage.follow(&url).body["status"], "InProgress");
    for wrong in [
        url.replace("westeurope", "eastus"),
        url.replace(SUBSCRIPTION, "s"),
        url.replace("operations/", "operations/0"),
    ] {
        assert_eq!(stage.follow(&wrong).status, 404, "{wrong}");
    }
    assert_eq!(
        stage.follow(&url.to_ascii_uppercase().replace(&ORIGIN.to_ascii_uppercase(), ORIGIN)).status,
        200
    );
}

#[test]
fn subnets_and_posts_run_in_the_region_of_what_they_belong_to() {
    let mut stage = Stage::new();
    let mut network = network();
    network["location"] = json!("westus");
    stage.done(stage.put("virtualNetworks/west", network));
    let subnet = json!({ "properties": { "addressPrefix": "10.0.1.0/24" } });
    let answer = stage.send(stage.put("virtualNetworks/west/subnets/more", subnet));
    assert!(answer.header("azure-asyncoperation").unwrap().contains("/locations/westus/"));
    let mut body = gateway("west", "pods");
    stage.wait(60);
    assert_eq!(
        stage.send(stage.put("serviceGateways/west", body.clone())).refusal(),
        (400, "InvalidResourceReference")
    );
    body["location"] = json!("westus");
    stage.done(stage.put("serviceGateways/west", body));
    let answer = stage.post("serviceGateways/west/updateServices", json!({ "serviceRequests": [] }));
    assert!(answer.header("location").unwrap().contains("/locations/westus/operationResults/"));
}

#[test]
fn a_failed_operation_says_why_and_its_location_is_an_error() {
    let mut stage = Stage::new();
    let fault = Fault::OperationFails { code: "InternalServerError".into() };
    let answer =
        stage.send_faulty(stage.put("publicIPAddresses/web-pip", public_ip("IPv4")), &fault).unwrap();
    assert_eq!(answer.status, 201);
    let end = stage.finish(&answer);
    assert_eq!((&end["status"], &end["error"]["code"]), (&json!("Failed"), &json!("InternalServerError")));
    assert_eq!(stage.get("publicIPAddresses/web-pip").state(), "Failed");
    let request = stage.request("DELETE", &stage.path("publicIPAddresses/web-pip"), None);
    let answer = stage.send_faulty(request, &Fault::OperationCanceled).unwrap();
    assert_eq!(stage.finish(&answer)["status"], "Canceled");
    let location = answer.header("location").unwrap().to_owned();
    assert_eq!(stage.follow(&location).refusal(), (409, "Canceled"));
    assert_eq!(stage.get("publicIPAddresses/web-pip").status, 200);
}

#[test]
fn a_location_answers_202_with_a_wait_until_it_is_over() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    let answer = stage.delete("publicIPAddresses/web-pip");
    let location = answer.header("location").unwrap().to_owned();
    let early = stage.follow(&location);
    assert_eq!((early.status, early.header("location")), (202, Some(location.as_str())));
    assert_eq!(early.header("retry-after"), Some("2"));
    stage.time_factor = 100.0;
    assert_eq!(stage.follow(&location).header("retry-after"), Some("1"), "a real second is the least");
    stage.wait(60);
    assert_eq!(stage.follow(&location).status, 204);
}

#[test]
fn a_second_write_is_told_to_wait_in_real_seconds_and_where_to_look() {
    let mut stage = Stage::new();
    stage.public_ip("web-pip");
    let body = stage.load_balancer_body("web");
    stage.send(stage.put("loadBalancers/web", body.clone()));
    stage.time_factor = 1_000.0;
    let again = stage.send(stage.put("loadBalancers/web", body));
    assert_eq!(again.refusal(), (429, "RetryableErrorDueToAnotherOperation"));
    let message = again.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(" 1 seconds"), "{message}");
    let deletion = stage.delete("loadBalancers/web");
    assert_eq!(deletion.refusal(), (409, "AnotherOperationInProgress"));
    let message = deletion.body["error"]["message"].as_str().unwrap();
    assert!(!message.contains("management.azure.com"), "{message}");
    assert!(message.contains(ORIGIN), "{message}");
}
