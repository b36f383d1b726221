//! Which writes the rules, selectors and conditions of admission configurations choose.
//!
//! Guarantee: nothing is read but the request and what it brings. Pure.
//!
//! Matches k8s.io/apiserver `pkg/admission/plugin/webhook/predicates` (`rules.Matcher`, `namespace.Matcher`, `object.Matcher`) and
//! `pkg/admission/plugin/webhook/matchconditions`.

use serde_json::{Map, Value, json};

use super::cel::{Answer, Budget, Expression, Scope};
use super::kinds::label_selector_matches;
use super::meta;
use super::registry::Resource;

const NAMESPACES: &str = "namespaces";
/// The label that each namespace has with its name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A write, as admission sees it.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The kind of the object.
    pub resource: &'a Resource,
    /// The subresource that the write addresses; empty for none.
    pub subresource: &'a str,
    /// The namespace; empty for none.
    pub namespace: &'a str,
    /// The object as it is to be.
    pub object: &'a Value,
    /// The object as it is; `None` for a new one.
    pub old: Option<&'a Value>,
    /// The object's namespace, if it is known.
    pub namespace_object: Option<&'a Value>,
    /// Whether nothing is to be stored.
    pub dry_run: bool,
    /// Whether no server has it: the user is not known, nor a namespace that is not given.
    pub is_alone: bool,
}

/// What the conditions of a configuration say of a request.
pub enum Chosen {
    /// All hold.
    Yes,
    /// One does not.
    No,
    /// The first that is not judged, by its name, and why.
    Unknown(String),
}

impl Request<'_> {
    /// The operation, as rules name it.
    pub fn operation(&self) -> &'static str {
        if self.old.is_some() { "UPDATE" } else { "CREATE" }
    }

    /// The request of an admission review.
    pub fn review(&self, uid: &str) -> Value {
        let Self { resource, .. } = self;
        let kind = json!({ "group": resource.group, "version": resource.version, "kind": resource.kind });
        let named = json!({ "group": resource.group, "version": resource.version, "resource": resource.plural });
        let mut request = json!({
            "uid": uid, "kind": kind, "resource": named, "requestKind": kind, "requestResource": named,
            "name": meta::text(self.object, "name"), "operation": self.operation(), "object": self.object, "oldObject": self.old,
            "userInfo": { "username": "admin", "groups": ["system:masters", "system:authenticated"] },
            "dryRun": self.dry_run,
        });
        for (field, text) in
            [("namespace", self.namespace), ("subResource", self.subresource), ("requestSubResource", self.subresource)]
        {
            if !text.is_empty() {
                request[field] = json!(text);
            }
        }
        request
    }

    /// Whether a rule names this write.
    pub fn is_named_by(&self, rule: &Value) -> bool {
        let Self { resource, subresource, .. } = self;
        let has = |field: &str, wanted: &str| array(&rule[field]).iter().any(|item| item == "*" || item == wanted);
        let names = |item: &Value| {
            let item = item.as_str().unwrap_or_default();
            let (name, sub) = item.split_once('/').unwrap_or((item, ""));
            (name == "*" || name == resource.plural) && (sub == "*" || sub == *subresource)
        };
        let in_scope = match rule["scope"].as_str() {
            Some("Namespaced") => resource.namespaced,
            Some("Cluster") => !resource.namespaced,
            _ => true,
        };
        let name = meta::text(self.object, "name");
        let of_name = array(&rule["resourceNames"]);
        in_scope
            && has("operations", self.operation())
            && has("apiGroups", &resource.group)
            && has("apiVersions", &resource.version)
            && array(&rule["resources"]).iter().any(names)
            && (of_name.is_empty() || of_name.iter().any(|of| of == name))
    }

    /// Whether `namespaceSelector` and `objectSelector` choose this write: by the labels of the object, new or old, and of its
    /// namespace.
    pub fn is_selected_by(&self, selectors: &Value) -> bool {
        let chooses = |selector: &Value, object: &Value| {
            selector.is_null() || label_selector_matches(selector, &object["metadata"]["labels"])
        };
        let by_object = &selectors["objectSelector"];
        let is_object = chooses(by_object, self.object) || self.old.is_some_and(|old| chooses(by_object, old));
        let by_namespace = &selectors["namespaceSelector"];
        let is_namespace = match self.resource.qualified_name() {
            name if name == NAMESPACES => chooses(by_namespace, self.object),
            _ if !self.resource.namespaced || by_namespace.as_object().is_none_or(Map::is_empty) => true,
            _ if self.namespace_object.is_none() && self.is_alone => self.may_be_in(by_namespace),
            _ => self.namespace_object.is_some_and(|found| chooses(by_namespace, found)),
        };
        is_object && is_namespace
    }

    /// Whether the selector may choose the namespace, of which only the name is known.
    fn may_be_in(&self, selector: &Value) -> bool {
        let labels = json!({ NAME_LABEL: self.namespace });
        let is_of_name = |item: &Value| item["key"] == NAME_LABEL;
        let named = array(&selector["matchExpressions"]).iter().filter(|item| is_of_name(item)).cloned().collect();
        let by_label = selector["matchLabels"].get(NAME_LABEL);
        label_selector_matches(&json!({ "matchExpressions": Value::Array(named) }), &labels)
            && by_label.is_none_or(|name| *name == *self.namespace)
    }

    /// Whether the namespaceSelector is about labels that are not known.
    pub fn is_unsure_of(&self, selectors: &Value) -> bool {
        let selector = &selectors["namespaceSelector"];
        let other_label = |name: &String| name != NAME_LABEL;
        let has_other = selector["matchLabels"].as_object().is_some_and(|labels| labels.keys().any(other_label))
            || array(&selector["matchExpressions"]).iter().any(|item| item["key"] != NAME_LABEL);
        self.is_alone && self.namespace_object.is_none() && self.resource.namespaced && has_other
    }

    /// The variables of conditions and policies.
    pub fn scope(&self) -> Scope {
        let mut request = self.review("");
        if let Some(fields) = request.as_object_mut() {
            for field in ["uid", "object", "oldObject"] {
                fields.remove(field);
            }
            if self.is_alone {
                fields.remove("userInfo");
            }
        }
        let scope = Scope::default()
            .with("object", self.object, None)
            .with("oldObject", self.old.unwrap_or(&Value::Null), None)
            .with("request", &request, None);
        match self.namespace_object.filter(|_| self.resource.namespaced) {
            Some(namespace) => scope.with("namespaceObject", namespace, None),
            None if self.is_alone && self.resource.namespaced => scope.without("namespaceObject", "no file has it"),
            None => scope.with("namespaceObject", &Value::Null, None),
        }
    }

    /// Whether all `conditions` hold. Without conditions nothing is evaluated.
    pub fn meets(&self, conditions: &Value, scope: &mut Option<Scope>, budget: &mut Budget) -> Chosen {
        let mut unknown = None;
        for condition in array(conditions) {
            let scope = scope.get_or_insert_with(|| self.scope());
            let expression = Expression::read(condition["expression"].as_str().unwrap_or_default());
            match expression.evaluate(scope, budget) {
                Ok(Answer::Bool(true)) => {}
                // One that does not hold decides, whatever the others are.
                Ok(Answer::Bool(false)) => return Chosen::No,
                Ok(_) => unknown = unknown.or_else(|| Some(named(condition, "its result is no truth value"))),
                Err(why) => unknown = unknown.or_else(|| Some(named(condition, &why.to_string()))),
            }
        }
        unknown.map_or(Chosen::Yes, Chosen::Unknown)
    }
}

fn named(condition: &Value, why: &str) -> String {
    format!("the condition {:?}: {why}", condition["name"].as_str().unwrap_or_default())
}

/// The items of a list.
pub fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
