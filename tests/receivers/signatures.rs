//! The Standard Webhooks library of its authors takes our signatures, also while a secret is changed, and nothing else; and so do the
//! receivers that the documentation shows.

use std::process::Command;

use cliffwatch::notify::Outcome;

use crate::outside::{self, Outside, due, parsed, receivers, send, unlock};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A receiver that verifies with the library and `secret`: 204 where it takes a message, 401 with the reason where not.
fn verifier(secret: &str) -> (Outside, String) {
    let child = Outside::start(Command::new(outside::python()).arg(outside::script("verify.py")).arg(secret));
    let port = child.line();
    (child, format!("http://127.0.0.1:{port}/hook"))
}

fn signed(url: &str, secrets: &str, format: &str) -> cliffwatch::notify::Receivers {
    receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"{format}\"\nurl = \"{url}\"\nsecret = \"\"\"\n{secrets}\n\"\"\"\n"
    ))
}

#[tokio::test]
async fn the_librarys_check_passes_with_either_secret_while_one_replaces_the_other() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    for held in [OLD, NEW] {
        let (verifier, url) = verifier(held);
        let (outcome, attempt) =
            send(&signed(&url, &format!("{NEW}\n{OLD}"), "cliffwatch"), &due("msg_1", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(204)), "{}", attempt.answer);
        let seen = parsed(&verifier.line());
        assert_eq!(seen["id"], "msg_1");
        assert_eq!(seen["type"], "alert.firing");
        assert_eq!(seen["signatures"], 2);
    }
}

#[tokio::test]
async fn the_librarys_check_fails_with_another_secret_and_without_one() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    let (_verifier, url) = verifier(OLD);
    let (outcome, attempt) = send(&signed(&url, NEW, "cliffwatch"), &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(401)), "{}", attempt.answer);
    let unsigned = receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{url}\"\n"));
    let (outcome, _) = send(&unsigned, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!(outcome, Outcome::Refused);
}

#[tokio::test]
async fn the_bodies_of_alertmanager_and_of_templates_are_signed_too() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    let (verifier, url) = verifier(OLD);
    let (outcome, attempt) = send(&signed(&url, OLD, "alertmanager"), &due("msg_7", vec![unlock("aptos", 7)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.answer);
    assert_eq!(parsed(&verifier.line())["id"], "msg_7");
}

/// The examples of the documentation, as they are started.
fn examples() -> Vec<Command> {
    let example = |name: &str| std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/examples").join(name);
    let mut all = Vec::new();
    if !outside::lacks_python("hmac") {
        let mut command = Command::new(outside::python());
        command.arg(example("receiver.py"));
        all.push(command);
    }
    if !outside::lacks_program("node", "nodejs") {
        let mut command = Command::new(outside::program("node"));
        command.arg(example("receiver.mjs"));
        all.push(command);
    }
    all
}

#[tokio::test]
async fn the_receivers_of_the_documentation_take_what_is_signed_and_nothing_else() {
    for mut command in examples() {
        let receiver = Outside::start(command.arg(OLD));
        let url = receiver.line();
        let alert = unlock("aptos", 7);
        let message = due("msg_1", vec![alert.clone()]);
        let (outcome, attempt) = send(&signed(&url, &format!("{NEW}\n{OLD}"), "cliffwatch"), &message).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(204)), "{command:?}: {}", attempt.answer);
        assert!(receiver.line().starts_with(&format!("alert.firing {}", alert.alert)), "{command:?}");
        let (outcome, attempt) = send(&signed(&url, NEW, "cliffwatch"), &message).await;
        assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(401)), "{command:?}: {}", attempt.answer);
        let unsigned = receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{url}\"\n"));
        assert_eq!(send(&unsigned, &message).await.0, Outcome::Refused, "{command:?}");
    }
}
