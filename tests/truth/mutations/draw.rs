//! Draws mutations of Jobs from a seed.
//!
//! Guarantees: the same seed gives the same mutations. [`sweep`] mutates every path of the Go types below a Job's spec at least three
//! times: it takes a field away, sets it to values at and beyond the limits of its type, to texts of wrong and right formats, and to
//! values of other fields; it repeats, adds and removes entries of lists and maps.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// The type whose paths are mutated.
const SPEC: &str = "batch.v1.JobSpec";

/// A sequence of numbers (splitmix64).
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("a remainder fits")
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// A step from a value to one below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    Field(String),
    Item,
    Entry,
}

/// A path of the types, such as `.template.spec.containers[].image`.
#[derive(Clone, Debug)]
pub struct Path {
    steps: Vec<Step>,
    type_: String,
    /// The values of an enumeration, by the OpenAPI schema.
    known: Vec<String>,
}

impl Path {
    pub fn text(&self) -> String {
        let step = |step: &Step| match step {
            Step::Field(name) => format!(".{name}"),
            Step::Item => "[]".to_owned(),
            Step::Entry => "{}".to_owned(),
        };
        self.steps.iter().map(step).collect()
    }
}

/// A mutated Job's spec.
#[derive(Clone, Debug)]
pub struct Case {
    /// What was changed.
    pub title: String,
    pub spec: Value,
}

type Types = BTreeMap<String, BTreeMap<String, Vec<String>>>;

fn types() -> Types {
    serde_json::from_str(include_str!("../../../crates/apiserver/src/kinds/types.json")).expect("the table of types")
}

/// All paths below a Go type.
pub fn paths(root: &str) -> Vec<Path> {
    let types = types();
    let schemas: Value =
        serde_json::from_str(include_str!("../../../crates/apiserver/src/openapi_schemas.json")).expect("the schemas");
    let mut all = Vec::new();
    walk(&types, &schemas, root, &[], &mut Vec::new(), &mut all);
    all
}

fn walk(types: &Types, schemas: &Value, name: &str, known: &[String], at: &mut Vec<Step>, all: &mut Vec<Path>) {
    let inner = |prefix: &str| name.strip_prefix(prefix);
    if let Some(inner) = inner("*") {
        return walk(types, schemas, inner, known, at, all);
    }
    if !at.is_empty() {
        all.push(Path { steps: at.clone(), type_: name.to_owned(), known: known.to_vec() });
    }
    let below = [("[]", Step::Item), ("{}", Step::Entry)];
    for (prefix, step) in below {
        if let Some(inner) = inner(prefix) {
            at.push(step);
            walk(types, schemas, inner, known, at, all);
            at.pop();
            return;
        }
    }
    let Some(fields) = types.get(name) else { return };
    for (field, entry) in fields {
        let schema = &schemas[format!("io.k8s.api.{name}")]["properties"][field];
        let values = [&schema["enum"], &schema["items"]["enum"], &schema["allOf"][0]["enum"]];
        let values = values.into_iter().find_map(Value::as_array).into_iter().flatten();
        let known: Vec<String> = values.filter_map(Value::as_str).map(str::to_owned).collect();
        at.push(Step::Field(field.clone()));
        walk(types, schemas, &entry[0], &known, at, all);
        at.pop();
    }
}

/// The specs that are mutated.
pub fn bases() -> Vec<Value> {
    let documents = include_str!("bases.yaml").split("\n---\n");
    documents.map(|text| serde_saphyr::from_str(text).unwrap_or_else(|why| panic!("{why}:\n{text}"))).collect()
}

/// Each path, mutated `times` times.
pub fn sweep(seed: u64, times: usize) -> Vec<Case> {
    let (bases, mut rng) = (bases(), Rng::new(seed));
    let mut cases = Vec::new();
    for path in paths(SPEC) {
        let mut choices = choices(&path);
        for _ in 0..times {
            let chosen =
                if choices.is_empty() { Choice::Remove } else { choices.swap_remove(rng.below(choices.len())) };
            let base = base_with(&bases, &path, &mut rng);
            let mut spec = base.clone();
            let change = apply(&mut spec, &path, &chosen, &mut rng);
            cases.push(Case { title: format!("{}: {change}", path.text()), spec });
        }
    }
    cases
}

/// `number` specs with up to four mutations each.
pub fn combinations(seed: u64, number: usize) -> Vec<Case> {
    let (bases, paths, mut rng) = (bases(), paths(SPEC), Rng::new(seed ^ 0x5eed));
    let mut cases = Vec::new();
    for _ in 0..number {
        let mut spec = rng.pick(&bases).clone();
        let mut titles = Vec::new();
        for _ in 0..=rng.below(4) {
            // Most paths are of volumes and containers that a spec does not have.
            let present: Vec<&Path> = paths.iter().filter(|path| is_present(&spec, &path.steps)).collect();
            let is_any = present.is_empty() || rng.below(4) == 0;
            let path = if is_any { rng.pick(&paths) } else { present[rng.below(present.len())] };
            let choices = choices(path);
            let chosen = rng.pick(&choices).clone();
            titles.push(format!("{}: {}", path.text(), apply(&mut spec, path, &chosen, &mut rng)));
        }
        cases.push(Case { title: titles.join("; "), spec });
    }
    cases
}

/// A base that has the path, or any.
fn base_with<'a>(bases: &'a [Value], path: &Path, rng: &mut Rng) -> &'a Value {
    let (_, parents) = path.steps.split_last().expect("paths have steps");
    for steps in [&path.steps[..], parents] {
        let having: Vec<&Value> = bases.iter().filter(|base| is_present(base, steps)).collect();
        if !having.is_empty() {
            return having[rng.below(having.len())];
        }
    }
    rng.pick(bases)
}

fn is_present(value: &Value, steps: &[Step]) -> bool {
    let Some((first, rest)) = steps.split_first() else { return true };
    match first {
        Step::Field(name) => value.get(name).is_some_and(|value| is_present(value, rest)),
        Step::Item => value.as_array().is_some_and(|items| items.iter().any(|item| is_present(item, rest))),
        Step::Entry => value.as_object().is_some_and(|entries| entries.values().any(|value| is_present(value, rest))),
    }
}

/// A way to change a value.
#[derive(Clone, Debug)]
pub enum Choice {
    Remove,
    Set(Value),
    /// Appends a copy of the first entry.
    Repeat,
    /// Has so many copies of the first entry.
    Grow(usize),
}

const TEXTS: [&str; 66] = [
    "",
    "a",
    "A",
    "-a",
    "a-",
    "a.b",
    "a_b",
    "_a",
    "a/b",
    "/a",
    "../a",
    "a/../b",
    "..",
    "..a",
    ".",
    "...",
    "a b",
    " a",
    "a ",
    "é",
    "a\nb",
    "<a&b>",
    "a=b",
    "9a",
    "a--b",
    "0",
    "007",
    "-1",
    "2147483648",
    "10.1.2.3",
    "010.1.2.3",
    "1.2.3",
    "256.1.1.1",
    "::1",
    "2001:DB8::1",
    "::ffff:1.2.3.4",
    "fe80::1%eth0",
    "example.com/name",
    "kubernetes.io/x",
    "a.kubernetes.io/x",
    "requests.a/b",
    "example.com/a/b",
    "iqn.2001-04.com.example:storage",
    "naa.0",
    "localhost/x",
    "runtime/default",
    "$(A)",
    "host:1",
    "[::1]:1",
    "metadata.name",
    "metadata.labels",
    "metadata.labels['a']",
    "metadata.annotations['A/']",
    "spec.nodeName",
    "spec.host",
    "status.phase",
    "spec.foo",
    "limits.cpu",
    "requests.memory",
    "requests.hugepages-2Mi",
    "hugepages-2Mi",
    "cpu",
    "storage",
    "main",
    "data",
    "CAP_SYS_ADMIN",
];
const NUMBERS: [i64; 27] = [
    -2_147_483_649,
    -2_147_483_648,
    -1,
    0,
    1,
    2,
    3,
    100,
    101,
    254,
    255,
    256,
    420,
    511,
    512,
    599,
    600,
    755,
    3599,
    3600,
    65_535,
    65_536,
    100_001,
    2_147_483_647,
    2_147_483_648,
    4_294_967_296,
    4_294_967_297,
];
/// Fractions, and more than an integer has.
const LARGE: [f64; 8] = [1.5, 0.1, -0.5, 1e-7, 1.844_674_407_370_955_2e19, 1e21, -1e21, 1e300];
const QUANTITIES: [&str; 22] = [
    "0", "1", "-1", "0.5", "1m", "100m", "128m", "1500m", "1k", "1Ki", "1Mi", "2Mi", "3Mi", "1Gi", "100Gi", "1e3",
    "1E", "10Ei", "1n", "", "abc", "1e30",
];
const KEYS: [&str; 22] = [
    "a",
    "",
    "A/b",
    "a/b/c",
    "example.com/a",
    "-a",
    "a b",
    "é",
    "cpu",
    "memory",
    "ephemeral-storage",
    "storage",
    "pods",
    "hugepages-2Mi",
    "hugepages-x",
    "example.com/gpu",
    "requests.cpu",
    "beta.kubernetes.io/os",
    "kubernetes.io/config.mirror",
    "scheduler.alpha.kubernetes.io/critical-pod",
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.apparmor.security.beta.kubernetes.io/main",
];

pub fn choices(path: &Path) -> Vec<Choice> {
    let set = |values: &[Value]| values.iter().cloned().map(Choice::Set).collect::<Vec<_>>();
    let texts = |texts: &[&str]| texts.iter().map(|text| Choice::Set(json!(text))).collect::<Vec<_>>();
    let long = [15, 16, 63, 64, 65, 104, 105, 253, 254, 4096].map(|length| Choice::Set(json!("x".repeat(length))));
    let mut choices = match path.type_.as_str() {
        "bool" => set(&[json!(true), json!(false), json!("true"), json!(1)]),
        "int32" | "int64" => [
            set(&NUMBERS.map(|number| json!(number))),
            set(&LARGE.map(|number| json!(number))),
            set(&[json!(i64::MIN), json!(i64::MAX), json!(i64::MAX as u64 + 1), json!(u64::MAX), json!("1")]),
        ]
        .concat(),
        "quantity" => [texts(&QUANTITIES), set(&[json!(1), json!(0.5)])].concat(),
        "intorstring" => {
            let numbers = [-1, 0, 1, 80, 65_535, 65_536, 4_294_967_296_i64].map(|number| json!(number));
            [set(&numbers), texts(&["http", "80", "", "-a", "a--b", "9", "abcdefghijklmnop", "A"])].concat()
        }
        "time" => texts(&["2026-01-15T10:00:00Z", "", "yesterday"]),
        type_ if type_.starts_with("[]") => [
            vec![
                Choice::Repeat,
                Choice::Grow(0),
                Choice::Grow(4),
                Choice::Grow(21),
                Choice::Grow(33),
                Choice::Grow(256),
            ],
            set(&[json!([null]), json!("a")]),
        ]
        .concat(),
        type_ if type_.starts_with("{}") => {
            let value = if type_ == "{}quantity" { json!("1") } else { json!("v") };
            let entry = |key: &&str| Choice::Set(Value::Object(Map::from_iter([((*key).to_owned(), value.clone())])));
            [KEYS.iter().map(entry).collect(), set(&[json!({}), json!([])])].concat()
        }
        type_ if type_ == "string" || type_.starts_with("string:") => {
            let known: Vec<&str> = path.known.iter().map(String::as_str).collect();
            // An enumeration has its own values as often as others.
            let own = known.iter().cycle().take(if known.is_empty() { 0 } else { 30 }).copied().collect::<Vec<_>>();
            [texts(&own), texts(&TEXTS), long.to_vec(), set(&[json!(1)])].concat()
        }
        _ => set(&[json!({}), json!([]), json!("a")]),
    };
    choices.extend([Choice::Remove, Choice::Set(Value::Null)]);
    choices
}

/// Changes the value at a path, which is made if it is absent. Returns what was done.
pub fn apply(spec: &mut Value, path: &Path, choice: &Choice, rng: &mut Rng) -> String {
    change(spec, &path.steps, choice, rng);
    match choice {
        Choice::Remove => "removed".to_owned(),
        Choice::Set(value) => {
            let text = value.to_string();
            format!("set to {}", if text.len() > 80 { format!("{} bytes", text.len()) } else { text })
        }
        Choice::Repeat => "an entry repeated".to_owned(),
        Choice::Grow(number) => format!("{number} entries"),
    }
}

fn change(value: &mut Value, steps: &[Step], choice: &Choice, rng: &mut Rng) {
    let Some((first, rest)) = steps.split_first() else {
        set(value, choice);
        return;
    };
    match first {
        Step::Field(name) => {
            if !value.is_object() {
                *value = json!({});
            }
            let fields = value.as_object_mut().expect("made above");
            if rest.is_empty() && matches!(choice, Choice::Remove) {
                fields.remove(name);
            } else {
                change(fields.entry(name.clone()).or_insert(Value::Null), rest, choice, rng);
            }
        }
        Step::Item => {
            if !value.is_array() {
                *value = json!([]);
            }
            let items = value.as_array_mut().expect("made above");
            if items.is_empty() {
                items.push(Value::Null);
            }
            let having: Vec<usize> = (0..items.len()).filter(|index| is_present(&items[*index], rest)).collect();
            let index = if having.is_empty() { rng.below(items.len()) } else { *rng.pick(&having) };
            if rest.is_empty() && matches!(choice, Choice::Remove) {
                items.remove(index);
            } else {
                change(&mut items[index], rest, choice, rng);
            }
        }
        Step::Entry => {
            if !value.is_object() {
                *value = json!({});
            }
            let entries = value.as_object_mut().expect("made above");
            let keys: Vec<String> = entries.keys().cloned().collect();
            let key = if keys.is_empty() { "a".to_owned() } else { rng.pick(&keys).clone() };
            change(entries.entry(key).or_insert(Value::Null), rest, choice, rng);
        }
    }
}

fn set(value: &mut Value, choice: &Choice) {
    match choice {
        Choice::Remove => *value = Value::Null,
        Choice::Set(new) => *value = new.clone(),
        Choice::Repeat | Choice::Grow(_) => {
            let entries = value.as_array().cloned().unwrap_or_default();
            let first = entries.first().cloned().unwrap_or_else(|| json!({}));
            *value = match choice {
                Choice::Grow(number) => vec![first; *number].into(),
                _ => entries.into_iter().chain([first]).collect::<Vec<_>>().into(),
            };
        }
    }
}
