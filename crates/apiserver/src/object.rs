//! Stored objects, as JSON trees and as the text that clients receive.
//!
//! Guarantees: an object is immutable. Its text is written at most once, however many clients read or watch it. Objects that
//! have not been used for long are kept as text alone, which takes a tenth of the tree's memory. They are parsed again on
//! access.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use axum::body::Bytes;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::registry::Resource;

/// An object and, once it has been needed, its text.
#[derive(Debug)]
pub struct Object {
    tree: Value,
    text: OnceLock<Arc<Text>>,
}

/// The text of an object.
#[derive(Debug)]
pub struct Text {
    /// JSON with kind and apiVersion first, and a newline.
    line: Bytes,
    /// The offset at which kind and apiVersion end.
    head: usize,
}

/// An object in one of its forms; clones share it.
#[derive(Clone, Debug)]
pub enum Entry {
    /// As a tree.
    Whole(Arc<Object>),
    /// As text.
    Packed(Arc<Text>),
}

impl Object {
    /// Makes an immutable object.
    pub fn new(tree: Value) -> Arc<Self> {
        Arc::new(Self { tree, text: OnceLock::new() })
    }

    fn text(&self) -> &Arc<Text> {
        self.text.get_or_init(|| Arc::new(Text::new(&self.tree)))
    }
}

impl Deref for Object {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.tree
    }
}

fn is_head(key: &str) -> bool {
    matches!(key, "kind" | "apiVersion")
}

impl Text {
    fn new(tree: &Value) -> Self {
        let mut line = Vec::with_capacity(1024);
        let mut member = |key: &str, value: &Value| {
            line.push(if line.is_empty() { b'{' } else { b',' });
            write(&mut line, key);
            line.push(b':');
            write(&mut line, value);
            line.len()
        };
        let members = || tree.as_object().into_iter().flatten();
        let known = ["kind", "apiVersion"].into_iter().filter_map(|key| Some(member(key, tree.get(key)?)));
        let head = known.last().unwrap_or(0);
        for (key, value) in members().filter(|(key, _)| !is_head(key)) {
            member(key, value);
        }
        if line.is_empty() {
            line.push(b'{');
        }
        line.extend_from_slice(b"}\n");
        Self { line: Bytes::from(line.into_boxed_slice()), head }
    }

    /// The JSON with its newline.
    pub fn line(&self) -> &Bytes {
        &self.line
    }

    /// The JSON without its newline.
    pub fn json(&self) -> &[u8] {
        &self.line[..self.line.len() - 1]
    }

    /// The JSON without its newline, shared with this text.
    pub fn without_newline(&self) -> Bytes {
        self.line.slice(..self.line.len() - 1)
    }

    /// The part after the opening brace, without kind and apiVersion.
    fn rest(&self) -> &[u8] {
        let rest = &self.json()[self.head..];
        // The first member follows a brace or a comma; an object without members is only its closing brace.
        if rest.len() > 1 { &rest[1..] } else { rest }
    }
}

fn write(line: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    serde_json::to_writer(line, value).expect("a vector takes all, and all keys are text");
}

impl Entry {
    /// The object as a tree.
    pub fn object(&self) -> Arc<Object> {
        match self {
            Self::Whole(object) => Arc::clone(object),
            Self::Packed(text) => {
                let tree = serde_json::from_slice(&text.line).unwrap_or_default();
                Arc::new(Object { tree, text: OnceLock::from(Arc::clone(text)) })
            }
        }
    }

    /// The object as text.
    pub fn text(&self) -> &Arc<Text> {
        match self {
            Self::Whole(object) => object.text(),
            Self::Packed(text) => text,
        }
    }

    /// Drops the tree and keeps the text.
    pub fn pack(&mut self) {
        if let Self::Whole(object) = self {
            *self = Self::Packed(Arc::clone(object.text()));
        }
    }

    /// Whether this is the same version of the same object.
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Whole(one), Self::Whole(other)) => Arc::ptr_eq(one, other),
            (Self::Packed(one), Self::Packed(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

/// A list of objects.
#[derive(Debug)]
pub struct List {
    /// The kind of the items.
    pub resource: Arc<Resource>,
    /// The metadata of the list.
    pub metadata: Map<String, Value>,
    /// The items in order.
    pub items: Vec<Entry>,
}

impl List {
    /// Whether items have kind and apiVersion: those of custom resources do, those of built-in kinds do not.
    fn is_headed(&self) -> bool {
        self.resource.group.contains('.') && !self.resource.group.ends_with(".k8s.io")
    }

    fn line(&self) -> Bytes {
        let size: usize = self.items.iter().map(|item| item.text().line.len() + 2).sum();
        let mut line = Vec::with_capacity(size + 256);
        let (kind, version) = (&self.resource.kind, self.resource.api_version());
        let metadata = Value::Object(self.metadata.clone());
        let head =
            format!("{{\"kind\":\"{kind}List\",\"apiVersion\":\"{version}\",\"metadata\":{metadata},\"items\":[");
        line.extend_from_slice(head.as_bytes());
        let headed = self.is_headed();
        for (index, item) in self.items.iter().enumerate() {
            if index > 0 {
                line.push(b',');
            }
            if headed {
                line.extend_from_slice(item.text().json());
            } else {
                line.push(b'{');
                line.extend_from_slice(item.text().rest());
            }
        }
        line.extend_from_slice(b"]}\n");
        line.into()
    }

    fn tree(&self) -> Value {
        let headed = self.is_headed();
        let item = |entry: &Entry| {
            let mut item = (**entry.object()).clone();
            if let Some(map) = item.as_object_mut().filter(|_| !headed) {
                map.retain(|key, _| !is_head(key));
            }
            item
        };
        json!({
            "kind": format!("{}List", self.resource.kind), "apiVersion": self.resource.api_version(),
            "metadata": self.metadata, "items": self.items.iter().map(item).collect::<Vec<_>>(),
        })
    }
}

/// The document of an answer.
#[derive(Debug)]
pub enum Document {
    /// Any document.
    Tree(Value),
    /// A stored object.
    Object(Entry),
    /// Stored objects.
    List(List),
}

impl Document {
    /// As JSON with a newline.
    pub fn line(&self) -> Bytes {
        match self {
            Self::Tree(tree) => format!("{tree}\n").into(),
            Self::Object(entry) => entry.text().line().clone(),
            Self::List(list) => list.line(),
        }
    }

    /// As a tree.
    pub fn into_tree(self) -> Value {
        match self {
            Self::Tree(tree) => tree,
            Self::Object(entry) => (**entry.object()).clone(),
            Self::List(list) => list.tree(),
        }
    }
}

impl From<Arc<Object>> for Document {
    fn from(object: Arc<Object>) -> Self {
        Self::Object(Entry::Whole(object))
    }
}

impl From<Value> for Document {
    fn from(tree: Value) -> Self {
        Self::Tree(tree)
    }
}

#[cfg(test)]
mod tests;
