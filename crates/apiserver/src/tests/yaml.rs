//! YAML bodies and answers.

use std::future::Future;

use apimachinery::quoting::quote;
use apimachinery::steps;

use super::support::{APPLY, Server, WIDGETS, at, widget};

#[tokio::test(start_paused = true)]
async fn yaml_is_read_and_written() {
    let server = Server::new();
    let body = "apiVersion: test/v1\nkind: Widget\nmetadata: {name: a}\nspec:\n  size: 3\n";
    let made = server.ask("POST", WIDGETS, &[("content-type", "application/yaml")], body).await.expect(201);
    assert_eq!(made["spec"]["size"], 3);
    let shown = server.ask("GET", &at("a"), &[("accept", "application/yaml")], "").await;
    assert!(shown.body.as_str().unwrap().contains("\nspec:\n  size: 3\n"), "{}", shown.body);
}

#[tokio::test(start_paused = true)]
async fn duplicate_members_of_yaml_are_refused_or_warned_of_with_the_line_of_their_value() {
    let server = Server::new();
    let head = "apiVersion: test/v1\nkind: Widget\nmetadata: {name: a}\n";
    let many = "spec:\n  size: 1\n".to_owned() + &"  size: 1\n".repeat(9);
    let rows = [
        ("none", "spec: {size: 1}\n", vec![]),
        ("one", "spec:\n  size: 1\n  size: 2\n", vec![(6, "size")]),
        (
            "a second mapping, and one inside of it",
            "spec: {size: 1}\nspec:\n  size: 1\n  size: 2\n",
            vec![(6, "spec"), (7, "size")],
        ),
        ("more than are named", many.as_str(), vec![(6, "size"), (7, "size"), (8, "size"), (9, "size"), (10, "size")]),
    ];
    for (name, body, want) in rows {
        let body = format!("{head}{body}");
        let lines: Vec<String> =
            want.iter().map(|(line, key)| format!("line {line}: key \"{key}\" already set in map")).collect();
        let problem = format!("yaml: unmarshal errors:\n  {}", lines.join("\n  "));
        for (method, path, kind) in [
            ("PATCH", at("a") + "?fieldManager=m&force=true&", APPLY),
            ("POST", WIDGETS.to_owned() + "?dryRun=All&", "application/yaml"),
        ] {
            let ask = async |validation: &str| {
                let path = format!("{path}fieldValidation={validation}");
                server.ask(method, &path, &[("content-type", kind)], &body).await
            };
            let strict = ask("Strict").await;
            assert_eq!(strict.code == 400, !want.is_empty(), "{name}, {method}: {}", strict.body);
            assert!(want.is_empty() || strict.message().ends_with(&problem), "{name}, {method}: {}", strict.body);
            server.delete(&at("a")).await;
            let warned = ask("Warn").await;
            let sent: Vec<String> = lines.iter().map(|line| format!("299 - {}", quote(line))).collect();
            assert_eq!((warned.code, &warned.warnings), (201, &sent), "{name}, {method}");
            server.delete(&at("a")).await;
            assert_eq!(ask("Ignore").await.warnings, Vec::<String>::new(), "{name}, {method}");
            server.delete(&at("a")).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn yaml_with_excessive_alias_expansion_is_refused() {
    let server = Server::new();
    server.post(WIDGETS, &widget("a")).await.expect(201);
    let again = |what: &str, times| vec![what; times].join(",");
    let cases = [
        ("some aliases", "metadata: {name: &a a, annotations: {a: *a, b: *a}}".to_owned(), 200),
        ("many items, many times", format!("a: &a [{}]\nb: [{}]", again("x", 2000), again("*a", 500)), 400),
        ("a long text, many times", format!("a: &a {}\nb: [{}]", "x".repeat(2000), again("*a", 500)), 400),
        ("a long name, many times", format!("a: &a {{{}: 1}}\nb: [{}]", "x".repeat(1000), again("*a", 500)), 400),
    ];
    let path = format!("{}?fieldManager=m", at("a"));
    for (name, body, code) in cases {
        let body = format!("apiVersion: test/v1\nkind: Widget\n{body}\n");
        let answer = server.ask("PATCH", &path, &[("content-type", APPLY)], &body).await;
        assert_eq!(answer.code, code, "{name}: {}", answer.body);
        let refused = answer.message().contains("yaml: document contains excessive aliasing");
        assert_eq!(refused, code == 400, "{name}: {}", answer.body);
    }
}

#[tokio::test(start_paused = true)]
async fn body_that_is_nested_too_deeply_is_refused_before_it_is_parsed() {
    let server = Server::new();
    server.post(WIDGETS, &widget("a")).await.expect(201);
    let lists = |depth: usize| format!("a: {}{}", "[a, ".repeat(depth), "]".repeat(depth));
    let blocks = |depth: usize| format!("a:\n {}a", "- ".repeat(depth));
    let path = format!("{}?fieldManager=m", at("a"));
    for (name, body, refusal) in [
        ("100 lists", lists(100), None),
        ("200 lists", lists(200), Some("yaml: exceeded max depth of 128")),
        ("20,000 lists", lists(20_000), Some("yaml: exceeded max depth of 1000")),
        ("100 lists in block style", blocks(100), None),
        ("20,000 lists in block style", blocks(20_000), Some("yaml: exceeded max depth of 128")),
    ] {
        let body = format!("apiVersion: test/v1\nkind: Widget\n{body}\n");
        let (steps, answer) = counted(server.ask("PATCH", &path, &[("content-type", APPLY)], &body)).await;
        let is_as_wanted = match refusal {
            Some(refusal) => answer.code == 400 && answer.message().contains(refusal),
            None => !answer.message().contains("max depth"),
        };
        assert!(is_as_wanted, "{name}: {}", answer.body);
        assert!(steps <= 20_000 + 4 * body.len() as u64, "{name}: {steps} steps for {} bytes", body.len());
    }
    let deep = format!(r#"{{"apiVersion": "test/v1", "kind": "Widget", "a": {}{}}}"#, "[".repeat(200), "]".repeat(200));
    let answer = server.ask("POST", WIDGETS, &[], &deep).await;
    assert!(answer.code == 400 && answer.message().contains("exceeded max depth"), "{}", answer.body);
}

/// The steps of what is awaited. Nothing else runs on this thread meanwhile.
async fn counted<T>(work: impl Future<Output = T>) -> (u64, T) {
    let mut work = std::pin::pin!(work);
    let mut steps = 0;
    let result = std::future::poll_fn(|context| {
        let (counted, poll) = steps::of(|| work.as_mut().poll(context));
        steps += counted;
        poll
    });
    let result = result.await;
    (steps, result)
}
