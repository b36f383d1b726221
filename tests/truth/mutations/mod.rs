//! Mutations of CronJobs and Jobs, created by dry run on the embedded server and on the real one.
//!
//! Both must accept or both refuse each of them, with the same warnings and the same errors, and an accepted one must have the same
//! defaults. There are no exceptions, but for what the real server does not answer: it panics, or its time is up.
//!
//! The mutations are drawn from a seed, which is printed; `TRUTH_SEED` sets it. `TRUTH_MUTATIONS=all` mutates every path of the types
//! below a Job's spec; a number draws so many. `recorded.json` holds the real server's answers to the default ones, for where the
//! fixture is not built.

mod amounts;
mod draw;
mod whole;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use futures::StreamExt;
use regex::Regex;
use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Map, Serializer, Value, json};

use super::drive::{self, Target};
use super::dsl::post;
use draw::{Case, Rng};

const RECORDED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/truth/mutations/recorded.json");
const SEED: u64 = 1;
/// How many are drawn by default, and how often each path is mutated if all are.
const FEW: usize = 400;
const EACH: usize = 4;
/// How many Jobs with drawn quantities there are if all paths are mutated.
const AMOUNTS: usize = 2000;
/// One in so many objects is a Job, the others are CronJobs.
const OBJECTS: usize = 4;
/// The statuses of no verdict: kube-apiserver panics, as when it counts the indexes of a success policy without completions, or its
/// time is up.
const UNANSWERED: [u64; 2] = [0, 504];
/// The title of a spec that both servers must accept.
const UNCHANGED: &str = "as it is";

/// What a server says of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    status: u64,
    /// The causes of a refusal, or its message if it has none, in alphabetical order.
    errors: Vec<String>,
    warnings: Vec<String>,
    /// The stored spec of an accepted object, and of its metadata what the object gave.
    spec: Value,
}

impl Answer {
    fn is_accepted(&self) -> bool {
        self.status == 201
    }

    /// What is recorded: of the spec only a digest.
    fn record(&self) -> Value {
        json!([self.status, self.errors, self.warnings, digest(&without_empty_lists(self.spec.clone()))])
    }
}

/// A spec with null in place of empty lists, as the real server stores it.
fn without_empty_lists(mut spec: Value) -> Value {
    match &mut spec {
        Value::Array(items) if items.is_empty() => return Value::Null,
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_empty_lists(item.take())),
        Value::Object(fields) => fields.values_mut().for_each(|value| *value = without_empty_lists(value.take())),
        _ => {}
    }
    spec
}

/// FNV-1a of the text.
fn digest(value: &Value) -> String {
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", value.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, fold))
}

/// The objects that are created, with what was changed of each.
pub struct Objects {
    seed: u64,
    is_default: bool,
    titled: Vec<(String, Value)>,
}

impl Objects {
    /// Those that the environment asks for.
    pub fn drawn() -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let seed = match variable("TRUTH_SEED") {
            Some(text) => text.parse().map_err(|why| format!("TRUTH_SEED={text}: {why}"))?,
            None => SEED,
        };
        let number = match variable("TRUTH_MUTATIONS").as_deref() {
            Some("all") => None,
            Some(text) => Some(text.parse().map_err(|why| format!("TRUTH_MUTATIONS={text}: {why}"))?),
            None => Some(FEW),
        };
        let mut rng = Rng::new(seed.wrapping_add(7));
        let swept = draw::sweep(seed, EACH);
        let unchanged = draw::bases().into_iter().flat_map(|spec| {
            let case = |_| Case { title: UNCHANGED.to_owned(), spec: spec.clone() };
            (0..OBJECTS).map(case).collect::<Vec<_>>()
        });
        let around = whole::sweep(seed, EACH);
        let (cases, around): (Vec<Case>, Vec<(String, Value)>) = match number {
            None => {
                let combined = draw::combinations(seed, swept.len());
                let amounts = amounts::cases(seed, AMOUNTS);
                (unchanged.chain(swept).chain(combined).chain(amounts).collect(), around)
            }
            Some(number) => {
                let few: Vec<Case> = (0..number / 2).map(|_| rng.pick(&swept).clone()).collect();
                let combined = draw::combinations(seed, number - number / 2);
                let amounts = amounts::cases(seed, number / 4);
                let around = (0..number / 4).map(|_| rng.pick(&around).clone()).collect();
                (unchanged.chain(few).chain(combined).chain(amounts).collect(), around)
            }
        };
        let objects = cases.into_iter().enumerate().map(|(index, case)| object(index, case)).chain(around).collect();
        Ok(Self { seed, is_default: seed == SEED && number == Some(FEW), titled: objects })
    }
}

/// A CronJob or a Job, by turns, with a spec.
fn object(index: usize, Case { title, spec }: Case) -> (String, Value) {
    let metadata = json!({"name": "x"});
    if index % OBJECTS == 3 {
        let mut spec = spec;
        // A selector is generated.
        if let Some(fields) = spec.as_object_mut().filter(|_| index % 8 == 3) {
            fields.remove("selector");
        }
        return (
            format!("Job {title}"),
            json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}),
        );
    }
    let spec = json!({"schedule": "0 3 * * *", "jobTemplate": {"spec": spec}});
    (
        format!("CronJob {title}"),
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}),
    )
}

static UID: LazyLock<Regex> =
    LazyLock::new(|| Regex::new("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}").expect("a constant"));

/// Creates all objects by dry run.
pub async fn ask(target: &dyn Target, objects: &Objects) -> Result<Vec<Answer>, String> {
    let asking = objects.titled.iter().map(|(title, object)| one(target, title, object));
    futures::stream::iter(asking).buffered(8).collect::<Vec<_>>().await.into_iter().collect()
}

async fn one(target: &dyn Target, title: &str, object: &Value) -> Result<Answer, String> {
    let plural = if object["kind"] == "Job" { "jobs" } else { "cronjobs" };
    let path = format!("/apis/batch/v1/namespaces/default/{plural}?dryRun=All&fieldValidation=Strict");
    let Ok((status, warnings, body)) =
        drive::exchange(&target.client(), &post(&path, object).body(as_go_writes(object))).await
    else {
        return Ok(Answer { status: 0, errors: Vec::new(), warnings: Vec::new(), spec: Value::Null });
    };
    let body: Value =
        serde_json::from_str(&UID.replace_all(&body, "<uid>")).map_err(|why| format!("{title}: {why}"))?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let causes = body["details"]["causes"].as_array().into_iter().flatten();
    let causes = causes.map(|cause| ["reason", "field", "message"].map(|name| text(&cause[name])).join("|"));
    let mut errors: BTreeSet<String> = causes.collect();
    if errors.is_empty() && status != 201 {
        errors.insert(text(&body["message"]));
    }
    let spec = if status == 201 { stored(&body) } else { Value::Null };
    // A client receives equal warnings once.
    let warnings: BTreeSet<String> = warnings.into_iter().collect();
    Ok(Answer {
        status: status.into(),
        errors: errors.into_iter().collect(),
        warnings: warnings.into_iter().collect(),
        spec,
    })
}

/// What is compared of an accepted object.
fn stored(object: &Value) -> Value {
    let given = ["labels", "annotations", "finalizers", "ownerReferences", "generation", "resourceVersion", "selfLink"];
    let metadata = given.map(|name| (name.to_owned(), object["metadata"][name].clone()));
    json!({"spec": object["spec"], "status": object["status"], "metadata": Map::from_iter(metadata)})
}

/// Writes numbers as kubectl sends them.
struct AsGo;

impl Formatter for AsGo {
    fn write_f64<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, number: f64) -> std::io::Result<()> {
        let size = number.abs();
        if size != 0.0 && !(1e-6..1e21).contains(&size) {
            let text = format!("{number:e}");
            return writer.write_all(if size < 1.0 { text } else { text.replace('e', "e+") }.as_bytes());
        }
        write!(writer, "{number}")
    }
}

fn as_go_writes(object: &Value) -> String {
    let mut text = Vec::new();
    object.serialize(&mut Serializer::with_formatter(&mut text, AsGo)).expect("a value is written to memory");
    String::from_utf8(text).expect("JSON is text")
}

/// Reads the answers that were recorded for the default mutations.
pub fn recorded(objects: &Objects) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(RECORDED).ok().filter(|_| objects.is_default)?;
    serde_json::from_str(&text).ok()
}

/// Writes the answers to the default mutations.
pub fn record(objects: &Objects, answers: &[Answer]) -> Result<(), String> {
    if !objects.is_default {
        return Ok(());
    }
    let lines: Vec<String> = answers.iter().map(|answer| answer.record().to_string()).collect();
    std::fs::write(RECORDED, format!("[\n{}\n]\n", lines.join(",\n"))).map_err(|why| format!("{RECORDED}: {why}"))
}

/// Compares with recorded answers, of which little is known.
pub fn compare_recorded(objects: &Objects, recorded: &[Value], here: &[Answer]) -> Result<(), String> {
    let differ = |(recorded, (here, _)): &(&Value, (&Answer, &(String, Value)))| {
        let is_answered = !recorded[0].as_u64().is_some_and(|status| UNANSWERED.contains(&status));
        *recorded != &here.record() && (is_answered || here.is_accepted())
    };
    let wrong: Vec<_> = recorded.iter().zip(here.iter().zip(&objects.titled)).filter(differ).collect();
    for (recorded, (here, (title, _))) in &wrong {
        println!("  {title}\n      real: {recorded}\n      here: {}", here.record());
    }
    println!("mutations: {} of seed {}, recorded: {} differ", here.len(), objects.seed, wrong.len());
    if wrong.is_empty() && recorded.len() == here.len() {
        return Ok(());
    }
    Err(format!("{} mutations are answered otherwise than recorded", wrong.len()))
}

/// Compares the answers of the two servers.
pub fn compare(objects: &Objects, real: &[Answer], here: &[Answer]) -> Result<(), String> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = 0;
    for ((title, _), (real, here)) in objects.titled.iter().zip(real.iter().zip(here)) {
        let accepted = if real.is_accepted() { "accepted" } else { "refused" };
        *counts.entry(accepted).or_default() += 1;
        *counts.entry("warned").or_default() += usize::from(!real.warnings.is_empty());
        if UNANSWERED.contains(&real.status) && !here.is_accepted() {
            *counts.entry("without an answer of the real server").or_default() += 1;
            continue;
        }
        let difference = match (real.is_accepted(), here.is_accepted()) {
            (true, false) => "refused here and accepted there",
            (false, true) => "accepted here and refused there",
            _ if real.status != here.status => "another status",
            _ if real.errors != here.errors => "other errors",
            _ if real.warnings != here.warnings => "other warnings",
            _ if without_empty_lists(real.spec.clone()) != without_empty_lists(here.spec.clone()) => "other defaults",
            (false, false) if title.ends_with(UNCHANGED) => "a base that is refused",
            _ => continue,
        };
        *counts.entry(difference).or_default() += 1;
        wrong += 1;
        if wrong <= 400 {
            print(title, difference, real, here);
        }
    }
    let counted: Vec<String> = counts.iter().map(|(what, number)| format!("{number} {what}")).collect();
    println!("mutations: {} of seed {}: {}", here.len(), objects.seed, counted.join(", "));
    if wrong == 0 { Ok(()) } else { Err(format!("{wrong} mutations are answered otherwise than by the real server")) }
}

fn print(title: &str, difference: &str, real: &Answer, here: &Answer) {
    println!("  {title}\n    {difference}");
    let only = |name: &str, one: &[String], other: &[String]| {
        for text in one.iter().filter(|text| !other.contains(text)) {
            let text: String = text.chars().take(700).collect();
            println!("      {name}: {text}");
        }
    };
    if title.ends_with(UNCHANGED) {
        only("both", &real.errors, &[]);
    }
    only("real", &real.errors, &here.errors);
    only("here", &here.errors, &real.errors);
    only("real warns", &real.warnings, &here.warnings);
    only("here warns", &here.warnings, &real.warnings);
    if real.is_accepted() && here.is_accepted() {
        specs("", &real.spec, &here.spec);
    }
}

fn specs(path: &str, real: &Value, here: &Value) {
    match (real, here) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                specs(&format!("{path}.{key}"), a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().for_each(|(n, (a, b))| specs(&format!("{path}[{n}]"), a, b));
        }
        (a, b) if a != b => println!("      {path}: real {a}, here {b}"),
        _ => {}
    }
}
