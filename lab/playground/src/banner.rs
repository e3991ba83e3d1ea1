//! What the playground says once everything serves: to people, and to scripts.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use sluice_commands::output::Output;
use sluice_commands::paint::Paint;
use sluice_commands::say;

use super::cluster::EGRESS_LABEL;
use super::controller::Places;

/// All that there is to say.
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

/// The emulator, and what leads to it.
pub(super) struct AzureLine {
    pub(super) url: String,
    pub(super) ca: PathBuf,
    pub(super) config: PathBuf,
    pub(super) log: PathBuf,
}

impl Banner {
    /// Says it; to people who stay also what to try.
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

    /// For people.
    fn text(&self, paint: Paint) -> String {
        let address = self.places.map(|it| format!(" SLUICE_ADDRESS=http://{}", it.api)).unwrap_or_default();
        let mut rows =
            vec![("Your shell", format!("export KUBECONFIG={}{address}", self.kubeconfig.display()))];
        rows.push(("Kubernetes", self.kubernetes.clone()));
        if let Some(places) = self.places {
            rows.insert(0, ("Dashboard", format!("http://{}/", places.api)));
        }
        if let Some(azure) = &self.azure {
            rows.push(("Azure", format!("{}  (what there is: {}/_emulator/state)", azure.url, azure.url)));
            rows.push(("Its CA", azure.ca.display().to_string()));
        }
        if let Some(places) = self.places {
            rows.push(("Metrics", format!("http://{}/metrics", places.health)));
        }
        if let Some(azure) = &self.azure {
            rows.push(("Configuration", azure.config.display().to_string()));
            rows.push(("Log", azure.log.display().to_string()));
            rows.push((
                "Clock",
                format!("{} times as fast as real time, for Azure and Sluice", self.time_factor),
            ));
        }
        let fate = if self.is_kept { "is kept" } else { "goes at the end" };
        rows.push(("Folder", format!("{}  ({fate})", self.folder.display())));
        let what = match (&self.azure, self.places) {
            (None, _) => "A Kubernetes API server on this machine is ready",
            (Some(_), Some(_)) => "A playground is ready: Kubernetes, Azure and Sluice on this machine",
            (Some(_), None) => "A playground is ready: Kubernetes and Azure; the story starts Sluice",
        };
        let title = format!("{what}, in {} ms", self.started_in.as_millis());
        let mut text = format!("{}\n\n", paint.bold(&title));
        for (name, value) in rows {
            text.push_str(&format!("  {name:<14} {value}\n"));
        }
        text
    }

    /// Three things to try, for people who stay.
    fn hints(&self, paint: Paint) -> String {
        let Some(azure) = &self.azure else {
            return "\nStop with Ctrl-C.".to_owned();
        };
        let ca = azure.ca.display();
        let url = &azure.url;
        format!(
            "
{heading}, in another terminal after that export

  {one} An address for a web shop, with three pods behind it
     kubectl create deployment shop --image=nginx --replicas=3
     kubectl expose deployment shop --type=LoadBalancer --port=80
     kubectl get service shop --watch
     sluice status

  {two} An own way out for a pod, and why it is as it is
     kubectl run crawler --image=nginx --labels={EGRESS_LABEL}=partners
     sluice explain egress/partners

  {three} A bad day: Azure is slow, Azure is away, and all is well again
     curl --cacert {ca} {url}/_emulator/slow -d '{{\"factor\": 20}}'
     curl --cacert {ca} {url}/_emulator/faults -d '{{\"match\": {{}}, \"fault\": \"unavailable\"}}'
     curl --cacert {ca} {url}/_emulator/calm -d '{{}}'

Stories with a narrator: sluice playground --list. Stop with Ctrl-C.",
            heading = paint.bold("Three things to try"),
            one = paint.bold("1."),
            two = paint.bold("2."),
            three = paint.bold("3."),
        )
    }

    /// For scripts, in one line.
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
    fn everything_has_its_place_on_the_banner() {
        expect_test::expect![[r"
            A playground is ready: Kubernetes, Azure and Sluice on this machine, in 50 ms

              Dashboard      http://127.0.0.1:8082/
              Your shell     export KUBECONFIG=/play/kubeconfig SLUICE_ADDRESS=http://127.0.0.1:8082
              Kubernetes     https://127.0.0.1:6443
              Azure          https://127.0.0.1:8443  (what there is: https://127.0.0.1:8443/_emulator/state)
              Its CA         /play/ca.pem
              Metrics        http://127.0.0.1:8081/metrics
              Configuration  /play/azure.yaml
              Log            /play/sluice.log
              Clock          10 times as fast as real time, for Azure and Sluice
              Folder         /play  (goes at the end)
        "]]
        .assert_eq(&banner().text(Paint::NONE));
        assert_eq!(banner().hints(Paint::NONE).matches("\n     kubectl ").count(), 4);
    }

    #[test]
    fn kubernetes_alone_speaks_of_nothing_else() {
        let alone = Banner { azure: None, places: None, is_kept: true, ..banner() };
        let text = alone.text(Paint::NONE) + &alone.hints(Paint::NONE);
        assert!(!text.contains("Azure") && !text.contains("Dashboard") && !text.contains("curl"), "{text}");
        assert!(text.contains("/play  (is kept)"), "{text}");
        let json = alone.json();
        assert_eq!((&json["kubeconfig"], &json["dashboardUrl"]), (&json!("/play/kubeconfig"), &Value::Null));
    }
}
