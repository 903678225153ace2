//! Commands on either machine that send messages: the active instance sends them, because only it may write deliveries of alerts, and
//! because it tracks the limits of the receivers.

use super::Stage;

const DIGEST: &str = "name = \"steady\"\ndigest = { at = \"08:00\" }";

impl Stage {
    /// Returns the number of accepted messages that are tests.
    fn accepted_tests(&self) -> usize {
        self.books.accepted().iter().filter(|(_, body)| body["type"] == "test").count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_messages_are_sent_by_the_active_instance() {
    let Some(stage) = Stage::start().await else { return };
    stage.wait_for_baselines().await;
    let lease = stage.lease();
    let mut expected = 0;
    for instance in &stage.instances {
        for words in [&["notify", "steady"][..], &["notify", "steady", "--digest"]] {
            instance.edit("cliffwatch.toml", |config| match config.contains(DIGEST) {
                true => config,
                false => config.replace("name = \"steady\"", DIGEST),
            });
            let (code, output) = instance.run(words);
            assert_eq!(code, Some(0), "{words:?}: {output}\n{}", stage.logs());
            assert!(output.contains("a daemon is running, so it sends the message"), "{output}");
            assert!(output.contains("steady: delivered"), "{output}");
            expected += 1;
            assert_eq!(stage.accepted_tests(), expected, "{:?}", stage.books.accepted());
        }
    }
    assert_eq!(stage.lease(), lease, "the command takes no lease");
}
