//! What must not be in the tree: a second TLS library, or one in C.
//!
//! Two rustls providers in one process compile, and panic at the first connection.

use std::process::{Command, Output};

fn tree(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--workspace", "--edges", "all"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs, since it runs this test")
}

#[test]
fn neither_aws_lc_nor_openssl_nor_native_tls_is_in_the_tree() {
    for unwanted in ["aws-lc-rs", "aws-lc-sys", "openssl", "openssl-sys", "native-tls"] {
        let output = tree(&["--invert", unwanted]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(out.is_empty(), "{unwanted} is in the tree:\n{out}");
        // Cargo says in one of two ways that it found nothing; anything else is no answer.
        let nothing = ["did not match any packages", "nothing to print"];
        assert!(nothing.iter().any(|words| err.contains(words)), "cargo tree about {unwanted}: {err}");
    }
}

#[test]
fn the_question_would_find_what_is_there() {
    let output = tree(&["--invert", "ring"]);
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && out.contains("sluice-arm"), "{out}");
}
