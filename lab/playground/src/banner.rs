//! The output of the playground when everything serves, as text and as JSON.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_commands::output::Output;
use sluice_commands::paint::Paint;
use sluice_commands::say;

use super::cluster::EGRESS_LABEL;
use super::controller::Places;

/// The URLs and files of a playground.
pub(super) struct Banner {
    pub(super) kubeconfig: PathBuf,
    pub(super) kubernetes: String,
    pub(super) azure: Option<AzureLine>,
    /// Where the controller listens, if it is started.
    pub(super) places: Option<Places>,
    pub(super) folder: PathBuf,
    pub(super) is_kept: bool,
    pub(super) time_factor: f64,
    pub(super) started_in: Duration,
}

/// The URL and files of the emulator.
pub(super) struct AzureLine {
    pub(super) url: String,
    pub(super) ca: PathBuf,
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
}

impl Banner {
    /// Prints it; with `stays`, also commands to try.
    pub(super) fn greet(&self, output: Output, stays: bool) {
        match output {
            Output::Json => say!("{}", self.json()),
            Output::Text => {
                let paint = Paint::for_stdout();
                say!("{}", self.text(paint).trim_end());
                if stays {
                    say!("{}", self.hints(paint));
                }
            }
        }
    }

    /// As text.
    fn text(&self, paint: Paint) -> String {
        let address = self.places.map(|it| format!(" SLUICE_ADDRESS=http://{}", it.api)).unwrap_or_default();
        let mut rows =
            vec![("Your shell", format!("export KUBECONFIG={}{address}", self.kubeconfig.display()))];
        rows.push(("Kubernetes", self.kubernetes.clone()));
        if let Some(places) = self.places {
            rows.insert(0, ("Dashboard", format!("http://{}/", places.api)));
        }
        if let Some(azure) = &self.azure {
            rows.push(("Azure", format!("{}  (resources: {}/_emulator/state)", azure.url, azure.url)));
            rows.push(("CA of Azure", azure.ca.display().to_string()));
        }
        if let Some(places) = self.places {
            rows.push(("Metrics", format!("http://{}/metrics", places.health)));
        }
        if let Some(azure) = &self.azure {
            rows.push(("Configuration", azure.config.display().to_string()));
            rows.push(("Log", azure.log.display().to_string()));
            rows.push((
                "Clock",
                format!("Azure and Sluice run {} times as fast as real time", self.time_factor),
            ));
        }
        let fate = if self.is_kept { "kept" } else { "deleted on exit" };
        rows.push(("Folder", format!("{}  ({fate})", self.folder.display())));
        let what = match (&self.azure, self.places) {
            (None, _) => "Kubernetes API server ready on this machine",
            (Some(_), Some(_)) => "Playground ready: Kubernetes, Azure and Sluice on this machine",
            (Some(_), None) => {
                "Playground ready: Kubernetes and Azure on this machine; the scenario starts Sluice"
            }
        };
        let title = format!("{what}, in {} ms", self.started_in.as_millis());
        let mut text = format!("{}\n\n", paint.bold(&title));
        for (name, value) in rows {
            text.push_str(&format!("  {name:<14} {value}\n"));
        }
        text
    }

    /// Commands to try.
    fn hints(&self, paint: Paint) -> String {
        let Some(azure) = &self.azure else {
            return "\nStop with Ctrl-C.".to_owned();
        };
        let ca = azure.ca.display();
        let url = &azure.url;
        format!(
            "
{heading}, in another terminal, after the export above

  {one} Create a Service with 3 pods
     kubectl create deployment shop --image=nginx --replicas=3
     kubectl expose deployment shop --type=LoadBalancer --port=80
     kubectl get service shop --watch
     sluice status

  {two} Give a pod an egress with its own public IP
     kubectl run crawler --image=nginx --labels={EGRESS_LABEL}=partners
     sluice explain egress/partners

  {three} Slow Azure down, make it unavailable, and end both
     curl --cacert {ca} {url}/_emulator/slow -d '{{\"factor\": 20}}'
     curl --cacert {ca} {url}/_emulator/faults -d '{{\"match\": {{}}, \"fault\": \"unavailable\"}}'
     curl --cacert {ca} {url}/_emulator/calm -d '{{}}'

List the narrated scenarios with `sluice playground --list`. Stop with Ctrl-C.",
            heading = paint.bold("Three things to try"),
            one = paint.bold("1."),
            two = paint.bold("2."),
            three = paint.bold("3."),
        )
    }

    /// As JSON, for scripts.
    fn json(&self) -> Value {
        let azure = self.azure.as_ref();
        let path = |path: &Path| path.display().to_string();
        json!({
            "kubeconfig": path(&self.kubeconfig),
            "kubernetesUrl": self.kubernetes,
            "dashboardUrl": self.places.map(|it| format!("http://{}/", it.api)),
            "apiUrl": self.places.map(|it| format!("http://{}/api/v1/", it.api)),
            "metricsUrl": self.places.map(|it| format!("http://{}/metrics", it.health)),
            "azureUrl": azure.map(|it| &it.url),
            "controlUrl": azure.map(|it| format!("{}/_emulator/", it.url)),
            "caPath": azure.map(|it| path(&it.ca)),
            "config": azure.map(|it| path(&it.config)),
            "log": azure.map(|it| path(&it.log)),
            "folder": path(&self.folder),
            "timeFactor": self.time_factor,
            "startedInMs": u64::try_from(self.started_in.as_millis()).unwrap_or(u64::MAX),
            "pid": std::process::id(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner() -> Banner {
        Banner {
            kubeconfig: "/play/kubeconfig".into(),
            kubernetes: "https://127.0.0.1:6443".into(),
            azure: Some(AzureLine {
                url: "https://127.0.0.1:8443".into(),
                ca: "/play/ca.pem".into(),
                config: "/play/azure.yaml".into(),
                log: "/play/sluice.log".into(),
            }),
            places: Some(Places {
                health: ([127, 0, 0, 1], 8081).into(),
                api: ([127, 0, 0, 1], 8082).into(),
            }),
            folder: "/play".into(),
            is_kept: false,
            time_factor: 10.0,
            started_in: Duration::from_millis(50),
        }
    }

    #[test]
    fn the_banner_lists_all_urls_and_files() {
        expect_test::expect![[r"
            Playground ready: Kubernetes, Azure and Sluice on this machine, in 50 ms

              Dashboard      http://127.0.0.1:8082/
              Your shell     export KUBECONFIG=/play/kubeconfig SLUICE_ADDRESS=http://127.0.0.1:8082
              Kubernetes     https://127.0.0.1:6443
              Azure          https://127.0.0.1:8443  (resources: https://127.0.0.1:8443/_emulator/state)
              CA of Azure    /play/ca.pem
              Metrics        http://127.0.0.1:8081/metrics
              Configuration  /play/azure.yaml
              Log            /play/sluice.log
              Clock          Azure and Sluice run 10 times as fast as real time
              Folder         /play  (deleted on exit)
        "]]
        .assert_eq(&banner().text(Paint::NONE));
        assert_eq!(banner().hints(Paint::NONE).matches("\n     kubectl ").count(), 4);
    }

    #[test]
    fn without_azure_the_banner_lists_only_kubernetes() {
        let alone = Banner { azure: None, places: None, is_kept: true, ..banner() };
        let text = alone.text(Paint::NONE) + &alone.hints(Paint::NONE);
        assert!(!text.contains("Azure") && !text.contains("Dashboard") && !text.contains("curl"), "{text}");
        assert!(text.contains("/play  (kept)"), "{text}");
        let json = alone.json();
        assert_eq!((&json["kubeconfig"], &json["dashboardUrl"]), (&json!("/play/kubeconfig"), &Value::Null));
    }
}
