#![allow(clippy::unwrap_used)]

use futures::FutureExt;

use super::*;

#[tokio::test]
async fn four_are_read_at_a_time_and_two_of_one_namespace() {
    let answers = LongAnswers::new();
    let now = |namespace: &str| {
        let namespace = namespace.into();
        answers.permit(&namespace).now_or_never().flatten()
    };
    let rows: [(&[&str], &str, bool); 6] = [
        (&[], "a", true),
        (&["a"], "a", true),
        (&["a", "a"], "a", false),
        (&["a", "a"], "b", true),
        (&["a", "a", "b", "b"], "c", false),
        (&["a", "b", "c"], "a", true),
    ];
    for (held, namespace, expected) in rows {
        let permits: Vec<_> = held.iter().map(|held| now(held).unwrap()).collect();
        assert_eq!(now(namespace).is_some(), expected, "{namespace} beside {held:?}");
        drop(permits);
    }
    assert!(now("z").is_some() && answers.by_namespace.len() == 1, "what is not read leaves nothing");
}

#[tokio::test]
async fn namespace_that_reads_many_keeps_no_other_waiting_but_for_two() {
    let (answers, a, b) = (LongAnswers::new(), Arc::<str>::from("a"), Arc::<str>::from("b"));
    let mut of_a: Vec<_> = (0..100).map(|_| Box::pin(answers.permit(&a))).collect();
    let held: Vec<_> = of_a.iter_mut().filter_map(FutureExt::now_or_never).collect();
    assert_eq!(held.len(), LONG_ANSWERS / 2);
    assert!(answers.permit(&b).now_or_never().flatten().is_some());
}
