use tempfile::TempDir;

use super::support::*;
use model::{Timestamp, *};

#[tokio::test]
async fn opt_out_survives_restart_until_removed() {
    let directory = TempDir::new().expect("a directory");
    let store = owned(&directory).await;
    let request = |receiver: &str, at: Timestamp, via: OptOutSource| OptOut {
        receiver: receiver.into(),
        address: "desk@example.com".to_owned(),
        at,
        via,
    };
    assert!(store.opt_out(request("desk", now(), OptOutSource::Link)).await.expect("written"));
    assert!(
        !store.opt_out(request("desk", now() + minutes(5), OptOutSource::Hand)).await.expect("written"),
        "the opt-out exists"
    );
    assert!(store.opt_out(request("risk", now(), OptOutSource::Hand)).await.expect("written"));
    let key = store.ensure_link_key(LinkKey::new([1; 32])).await.expect("stored");
    store.close().await.expect("closes");

    let store = owned(&directory).await;
    assert_eq!(store.opt_outs(Some("desk".into())).await.expect("read"), [request("desk", now(), OptOutSource::Link)]);
    assert_eq!(store.opt_outs(None).await.expect("read").len(), 2);
    assert_eq!(store.ensure_link_key(LinkKey::new([2; 32])).await.expect("read"), key, "links in sent digests stay valid");
    assert_eq!(store.link_key().await.expect("read"), Some(LinkKey::new([1; 32])));
    assert_eq!(format!("{key:?}"), "LinkKey(…)");
    assert!(store.opt_in("desk".into(), "desk@example.com".to_owned(), now()).await.expect("written"));
    assert!(!store.opt_in("desk".into(), "desk@example.com".to_owned(), now()).await.expect("written"));
    assert_eq!(store.opt_outs(Some("desk".into())).await.expect("read"), []);
}
