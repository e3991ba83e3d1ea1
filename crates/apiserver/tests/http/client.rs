//! A client with the server's certificate and token.

use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};
use sluice_apiserver::{Options, Running, start};
use tempfile::TempDir;

/// A server without nodes, and a client of it.
pub(crate) struct Client {
    /// The server.
    pub(crate) running: Running,
    http: reqwest::Client,
    /// Holds the kubeconfig.
    pub(crate) folder: TempDir,
}

/// An answer: its status and its JSON.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Value,
}

impl Answer {
    #[track_caller]
    pub(crate) fn ok(self) -> Value {
        assert!(self.status.is_success(), "{}: {}", self.status, self.body);
        self.body
    }

    #[track_caller]
    pub(crate) fn refused(self, code: u16) -> String {
        assert_eq!(self.status.as_u16(), code, "{}", self.body);
        assert_eq!((&self.body["kind"], &self.body["status"]), (&json!("Status"), &json!("Failure")));
        assert_eq!(self.body["code"], code);
        self.body["message"].as_str().unwrap().to_owned()
    }
}

impl Client {
    pub(crate) async fn new() -> Client {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            listen: "127.0.0.1:0".parse().unwrap(),
            dir: folder.path().to_owned(),
            nodes: 0,
            time_factor: 1.0,
        };
        let running = start(options).await.unwrap();
        // Another test of this process may have said so already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let ca = reqwest::Certificate::from_pem(running.ca_pem.as_bytes()).unwrap();
        let http = reqwest::Client::builder().tls_certs_only([ca]).build().unwrap();
        Client { running, http, folder }
    }

    pub(crate) fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        self.http.request(method, format!("{}{path}", self.running.url)).bearer_auth(&self.running.token)
    }

    pub(crate) fn stranger(&self, path: &str) -> reqwest::RequestBuilder {
        self.http.get(format!("{}{path}", self.running.url))
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        answer(self.request(Method::GET, path).send().await.unwrap()).await
    }

    pub(crate) async fn get_as(&self, path: &str, accept: &str) -> Answer {
        answer(self.request(Method::GET, path).header("accept", accept).send().await.unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        answer(self.request(Method::POST, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn put(&self, path: &str, body: Value) -> Answer {
        answer(self.request(Method::PUT, path).json(&body).send().await.unwrap()).await
    }

    pub(crate) async fn patch(&self, path: &str, media: &str, body: Value) -> Answer {
        let request = self.request(Method::PATCH, path).header("content-type", media).body(body.to_string());
        answer(request.send().await.unwrap()).await
    }

    pub(crate) async fn delete(&self, path: &str, body: Value) -> Answer {
        answer(self.request(Method::DELETE, path).json(&body).send().await.unwrap()).await
    }

    /// A watch that gives its events one by one.
    pub(crate) async fn watch(&self, path: &str) -> Events {
        let response = self.request(Method::GET, path).send().await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
        Events { response, rest: Vec::new() }
    }

    pub(crate) async fn config_map(&self, name: &str, label: &str) -> Value {
        let body = json!({"metadata": {"name": name, "labels": {"app": label}}, "data": {"a": "1"}});
        self.post(MAPS, body).await.ok()
    }
}

/// Where the config maps of `default` are.
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// The lines of a watch.
pub(crate) struct Events {
    response: Response,
    rest: Vec<u8>,
}

impl Events {
    /// The next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            self.rest.extend_from_slice(&self.response.chunk().await.unwrap()?);
        }
    }

    /// Type and name of the next event.
    pub(crate) async fn told(&mut self) -> (String, String) {
        let event = self.next().await.expect("the watch goes on");
        let name = event["object"]["metadata"]["name"].as_str().unwrap_or("").to_owned();
        (event["type"].as_str().unwrap().to_owned(), name)
    }
}

async fn answer(response: Response) -> Answer {
    let status = response.status();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|it| it.to_str().unwrap().to_owned()).collect();
    let bytes = response.bytes().await.unwrap();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Answer { status, warnings, body }
}
