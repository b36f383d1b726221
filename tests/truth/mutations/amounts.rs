//! Draws quantities from a seed, in every place of a Job that has one.
//!
//! Guarantees: the same seed gives the same Jobs. No exponent is beyond 40: kube-apiserver computes 10 to the power of it, and hangs. No
//! number of 10^21 or more has a suffix, since upstream writes it without, and none of 10^15 or more a fraction.

use serde_json::{Value, json};

use super::draw::{Case, Rng};

const DIGITS: [&str; 40] = [
    "",
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "7",
    "8",
    "9",
    "10",
    "16",
    "64",
    "100",
    "128",
    "250",
    "500",
    "512",
    "999",
    "1000",
    "1001",
    "1023",
    "1024",
    "1025",
    "1500",
    "2000",
    "2048",
    "4096",
    "8192",
    "123456",
    "123456789",
    "1048576",
    "999999999999999999",
    "1000000000000000001",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "000",
    "007",
    "00000000000000000000001",
];
const FRACTIONS: [&str; 14] = [
    "",
    "",
    "",
    "",
    ".",
    ".0",
    ".5",
    ".25",
    ".000",
    ".001",
    ".0001",
    ".123456789",
    ".1234567891",
    ".9999999999999999999",
];
const SUFFIXES: [&str; 16] = ["", "", "", "n", "u", "m", "m", "k", "M", "G", "T", "Ki", "Mi", "Gi", "Ti", "Ei"];
const EXPONENTS: [&str; 16] =
    ["e0", "e1", "e2", "e3", "E3", "e6", "e+3", "e-3", "e-6", "e-9", "e-10", "e-20", "e18", "e19", "e21", "e30"];
const WRONG: [&str; 14] =
    ["K", "mi", "ki", "Kib", "e", "E1m", "ee3", "e3.5", "e+", "i", "m1", "e99999999999999999999", " ", "Zi"];
const NAMES: [&str; 20] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "cpu",
    "memory",
    "hugepages-2Mi",
    "hugepages-1Gi",
    "hugepages-3",
    "hugepages-1.5Mi",
    "hugepages-0",
    "hugepages-",
    "hugepages-2.5e6",
    "example.com/gpu",
    "nvidia.com/gpu",
    "kubernetes.io/x",
    "requests.cpu",
    "requests.example.com/gpu",
    "storage",
    "pods",
    "example.com/",
];
const NUMBERS: [f64; 6] = [0.1, 1.5, 1e-3, 1e-7, 1e21, 2.5e30];

/// A quantity: a text, or seldom a number.
fn quantity(rng: &mut Rng) -> Value {
    match rng.below(16) {
        0 => return json!(NUMBERS[rng.below(NUMBERS.len())]),
        1 => return json!(rng.below(3000)),
        _ => {}
    }
    let sign = if rng.below(8) == 0 { *rng.pick(&["-", "+"]) } else { "" };
    let digits = match rng.below(5) {
        0 => (0..=rng.below(25)).map(|_| char::from(b'0' + u8::try_from(rng.below(10)).expect("a digit"))).collect(),
        _ => (*rng.pick(&DIGITS)).to_owned(),
    };
    let fraction = rng.pick(&FRACTIONS);
    let suffix = match rng.below(10) {
        0 => rng.pick(&WRONG),
        1 | 2 => rng.pick(&EXPONENTS),
        _ => rng.pick(&SUFFIXES),
    };
    // What is so large, upstream judges by the form in which it was written.
    let power = match *suffix {
        "k" | "Ki" => 3,
        "M" | "Mi" => 6,
        "G" | "Gi" => 9,
        "T" | "Ti" => 12,
        "Ei" => 18,
        suffix => suffix.get(1..).and_then(|power| power.parse().ok()).unwrap_or(0),
    };
    let fraction = if digits.len() + power > 15 { &"" } else { fraction };
    let is_exponent = EXPONENTS.contains(suffix);
    let suffix = if digits.len() > 14 && is_exponent { &"" } else { suffix };
    let is_decimal = ["", "k", "M", "G", "T"].contains(suffix);
    let suffix = if is_decimal && digits.len() > 8 && digits.ends_with('0') { "n" } else { suffix };
    json!(format!("{sign}{digits}{fraction}{suffix}"))
}

/// A second quantity beside one: often the same amount in another form.
fn beside(first: &Value, rng: &mut Rng) -> Value {
    let text = first.as_str().unwrap_or_default();
    match rng.below(6) {
        0 | 1 => first.clone(),
        2 => match text.strip_suffix("Gi") {
            Some(number) if number.len() == 1 => json!(format!("{number}024Mi")),
            _ => json!(format!("0{text}")),
        },
        3 => text.parse::<u32>().map_or_else(|_| json!(format!("+{text}")), |number| json!(format!("{number}000m"))),
        _ => quantity(rng),
    }
}

fn resources(rng: &mut Rng) -> Value {
    let mut resources = json!({});
    for _ in 0..=rng.below(2) {
        let name = *rng.pick(&NAMES);
        // Upstream judges negative pages, and 10^19 or more, by the form in which they were written, too.
        let is_huge = |amount: &Value| {
            let size = amount.as_f64().or_else(|| amount.as_str()?.parse().ok());
            size.is_some_and(|size: f64| size >= 1e19)
        };
        let positive = |amount: Value| match amount.as_str() {
            _ if !name.starts_with("hugepages") => amount,
            _ if is_huge(&amount) => json!("4Mi"),
            Some(text) => json!(text.trim_start_matches('-')),
            None => amount,
        };
        let first = positive(quantity(rng));
        if rng.below(4) > 0 {
            resources["limits"][name] = positive(beside(&first, rng));
        }
        if rng.below(4) > 0 {
            resources["requests"][name] = first;
        }
    }
    resources
}

/// So many Jobs.
pub fn cases(seed: u64, number: usize) -> Vec<Case> {
    let mut rng = Rng::new(seed ^ 0xa_0071);
    (0..number).map(|_| case(&mut rng)).collect()
}

fn case(rng: &mut Rng) -> Case {
    let claim = |storage: Value, limit: Value| {
        let resources = json!({"requests": {"storage": storage}, "limits": {"storage": limit}});
        json!({"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}})
    };
    let mut container = json!({"name": "main", "image": "busybox:1"});
    let mut pod = json!({"restartPolicy": "Never"});
    let shown = match rng.below(10) {
        0 => {
            let (resource, divisor) =
                (rng.pick(&["limits.cpu", "requests.memory", "limits.hugepages-2Mi", "cpu"]), quantity(rng));
            let reference = json!({"resource": resource, "divisor": divisor});
            container["env"] = json!([{"name": "A", "valueFrom": {"resourceFieldRef": reference}}]);
            reference
        }
        1 => {
            pod["volumes"] = json!([{"name": "v", "emptyDir": {"sizeLimit": quantity(rng)}}]);
            pod["volumes"].clone()
        }
        2 => {
            pod["volumes"] = json!([{"name": "v", "ephemeral": claim(quantity(rng), quantity(rng))}]);
            pod["volumes"].clone()
        }
        3 => {
            pod["overhead"] = resources(rng)["requests"].clone();
            pod["overhead"].clone()
        }
        4 | 5 => {
            pod["resources"] = resources(rng);
            container["resources"] = resources(rng);
            pod["initContainers"] = json!([
                {"name": "a", "image": "i", "resources": resources(rng)},
                {"name": "b", "image": "i", "restartPolicy": "Always", "resources": resources(rng)},
            ]);
            json!([pod["resources"], container["resources"], pod["initContainers"]])
        }
        _ => {
            container["resources"] = resources(rng);
            container["resources"].clone()
        }
    };
    pod["containers"] = json!([container]);
    Case { title: format!("with {shown}"), spec: json!({"template": {"spec": pod}}) }
}
