//! The Standard Webhooks library and the example receivers of the documentation accept our signatures, also during a change of the secret,
//! and reject others.

use std::process::Command;

use cliffwatch::notify::Outcome;

use crate::receivers::outside::{self, ExternalProgram, due, parsed, receivers, send, unlock};

const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// Starts a receiver that verifies messages with the library and `secret`. Responds with 204, or with 401 and the reason.
fn verifier(secret: &str) -> (ExternalProgram, String) {
    let child = ExternalProgram::start(Command::new(outside::python()).arg(outside::script("verify.py")).arg(secret));
    let port = child.line();
    (child, format!("http://127.0.0.1:{port}/hook"))
}

fn signed(url: &str, secrets: &str, format: &str) -> cliffwatch::notify::Receivers {
    receivers(&format!(
        "[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nformat = \"{format}\"\nurl = \"{url}\"\nsecret = \"\"\"\n{secrets}\n\"\"\"\n"
    ))
}

#[tokio::test]
async fn library_accepts_old_and_new_secret_during_rotation() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    for secret in [OLD, NEW] {
        let (verifier, url) = verifier(secret);
        let (outcome, attempt) =
            send(&signed(&url, &format!("{NEW}\n{OLD}"), "cliffwatch"), &due("msg_1", vec![unlock("aptos", 7)])).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(204)), "{}", attempt.response);
        let seen = parsed(&verifier.line());
        assert_eq!(seen["id"], "msg_1");
        assert_eq!(seen["type"], "alert.firing");
        assert_eq!(seen["signatures"], 2);
    }
}

#[tokio::test]
async fn library_rejects_another_secret_and_missing_signatures() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    let (_verifier, url) = verifier(OLD);
    let (outcome, attempt) = send(&signed(&url, NEW, "cliffwatch"), &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(401)), "{}", attempt.response);
    let unsigned = receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{url}\"\n"));
    let (outcome, _) = send(&unsigned, &due("msg_1", vec![unlock("aptos", 7)])).await;
    assert_eq!(outcome, Outcome::Refused);
}

#[tokio::test]
async fn alertmanager_bodies_are_signed() {
    if outside::lacks_python("standardwebhooks") {
        return;
    }
    let (verifier, url) = verifier(OLD);
    let (outcome, attempt) = send(&signed(&url, OLD, "alertmanager"), &due("msg_7", vec![unlock("aptos", 7)])).await;
    assert_eq!(outcome, Outcome::Accepted, "{}", attempt.response);
    assert_eq!(parsed(&verifier.line())["id"], "msg_7");
}

/// The commands that start the example receivers of the documentation.
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
async fn example_receivers_accept_only_signed_messages() {
    for mut command in examples() {
        let receiver = ExternalProgram::start(command.arg(OLD));
        let url = receiver.line();
        let alert = unlock("aptos", 7);
        let message = due("msg_1", vec![alert.clone()]);
        let (outcome, attempt) = send(&signed(&url, &format!("{NEW}\n{OLD}"), "cliffwatch"), &message).await;
        assert_eq!((outcome, attempt.status), (Outcome::Accepted, Some(204)), "{command:?}: {}", attempt.response);
        assert!(receiver.line().starts_with(&format!("alert.firing {}", alert.alert)), "{command:?}");
        let (outcome, attempt) = send(&signed(&url, NEW, "cliffwatch"), &message).await;
        assert_eq!((outcome, attempt.status), (Outcome::Refused, Some(401)), "{command:?}: {}", attempt.response);
        let unsigned = receivers(&format!("[[receiver]]\nname = \"ops\"\ntype = \"webhook\"\nurl = \"{url}\"\n"));
        assert_eq!(send(&unsigned, &message).await.0, Outcome::Refused, "{command:?}");
    }
}
