//! YAML bodies and answers.

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
