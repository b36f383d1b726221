#![allow(clippy::unwrap_used)]

use std::convert::Infallible;

use tower::{ServiceExt as _, service_fn};

use super::*;

#[tokio::test(start_paused = true)]
async fn changed_certificate_is_used_within_a_minute_once_it_is_valid() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("client.pem");
    let write = |text: &str| fs::write(&file, text).unwrap();
    write("first");
    let make = || {
        let text = fs::read_to_string(&file).map_err(|error| error.to_string())?;
        if text == "half" {
            return Err("the key is another's".to_owned());
        }
        Ok(service_fn(move |()| std::future::ready(Ok::<_, Infallible>(text.clone()))))
    };
    let mut service = Rereading::new(vec![file.clone()], make).unwrap();
    for (sentence, text, pass, want) in [
        ("nothing has changed", None, 120, "first"),
        ("a change is not looked for at once", Some("second"), 10, "first"),
        ("but soon", None, 50, "second"),
        ("what cannot be used changes nothing", Some("half"), 60, "second"),
        ("until it can", Some("third"), 60, "third"),
    ] {
        if let Some(text) = text {
            write(text);
        }
        tokio::time::advance(Duration::from_secs(pass)).await;
        assert_eq!(service.ready().await.unwrap().call(()).await.unwrap(), want, "{sentence}");
    }
    fs::remove_file(&file).unwrap();
    tokio::time::advance(LOOK).await;
    assert_eq!(service.ready().await.unwrap().call(()).await.unwrap(), "third", "a file that is gone");
}

#[test]
fn missing_certificate_is_an_error_at_the_start() {
    let make = || Err::<(), _>("no such file");
    assert_eq!(Rereading::new(vec!["gone.pem".into()], make).err(), Some("no such file"));
}
