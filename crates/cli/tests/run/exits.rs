//! The commands that look at both worlds end with the same codes as the controller, where they cannot.

use super::NOBODY;
use super::api_server::{ApiServer, kubeconfig, status};
use super::process::{Scene, emulator};

const COMMANDS: [&str; 3] = ["plan", "adopt", "cleanup"];

#[tokio::test]
async fn a_mistake_is_2_but_for_plan_whose_2_is_an_answer() {
    let scene = Scene::new();
    scene.configure(NOBODY, "  concurency: 3\n");
    for (command, code) in [("plan", 1), ("adopt", 2), ("cleanup", 2)] {
        let ended = scene.start(command, &[]).end().await;
        assert_eq!(ended.code, code, "{command}: {}", ended.text);
        ended.says("did you mean sluice.concurrency?");
        ended.says("sluice explain SGW0101");
        let ended = scene.start(command, &["--colour"]).end().await;
        assert_eq!(ended.code, code, "{command}: {}", ended.text);
        ended.says("unexpected argument '--colour'");
        assert_eq!(scene.start(command, &["--help"]).end().await.code, 0, "{command}");
    }
}

#[tokio::test]
async fn without_kubernetes_it_is_5() {
    let scene = Scene::new();
    scene.configure(NOBODY, "");
    kubeconfig(scene.folder(), NOBODY);
    for command in COMMANDS {
        let ended = scene.start(command, &[]).end().await;
        assert_eq!(ended.code, 5, "{command}: {}", ended.text);
        ended.says("more: sluice explain SGW0103");
    }
}

#[tokio::test]
async fn without_a_credential_it_is_6_refused_or_away() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    api.kubeconfig(scene.folder());
    scene.configure(NOBODY, "");
    for command in COMMANDS {
        let ended = scene.start(command, &[]).end().await;
        assert_eq!(ended.code, 6, "{command}: {}", ended.text);
        ended.says("cannot get an access token for Azure");
        ended.says("more: sluice explain SGW0104");
    }
    let emulator =
        emulator(&scene, &["--client", "11111111-1111-1111-1111-111111111111=the-right-one"]).await;
    scene.configure_for(&emulator, "");
    for command in COMMANDS {
        let ended = scene.start(command, &[]).end().await;
        assert_eq!(ended.code, 6, "{command}: {}", ended.text);
        ended.says("Azure rejected the credential");
        ended.keeps_the_secret();
    }
}

#[tokio::test]
async fn a_list_that_kubernetes_refuses_is_5_and_one_that_fails_for_a_moment_is_asked_for_again() {
    let (scene, api) = (Scene::new(), ApiServer::start());
    let emulator =
        emulator(&scene, &["--client", "11111111-1111-1111-1111-111111111111=s3cret-of-azure"]).await;
    scene.configure_for(&emulator, "  defaultOutbound: leave\n");
    api.kubeconfig(scene.folder());
    api.answer(|heard| {
        heard.path.ends_with("/nodes").then(|| (403, status(403, "Forbidden", "nodes is forbidden")))
    });
    let ended = scene.start("plan", &[]).end().await;
    assert_eq!(ended.code, 5, "{}", ended.text);
    ended.says("list nodes denied at the cluster scope");

    let mut failures = 2;
    api.answer(move |heard| {
        if !heard.path.ends_with("/nodes") || failures == 0 {
            return None;
        }
        failures -= 1;
        Some((503, status(503, "ServiceUnavailable", "in a moment")))
    });
    let ended = scene.start("plan", &[]).end().await;
    assert!([0, 2].contains(&ended.code), "{}: {}", ended.code, ended.text);
}
