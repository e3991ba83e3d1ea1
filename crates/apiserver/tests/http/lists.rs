//! Lists: selectors, pages, moments, tables.

use serde_json::{Value, json};

use crate::client::{Client, MAPS};

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|it| it["metadata"]["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn selectors_select_and_bad_ones_are_refused() {
    let client = Client::new().await;
    client.config_map("a", "x").await;
    client.config_map("b", "y").await;
    let list = client.get(&format!("{MAPS}?labelSelector=app%3Dx")).await.ok();
    assert_eq!((names(&list), &list["kind"]), (vec!["a"], &json!("ConfigMapList")));
    let list = client.get(&format!("{MAPS}?fieldSelector=metadata.name%3Db")).await.ok();
    assert_eq!(names(&list), ["b"]);
    let list = client.get("/api/v1/configmaps?fieldSelector=metadata.namespace%21%3Ddefault").await.ok();
    assert!(names(&list).iter().all(|name| *name != "a"));
    client.get(&format!("{MAPS}?labelSelector=a%20b")).await.refused(400);
    client.get(&format!("{MAPS}?fieldSelector=data.a%3D1")).await.refused(400);
}

#[tokio::test]
async fn all_pages_show_the_moment_of_the_first() {
    let client = Client::new().await;
    for name in ["a", "b", "c", "d", "e"] {
        client.config_map(name, "page").await;
    }
    let first = client.get(&format!("{MAPS}?limit=2&labelSelector=app%3Dpage")).await.ok();
    assert_eq!(names(&first), ["a", "b"]);
    client.config_map("bb", "page").await;
    client.delete(&format!("{MAPS}/d"), json!({})).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = client.get(&format!("{MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let token = second["metadata"]["continue"].as_str().unwrap();
    let last = client.get(&format!("{MAPS}?limit=2&continue={token}")).await.ok();
    assert_eq!((names(&last), last["metadata"].get("continue")), (vec!["e"], None));
    client.get(&format!("{MAPS}?limit=2&continue=nonsense")).await.refused(410);
}

#[tokio::test]
async fn a_token_outlives_the_pages_of_others_and_is_good_for_its_own_list_only() {
    let client = Client::new().await;
    for number in 0..70 {
        client.config_map(&format!("map-{number:02}"), "page").await;
    }
    let first = client.get(&format!("{MAPS}?limit=60")).await.ok();
    let token = first["metadata"]["continue"].as_str().unwrap();
    let mut path = format!("{MAPS}?limit=1");
    for _ in 0..70 {
        let page = client.get(&path).await.ok();
        let next = page["metadata"]["continue"].as_str().unwrap_or("").to_owned();
        path = format!("{MAPS}?limit=1&continue={next}");
    }
    client.get(&format!("/api/v1/configmaps?continue={token}")).await.refused(400);
    client.get(&format!("/api/v1/namespaces/kube-system/secrets?continue={token}")).await.refused(400);
    let rest = client.get(&format!("{MAPS}?continue={token}")).await.ok();
    assert_eq!(names(&rest), (60..70).map(|it| format!("map-{it:02}")).collect::<Vec<_>>());
    // The answer may have been lost on its way.
    assert_eq!(names(&client.get(&format!("{MAPS}?continue={token}")).await.ok()).len(), 10);
}

#[tokio::test]
async fn a_moment_that_has_not_come_is_awaited_elsewhere() {
    let client = Client::new().await;
    let version = client.running.store.version();
    client.get(&format!("{MAPS}?resourceVersion={version}")).await.ok();
    client.get(&format!("{MAPS}?resourceVersion=0")).await.ok();
    let words = client.get(&format!("{MAPS}?resourceVersion={}", version + 1_000)).await.refused(504);
    assert!(words.contains("Too large resource version"), "{words}");
}

#[tokio::test]
async fn tables_have_columns_rows_and_metadata() {
    let client = Client::new().await;
    client.config_map("a", "x").await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
    let answer = client.get_as(&format!("{MAPS}?labelSelector=app%3Dx"), table).await.ok();
    assert_eq!((&answer["kind"], &answer["rows"][0]["cells"][0]), (&json!("Table"), &json!("a")));
    assert_eq!(answer["columnDefinitions"][1]["name"], "Data");
    assert_eq!(answer["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let one = client.get_as(&format!("{MAPS}/a?includeObject=Object"), table).await.ok();
    assert_eq!(one["rows"][0]["object"]["data"]["a"], "1");
    let meta = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let answer = client.get_as(MAPS, meta).await.ok();
    assert_eq!(answer["kind"], "PartialObjectMetadataList");
    assert!(answer["items"][0].get("data").is_none());
    client.get_as(MAPS, "application/yaml").await.refused(406);
}
