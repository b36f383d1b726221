use super::*;

/// No reflector fills the store, as where none of its lists is answered.
#[tokio::test(start_paused = true)]
async fn only_a_namespace_that_the_store_does_not_show_waits_for_it() {
    let jobs = Store::<Job>::new([Some("shop".into())]);
    let takeover = Takeover::default();
    assert_eq!(takeover.wait("shop"), None, "there was no earlier leader");
    takeover.begin(Duration::from_secs(39));
    assert_eq!(["shop", "bank"].map(|name| takeover.wait(name)), [Some(TimeDelta::seconds(39)); 2]);
    takeover.ask(&jobs).await;
    assert_eq!(["shop", "bank"].map(|name| takeover.wait(name)), [Some(TimeDelta::seconds(1)), None]);
}
