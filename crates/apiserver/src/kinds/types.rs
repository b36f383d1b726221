//! The JSON form of the served kinds' Go types.
//!
//! Guarantees: the table holds every field of every type that the served kinds use, with its Go type and the rules by which Go
//! omits it. `tests/controlplane/gotypes` generates it from k8s.io/api v0.37.2; it is never edited by hand.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, OnceLock};

use serde_json::Value;

/// The type of a field, an element or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// A string; messages use Go's name of the type.
    String(String),
    Bool,
    /// A number with Go's name of its type: `int32`, `int64`, `float64`…
    Number(String),
    Time,
    MicroTime,
    Quantity,
    IntOrString,
    /// Base64 text.
    Bytes,
    /// Any value, unchanged (`fieldsV1`).
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

    /// Go's name of the type, as its JSON errors print it.
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
            // The only named type of a map.
            Self::Map(element) if **element == Self::Quantity => "v1.ResourceList".to_owned(),
            Self::Map(element) => format!("map[string]{}", element.go_name()),
            Self::Pointer(element) => element.go_name(),
            // Go prints `batch.v1.CronJobSpec` as `v1.CronJobSpec`.
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
    /// The merge key in strategic merge patches: empty for merged lists of scalars, `None` for lists that are replaced.
    pub(super) merge_key: Option<String>,
    /// The embedded struct that the field comes from; Go's errors print it.
    pub(super) embedded: Option<String>,
    /// The protobuf field number, prefixed with those of the surrounding embedded structs: `2.1`. Empty if there is none.
    pub(super) number: String,
}

/// One struct: its fields by their JSON names.
#[derive(Clone, Debug)]
pub(super) struct Struct {
    /// Go's name without the package, such as `CronJobSpec`.
    pub(super) name: String,
    /// Go's name with the last part of the package, such as `v1.CronJobSpec`.
    pub(super) go_name: String,
    pub(super) fields: BTreeMap<String, Field>,
    /// The fields that Go writes although they are absent, computed on first use.
    pub(super) absent: OnceLock<Vec<(String, Value)>>,
}

static TABLE: LazyLock<HashMap<String, Struct>> = LazyLock::new(|| {
    let raw: HashMap<String, BTreeMap<String, Vec<String>>> =
        serde_json::from_str(include_str!("types.json")).expect("the table is generated, and a test parses it");
    raw.into_iter().map(|(name, fields)| (name.clone(), parse_struct(&name, fields))).collect()
});

fn parse_struct(name: &str, fields: BTreeMap<String, Vec<String>>) -> Struct {
    let fields = fields.into_iter().map(|(name, entry)| (name, parse_field(&entry))).collect();
    let go_name = name.split_once('.').map_or(name, |(_, rest)| rest).to_owned();
    Struct { name: name.rsplit('.').next().unwrap_or(name).to_owned(), go_name, fields, absent: OnceLock::new() }
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
/// When the table has no such type. Names come from the table itself, and from constants that a test checks.
pub(super) fn lookup(name: &str) -> &'static Struct {
    TABLE.get(name).unwrap_or_else(|| panic!("the table of Go types has no {name}"))
}

/// Whether the table has a type.
pub(super) fn exists(name: &str) -> bool {
    TABLE.contains_key(name)
}

/// The struct type inside a list, a map or a pointer.
pub(super) fn element(type_: &Type) -> Option<&str> {
    match type_ {
        Type::Struct(name) => Some(name),
        Type::List(inner) | Type::Map(inner) | Type::Pointer(inner) => element(inner),
        _ => None,
    }
}

/// The package of an API group's Go types: `rbac` for `rbac.authorization.k8s.io`. A group of another domain has no package and
/// is returned as it is.
pub(crate) fn package(group: &str) -> &str {
    match group.strip_suffix(".k8s.io") {
        _ if group.is_empty() => "core",
        Some(own) => own.split('.').next().unwrap_or(own),
        None => group,
    }
}

/// The merge key of the list at `path`, from the struct `root`.
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
