use super::*;

#[test]
fn subject_of_a_token_is_that_of_its_claims() {
    let claims = URL_SAFE_NO_PAD.encode(r#"{"iss": "x", "sub": "system:serviceaccount:jobs:controller"}"#);
    let rows = [
        (format!("head.{claims}.signature\n"), Some("system:serviceaccount:jobs:controller")),
        ("opaque".to_owned(), None),
        ("a.b.c".to_owned(), None),
    ];
    for (token, want) in rows {
        assert_eq!(subject(&token).as_deref(), want, "{token}");
    }
}
