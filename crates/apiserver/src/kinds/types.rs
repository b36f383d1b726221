//! How Go writes the served kinds as JSON.
//!
//! Guarantees: the table holds every field of every type that the served kinds reach, with its Go type and the rules by
//! which Go leaves it out. It is read off k8s.io/api v0.36.3 by `tests/controlplane/gotypes` and never written by hand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

/// The type of a field, an element or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Text; Go's name of the type is kept for messages.
    String(String),
    Bool,
    /// A number with Go's name: `int32`, `int64`, `float64`…
    Number(String),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Base64 text.
    Bytes,
    /// Kept as it comes (`fieldsV1`).
    Any,
    List(Box<Type>),
    Map(Box<Type>),
    Pointer(Box<Type>),
    Struct(String),
}

impl Type {
    fn parse(text: &str) -> Self {
        if let Some(rest) = text.strip_prefix("[]") {
            return Self::List(Box::new(Self::parse(rest)));
        }
        if let Some(rest) = text.strip_prefix("{}") {
            return Self::Map(Box::new(Self::parse(rest)));
        }
        if let Some(rest) = text.strip_prefix('*') {
            return Self::Pointer(Box::new(Self::parse(rest)));
        }
        if let Some(rest) = text.strip_prefix("string:") {
            return Self::String(rest.to_owned());
        }
        match text {
            "string" => Self::String(text.to_owned()),
            "bool" => Self::Bool,
            "time" => Self::Time,
            "microtime" => Self::MicroTime,
            "quantity" => Self::Quantity,
            "intorstring" => Self::IntOrString,
            "bytes" => Self::Bytes,
            "any" => Self::Any,
            number if !number.contains('.') => Self::Number(number.to_owned()),
            name => Self::Struct(name.to_owned()),
        }
    }

    /// Go's name of the type, as its JSON errors give it.
    pub(super) fn go_name(&self) -> String {
        match self {
            Self::String(name) | Self::Number(name) => name.clone(),
            Self::Bool => "bool".to_owned(),
            Self::Time => "v1.Time".to_owned(),
            Self::MicroTime => "v1.MicroTime".to_owned(),
            Self::Quantity => "resource.Quantity".to_owned(),
            Self::IntOrString => "intstr.IntOrString".to_owned(),
            Self::Bytes => "[]uint8".to_owned(),
            Self::Any => "v1.FieldsV1".to_owned(),
            Self::List(element) => format!("[]{}", element.go_name()),
            Self::Map(element) => format!("map[string]{}", element.go_name()),
            Self::Pointer(element) => element.go_name(),
            // `batch.v1.CronJobSpec` is `v1.CronJobSpec` to Go.
            Self::Struct(name) => name.split_once('.').map_or(name.as_str(), |(_, rest)| rest).to_owned(),
        }
    }
}

/// One field of a struct.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub(super) type_: Type,
    /// `omitempty`.
    pub(super) omit_empty: bool,
    /// `omitzero`.
    pub(super) omit_zero: bool,
    pub(super) pointer: bool,
    /// The merge key in strategic merge patches: empty for lists of scalars that are merged, none for lists that are replaced.
    pub(super) merge_key: Option<String>,
    /// The name of the embedded struct that the field comes from; Go's errors name it.
    pub(super) embedded: Option<String>,
    /// The protobuf field number, with those of the embedded structs around it in front: `2.1`. Empty where there is none.
    pub(super) number: String,
}

/// One struct: its fields by their JSON names.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    /// Go's bare name, as `CronJobSpec`.
    pub(super) name: String,
    pub(super) fields: BTreeMap<String, Field>,
    /// The fields that Go writes although they are not given, once somebody has asked.
    pub(super) absent: OnceLock<Vec<(String, Value)>>,
}

static TABLE: LazyLock<HashMap<String, Struct>> = LazyLock::new(|| {
    let raw: HashMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(include_str!("types.json")).expect("the table is generated, and a test parses it");
    raw.into_iter().map(|(name, fields)| (name.clone(), parse_struct(&name, fields))).collect()
});

fn parse_struct(name: &str, fields: BTreeMap<String, Vec<String>>) -> Struct {
    let fields = fields.into_iter().map(|(name, entry)| (name, parse_field(&entry))).collect();
    Struct { name: name.rsplit('.').next().unwrap_or(name).to_owned(), fields, absent: OnceLock::new() }
}

fn parse_field(entry: &[String]) -> Field {
    let text = |index: usize| entry.get(index).map_or("", String::as_str);
    let flags = text(1);
    Field {
        type_: Type::parse(text(0)),
        omit_empty: flags.contains('o'),
        omit_zero: flags.contains('z'),
        pointer: flags.contains('p'),
        merge_key: flags.contains('m').then(|| text(2).to_owned()),
        embedded: Some(text(3)).filter(|name| !name.is_empty()).map(str::to_owned),
        number: text(4).to_owned(),
    }
}

/// The struct of a name such as `batch.v1.CronJob`.
///
/// # Panics
/// When the table has no such type: names come from the table itself, and from constants that a test checks.
pub(super) fn lookup(name: &str) -> &'static Struct {
    TABLE.get(name).unwrap_or_else(|| panic!("the table of Go types has no {name}"))
}

/// Whether the table has a type.
pub(super) fn exists(name: &str) -> bool {
    TABLE.contains_key(name)
}

/// The struct type that a list of structs, a map of them or a pointer ends in.
pub(super) fn element(type_: &Type) -> Option<&str> {
    match type_ {
        Type::Struct(name) => Some(name),
        Type::List(inner) | Type::Map(inner) | Type::Pointer(inner) => element(inner),
        _ => None,
    }
}

/// The package that holds the Go types of an API group: `rbac` for `rbac.authorization.k8s.io`. Groups of other domains
/// have none, and are themselves.
pub(crate) fn package(group: &str) -> &str {
    match group.strip_suffix(".k8s.io") {
        _ if group.is_empty() => "core",
        Some(own) => own.split('.').next().unwrap_or(own),
        None => group,
    }
}

/// The key by which the items of the list at `path` are merged, from the struct `root`.
pub(super) fn merge_key(root: &str, path: &[&str]) -> Option<&'static str> {
    field_at(root, path)?.merge_key.as_deref().filter(|key| !key.is_empty())
}

/// The field at `path`, from the struct `root`; list indices are left out.
pub(super) fn field_at(root: &str, path: &[&str]) -> Option<&'static Field> {
    let (last, parents) = path.split_last()?;
    let mut current = lookup(root);
    for name in parents {
        current = lookup(element(&current.fields.get(*name)?.type_)?);
    }
    current.fields.get(*last)
}
