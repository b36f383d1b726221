use std::fmt;

use super::*;

#[derive(Debug)]
struct Layer {
    text: &'static str,
    source: Option<Box<Layer>>,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

impl Error for Layer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

#[test]
fn causes_follow_once_and_without_the_prefix_of_kube() {
    let rows: [(&[&'static str], &str); 5] = [
        (&["get lease"], "get lease"),
        (&["get lease", "no answer", "timed out"], "get lease: no answer: timed out"),
        (&["get lease: timed out", "timed out"], "get lease: timed out"),
        (&["ServiceError: refused", "refused"], "refused"),
        (&["get lease", "ServiceError: refused"], "get lease: refused"),
    ];
    for (layers, want) in rows {
        let wrap = |source, text: &&'static str| Some(Box::new(Layer { text, source }));
        let error = layers.iter().rev().fold(None, wrap);
        assert_eq!(error.map(|error| with_causes(&*error)).as_deref(), Some(want));
    }
}
