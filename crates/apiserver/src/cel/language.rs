//! What of CEL is judged, and what each function means for the size of its result.
//!
//! Guarantee: a function that is not in this list is never called. Pure.

use super::NotJudged;

/// How the result of a function grows with its arguments, and its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A number, a truth value, or the like; the work is that of looking at the arguments.
    Scalar,
    /// No larger than the arguments together.
    Linear,
    /// A list of the letters of a text, or of parts of it.
    Letters,
    /// The same, but each of the items may be compared with each other.
    Pairs,
    /// A text, repeated by another one.
    Product,
    /// A pattern on a text.
    Pattern,
}

/// The operators of the evaluator, and those that stand for it in a tree that was read (`engine`).
const OPERATORS: &[&str] = &[
    "_&&_",
    "_||_",
    "!_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "-_",
    "@not_strictly_false",
    "_==_",
    "_!=_",
    "@in",
    "@has",
    "@short",
];

/// Functions whose result is a number, a truth value, a time, or a small object of a library.
const SCALARS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "int",
    "uint",
    "double",
    "duration",
    "timestamp",
    "getFullYear",
    "getMonth",
    "getDayOfYear",
    "getDayOfMonth",
    "getDate",
    "getDayOfWeek",
    "getHours",
    "getMinutes",
    "getSeconds",
    "getMilliseconds",
    "hasValue",
    "charAt",
    "isSorted",
    "sum",
    "min",
    "max",
    "quantity",
    "isQuantity",
    "isInteger",
    "asInteger",
    "asApproximateFloat",
    "add",
    "sub",
    "isGreaterThan",
    "isLessThan",
    "compareTo",
    "ip",
    "isIP",
    "ip.isCanonical",
    "family",
    "isLoopback",
    "isUnspecified",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isGlobalUnicast",
    "cidr",
    "isCIDR",
    "containsIP",
    "containsCIDR",
    "prefixLength",
    "masked",
    "semver",
    "isSemver",
    "major",
    "minor",
    "patch",
    "validate",
    "format.dns1123Label",
    "format.dns1123Subdomain",
    "format.dns1035Label",
    "format.qualifiedName",
    "format.labelValue",
    "format.uuid",
    "format.date",
    "format.datetime",
];

const LINEAR: &[&str] = &[
    "_+_",
    "_?_:_",
    "_[_]",
    "@select",
    "optional.of",
    "optional.none",
    "optional.ofNonZeroValue",
    "value",
    "or",
    "orValue",
    "lowerAscii",
    "upperAscii",
    "substring",
    "trim",
    "slice",
    "_?._",
    "_[?_]",
];

const PAIRS: [&str; 7] =
    ["indexOf", "lastIndexOf", "distinct", "sort", "sets.contains", "sets.equivalent", "sets.intersects"];

/// What is known of a function or operator.
///
/// # Errors
/// When it is not in the list.
pub fn growth(name: &str) -> Result<Growth, NotJudged> {
    let lists: [(&[&str], Growth); 7] = [
        (OPERATORS, Growth::Scalar),
        (&["split"], Growth::Letters),
        (SCALARS, Growth::Scalar),
        (LINEAR, Growth::Linear),
        (&PAIRS, Growth::Pairs),
        (&["replace", "join", "format"], Growth::Product),
        (&["matches"], Growth::Pattern),
    ];
    let found = lists.iter().find(|(names, _)| names.contains(&name)).map(|(_, growth)| *growth);
    found.ok_or_else(|| NotJudged(format!("{name} is not evaluated here")))
}

/// The functions of times that read a time zone in another form.
pub fn takes_zone(name: &str) -> bool {
    name.starts_with("get") && name[3..].starts_with(|c: char| c.is_ascii_uppercase())
}
