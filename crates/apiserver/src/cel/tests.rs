#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn object() -> Value {
    json!({
        "a": 1, "s": "abc", "l": [1, 2, 3], "m": {"k": "v"}, "d": {"a-b": "w"}, "f": 1.5, "n": null, "names": ["x", "y"], "b": true,
        "objs": [{"name": "p", "v": 1}, {"name": "q"}], "metadata": {"namespace": "ns"}, "umlaut": "äö",
    })
}

fn judged(text: &str, object: &Value) -> Result<Answer, String> {
    let scope = Scope::default().with("self", object, None);
    Expression::read(text).evaluate(&scope, &mut Budget::default()).map_err(|why| why.0)
}

#[test]
fn expressions_are_judged() {
    for text in include_str!("tests/true.cel").lines().filter(|line| !line.is_empty()) {
        assert_eq!(judged(text, &object()), Ok(Answer::Bool(true)), "{text}");
        assert_eq!(judged(&format!("!({text})"), &object()), Ok(Answer::Bool(false)), "{text}");
    }
}

/// Either the parser and the evaluator do not know it, or they have another result than kube-apiserver.
#[test]
fn what_differs_from_the_real_server_is_not_judged() {
    let rows = [
        ("a wrong expression", "self.a ==", "it cannot be parsed here"),
        ("a member of a number", "self.a.b == 1", "No such overload"),
        ("a member of null", "has(self.n.b)", "No such overload"),
        ("a missing member", "self.zz == 1", "No such key: zz"),
        ("another type", "self.a == 'x'", "No such overload"),
        ("a division by zero", "1 / 0 == 1", "Division by zero"),
        ("an overflow", "9223372036854775807 + 1 > 0", "Overflow"),
        ("an unknown variable", "other == 1", "Undeclared reference to 'other'"),
        ("an authorizer", "authorizer.group('').resource('pods').check('get').allowed()", "is not evaluated here"),
        (
            "a time zone",
            "timestamp('2026-03-04T05:06:07Z').getHours('Europe/Berlin') == 6",
            "getHours with a time zone",
        ),
        ("the text of a time", "string(duration('90s')) == '90s'", "of this type differs"),
        ("a URL", "url('https://a.b').getHost() == 'a.b'", "getHost is not evaluated here"),
        ("a library that Kubernetes does not have", "math.abs(-1) == 1", "abs is not evaluated here"),
        ("a function that Kubernetes does not have", "'abc'.reverse() == 'cba'", "reverse is not evaluated here"),
        ("a type", "type(self.a) == int", "type is not evaluated here"),
        ("an object of a type", "google.protobuf.Timestamp{}.seconds == 0", "makes an object of a type"),
        ("a large quantity", "quantity('1e30').isGreaterThan(quantity('1'))", "this large or small differs"),
        ("digits of Unicode", "self.umlaut.matches('\\\\d')", "not ASCII differs"),
        ("a pattern from the object", "'a'.matches(self.s)", "a pattern that is no literal"),
        ("a pattern with a backreference", "'a'.matches('(a)\\\\1')", "that RE2 refuses"),
        ("a pattern with a set operation", "'a'.matches('[a-z&&a]')", "may read otherwise"),
        ("a huge pattern", "'a'.matches('(a{1000}){1000}')", "too large"),
        ("a list as long as it is told", "size(lists.range(1000000000)) > 0", "range is not evaluated here"),
        ("a float in a text", "'%.1f'.format([1.5]) == '1.5'", "only %s and %d are formatted"),
        ("macros with two variables", "[1].all(i, v, true)", "all is not evaluated here"),
    ];
    for (name, text, want) in rows {
        let why = judged(text, &object()).expect_err(name);
        assert!(why.contains(want), "{name}: {why}");
    }
}

#[test]
fn steps_are_bounded_before_the_evaluation() {
    let many = json!({"l": vec!["x"; 100], "s": "x".repeat(10_000), "p": vec![1; 20]});
    let nested = |levels: usize| {
        let heads = (0..levels).map(|level| format!("self.l.all(x{level}, ")).collect::<Vec<_>>().concat();
        format!("{heads}true{}", ")".repeat(levels))
    };
    let growing = |times: usize| format!("size(self.s{}) > 0", ".replace('x', 'xxxxxxxxxxxxxxxx')".repeat(times));
    let rows = [
        ("a loop", nested(1), true),
        ("a loop in a loop in a loop", nested(3), false),
        ("a text that grows", growing(1), true),
        ("a text that grows and grows", growing(4), false),
        ("a pattern on a long text", format!("self.s.matches('{}')", "(x+x+)+".repeat(5)), true),
        ("a pattern in a loop", "self.l.all(x, self.s.matches('(x+x+)+y'))".to_owned(), true),
        ("a pattern in two loops", "self.l.all(x, self.l.all(y, self.s.matches('(x+x+)+y')))".to_owned(), false),
        ("letters of a text", "self.s.split('').all(c, self.s.split('').all(d, c == d))".to_owned(), false),
        ("pairs", "self.l.distinct().size() == 1".to_owned(), true),
        ("a list of lists", "self.p.map(x, x).map(y, [y, y]).size() == 20".to_owned(), true),
    ];
    for (name, text, is_judged) in rows {
        let result = judged(&text, &many);
        let is_bounded = result.as_ref().is_err_and(|why| why.contains("it may take more than 1000000 steps"));
        assert_eq!(!is_bounded, is_judged, "{name}: {result:?}");
    }
}

#[test]
fn expressions_about_one_object_share_a_budget() {
    let object = json!({"l": vec!["x"; 50]});
    let scope = Scope::default().with("self", &object, None);
    let expression = Expression::read("self.l.all(x, self.l.all(y, y != 'z'))");
    let mut budget = Budget::default();
    let mut judged = 0;
    while expression.evaluate(&scope, &mut budget).is_ok() {
        judged += 1;
    }
    assert!((5..200).contains(&judged), "{judged}");
    let why = expression.evaluate(&scope, &mut budget).unwrap_err();
    assert!(why.0.contains("more than 10000000 steps"), "{why}");
}

/// What passes the limit of nesting fits the stack of a thread of tokio, also in a build for debugging.
#[test]
fn deepest_expressions_fit_a_small_stack() {
    let chain = |part: &str, number: usize| vec!["1"; number].join(part);
    let around = |open: &str, close: &str, number: usize| format!("{}1{}", open.repeat(number), close.repeat(number));
    let mut texts = Vec::new();
    for number in 1..40 {
        texts.extend([
            chain("+", number),
            chain("==", number),
            chain(" in ", number),
            format!("{}1", "true?1:".repeat(number)),
        ]);
        texts.extend([
            around("(", ")", number),
            around("[", "]", number),
            around("{1:", "}", number),
            around("size(", ")", number),
        ]);
        texts.extend([
            around("[1].all(x,", ")", number),
            format!("self{}", ".a".repeat(number)),
            format!("self{}", "[0]".repeat(number)),
        ]);
        texts.push((0..number).fold("self".to_owned(), |inner, _| format!("size({inner}.a.b)")));
        texts.push((0..number).fold("self".to_owned(), |inner, _| format!("[{inner}].all(x, x.a.b == 1)")));
        texts.push(format!("{}{}{}", "(".repeat(number), chain("+", 36 - number.min(8) * 4), ")".repeat(number)));
    }
    let judge = move || texts.iter().filter(|text| Expression::read(text).fault().is_none()).count();
    let thread = std::thread::Builder::new().stack_size(2 << 20).spawn(judge).unwrap();
    assert!(thread.join().unwrap() > 150);
}

#[test]
fn variables_are_found_as_words() {
    let expression = Expression::read("self.oldSelf == 1 && oldSelfie == 2");
    assert!(!expression.names("oldSelf") && expression.names("self") && expression.names("oldSelfie"));
    assert!(Expression::read("self.x == oldSelf.x").names("oldSelf"));
}

#[test]
fn patterns_that_another_library_reads_otherwise_are_known() {
    for (pattern, want) in [
        ("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", false),
        (r"^[^]a]+\.example\.com(:\d{1,5})?$", false),
        ("^[[:alpha:]_][[:alnum:]-]*?$", false),
        ("(?i)^(?P<name>a|b)+(?:c)*$", false),
        (r"^\[x+\]\{2000\}$", false),
        ("^[a-z&&a]$", true),
        ("^[a--b]$", true),
        ("^[a~~b]$", true),
        ("^[[b]]$", true),
        (r"\<b\>", true),
        (r"\b{start}b", true),
        ("(?x)a b", true),
        ("(?i-u:a)", true),
        ("b*+", true),
        ("b+?*", true),
        ("b{2}{3}", true),
        (r"\u0062", true),
        ("a{1001}", true),
        ("a{2,5000}", true),
    ] {
        assert_eq!(functions::is_read_otherwise(pattern), want, "{pattern}");
    }
}
