//! ValidatingAdmissionPolicies and their bindings.
//!
//! Guarantees: a write is denied or warned of only if every expression on which that depends was judged, in the words of
//! kube-apiserver. What is not judged is named, with the reason. Without a policy that names the write, no expression is read. Pure.
//!
//! Known differences: an expression that fails is not judged, whatever the `failurePolicy`; there is no `authorizer`; audit
//! annotations are not evaluated.
//!
//! Matches k8s.io/apiserver `pkg/admission/plugin/policy/validating` (`dispatcher.go`, `validator.go`) and `pkg/admission/plugin/policy/matching`.

use apimachinery::status::{self, Cause, Status};
use serde_json::{Value, json};

use super::cel::{Answer, Budget, Expression, Scope};
use super::kinds::label_selector_matches;
use super::matching::{Chosen, Request, array};
use super::meta;
use super::registry::Resource;
use super::write::prepared;

/// The group of policies, whose own writes no policy is about.
const GROUP: &str = "admissionregistration.k8s.io";
const POLICY: &str = "ValidatingAdmissionPolicy";
const BINDING: &str = "ValidatingAdmissionPolicyBinding";
/// The longest message of an expression. Matches `celconfig.MaxEvaluatedMessageExpressionSizeBytes`.
const LONGEST_MESSAGE: usize = 5 * 1024;

/// The policies of a cluster.
#[derive(Debug, Default)]
pub struct Policies<'a> {
    all: Vec<&'a Value>,
    bindings: Vec<&'a Value>,
    /// What may be the parameters of a policy.
    others: Vec<&'a Value>,
}

/// A validation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The name of the policy.
    pub policy: String,
    /// The name of its binding; empty if it has none.
    pub binding: String,
    /// Why, as the policy says it.
    pub message: String,
    /// The reason of the refusal.
    pub reason: String,
}

/// What policies say of a write.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// The reasons to refuse it.
    pub denied: Vec<Failure>,
    /// The reasons to warn of it.
    pub warned: Vec<Failure>,
    /// What is not judged, and why.
    pub unknown: Vec<String>,
}

impl Failure {
    /// The warning of a client.
    pub fn warning(&self) -> String {
        let Self { policy, binding, message, .. } = self;
        format!("Validation failed for {POLICY} '{policy}' with binding '{binding}': {message}")
    }

    /// The refusal, without the object.
    pub fn sentence(&self) -> String {
        let Self { policy, binding, message, .. } = self;
        if binding.is_empty() {
            return format!("{POLICY} {policy} denied request: {message}");
        }
        format!("{POLICY} '{policy}' with binding '{binding}' denied request: {message}")
    }

    /// The refusal of a request.
    pub fn status(&self, request: &Request<'_>) -> Box<Status> {
        let sentence = self.sentence();
        let name = meta::text(request.object, "name");
        let status = status::forbidden(&request.resource.qualified(), name, &sentence);
        let cause = Cause { message: sentence, ..Cause::default() };
        let (reason, code) = match self.reason.as_str() {
            "Unauthorized" => ("Unauthorized", 401),
            "Forbidden" => ("Forbidden", 403),
            "RequestEntityTooLarge" => ("RequestEntityTooLarge", 413),
            _ => ("Invalid", 422),
        };
        Box::new(Status { reason, code, ..*status.with_cause(cause) })
    }
}

impl<'a> Policies<'a> {
    /// Those among the objects.
    pub fn among(objects: impl Iterator<Item = &'a Value>) -> Self {
        let mut found = Self::default();
        for object in objects {
            let is_admission = object["apiVersion"].as_str().is_some_and(|version| version.starts_with(GROUP));
            match object["kind"].as_str() {
                Some(POLICY) if is_admission => found.all.push(object),
                Some(BINDING) if is_admission => found.bindings.push(object),
                _ => found.others.push(object),
            }
        }
        found.all.sort_by_key(|policy| meta::text(policy, "name"));
        found.bindings.sort_by_key(|binding| meta::text(binding, "name"));
        found
    }

    /// Whether there is no policy.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Judges an object that is created without a server, as [`judge_new`](crate::judge_new) does. `None` if it is not of the kind.
    pub fn judge_new(&self, resource: &Resource, object: &Value) -> Option<Judged> {
        let mut object = prepared(resource, object).ok()?;
        // A server has set both by then.
        for (field, value) in
            [("uid", "00000000-0000-0000-0000-000000000000"), ("creationTimestamp", "1970-01-01T00:00:00Z")]
        {
            if object["metadata"][field].is_null() {
                meta::set(&mut object, field, json!(value));
            }
        }
        let namespace = meta::text(&object, "namespace");
        let is_meant = |other: &&&Value| other["kind"] == "Namespace" && meta::text(other, "name") == namespace;
        let namespace_object = self.others.iter().find(is_meant).copied();
        let (subresource, old, dry_run, is_alone, object) = ("", None, false, true, &object);
        Some(self.judge(&Request {
            resource,
            subresource,
            namespace,
            object,
            old,
            namespace_object,
            dry_run,
            is_alone,
        }))
    }

    /// Judges a write.
    pub fn judge(&self, request: &Request<'_>) -> Judged {
        let (mut judged, mut budget) = (Judged::default(), Budget::default());
        if request.resource.group == GROUP {
            return judged;
        }
        for policy in &self.all {
            let is_bound = |binding: &&&Value| binding["spec"]["policyName"] == policy["metadata"]["name"];
            let mut bindings = self.bindings.iter().filter(is_bound).filter(|binding| {
                let matched = &binding["spec"]["matchResources"];
                matched.is_null() || is_matched(request, matched)
            });
            let Some(first) = bindings.next().filter(|_| is_matched(request, &policy["spec"]["matchConstraints"]))
            else {
                continue;
            };
            let read = Policy::read(policy);
            for binding in std::iter::once(first).chain(bindings) {
                let params = match self.params(request, policy, binding) {
                    Ok(params) => params,
                    Err(why) => {
                        judged.unknown.push(format!("{}: {why}", read.name));
                        continue;
                    }
                };
                let mut found = Judged::default();
                for param in params {
                    read.apply(request, binding, param, &mut budget, &mut found);
                }
                let selectors = [&policy["spec"]["matchConstraints"], &binding["spec"]["matchResources"]];
                let is_failure = !(found.denied.is_empty() && found.warned.is_empty());
                if is_failure && selectors.into_iter().any(|of| request.is_unsure_of(of)) {
                    judged.unknown.push(format!("{}: its namespaceSelector: no file has the Namespace", read.name));
                } else {
                    judged.denied.extend(found.denied);
                    judged.warned.extend(found.warned);
                }
                judged.unknown.extend(found.unknown);
            }
        }
        judged
    }

    /// The objects that a binding chooses as parameters, each of which is judged with; `None` stands for a policy without parameters.
    fn params(&self, request: &Request<'_>, policy: &Value, binding: &Value) -> Result<Vec<Option<&'a Value>>, String> {
        let (kind, by) = (&policy["spec"]["paramKind"], &binding["spec"]["paramRef"]);
        if kind.is_null() || by.is_null() {
            return Ok(vec![None]);
        }
        let namespace = by["namespace"].as_str().unwrap_or(request.namespace);
        let name = by["name"].as_str().unwrap_or_default();
        let is_meant = |object: &&&Value| {
            let own = meta::text(object, "namespace");
            object["kind"] == kind["kind"]
                && object["apiVersion"] == kind["apiVersion"]
                && (own.is_empty() || own == namespace)
                && if name.is_empty() {
                    label_selector_matches(&by["selector"], &object["metadata"]["labels"])
                } else {
                    meta::text(object, "name") == name
                }
        };
        let found: Vec<_> = self.others.iter().filter(is_meant).map(|object| Some(*object)).collect();
        let is_needed = by["parameterNotFoundAction"] != "Allow";
        if found.is_empty() && is_needed { Err("its parameters are not there".to_owned()) } else { Ok(found) }
    }
}

/// Whether `matchConstraints` or `matchResources` choose a write.
fn is_matched(request: &Request<'_>, of: &Value) -> bool {
    let names = |rules: &Value| array(rules).iter().any(|rule| request.is_named_by(rule));
    let rules = &of["resourceRules"];
    let is_named = array(rules).is_empty() || names(rules);
    is_named && !names(&of["excludeResourceRules"]) && request.is_selected_by(of)
}

/// A policy whose expressions were read.
struct Policy<'a> {
    name: &'a str,
    conditions: &'a Value,
    variables: Vec<(String, Expression)>,
    validations: Vec<Validation<'a>>,
}

struct Validation<'a> {
    expression: Expression,
    message: &'a str,
    message_expression: Option<Expression>,
    reason: &'a str,
}

impl<'a> Policy<'a> {
    fn read(policy: &'a Value) -> Self {
        let spec = &policy["spec"];
        let variable = |variable: &Value| {
            let name = variable["name"].as_str().unwrap_or_default();
            (format!("variables.{name}"), Expression::read(variable["expression"].as_str().unwrap_or_default()))
        };
        let validation = |validation: &'a Value| {
            let text = |field: &str| validation[field].as_str().unwrap_or_default();
            Validation {
                expression: Expression::read(text("expression")),
                message: text("message").trim(),
                message_expression: Some(text("messageExpression"))
                    .filter(|text| !text.is_empty())
                    .map(Expression::read),
                reason: text("reason"),
            }
        };
        Self {
            name: meta::text(policy, "name"),
            conditions: &spec["matchConditions"],
            variables: array(&spec["variables"]).iter().map(variable).collect(),
            validations: array(&spec["validations"]).iter().map(validation).collect(),
        }
    }

    fn apply(
        &self,
        request: &Request<'_>,
        binding: &Value,
        param: Option<&Value>,
        budget: &mut Budget,
        judged: &mut Judged,
    ) {
        let mut scope = request.scope().with("params", param.unwrap_or(&Value::Null), None);
        for (name, expression) in &self.variables {
            scope.add(name.clone(), expression, budget);
        }
        let mut some = Some(scope);
        match request.meets(self.conditions, &mut some, budget) {
            Chosen::No => return,
            Chosen::Unknown(why) => return judged.unknown.push(format!("{}: {why}", self.name)),
            Chosen::Yes => {}
        }
        let Some(scope) = some else { return };
        let actions = &binding["spec"]["validationActions"];
        let does = |action: &str| array(actions).iter().any(|item| item == action);
        for validation in &self.validations {
            match validation.failure(&scope, budget) {
                Ok(None) => {}
                Ok(Some(message)) => {
                    let failure = Failure {
                        policy: self.name.to_owned(),
                        binding: meta::text(binding, "name").to_owned(),
                        message,
                        reason: validation.reason.to_owned(),
                    };
                    if does("Warn") {
                        judged.warned.push(failure.clone());
                    }
                    if does("Deny") {
                        judged.denied.push(failure);
                    }
                }
                Err(why) => {
                    judged.unknown.push(format!("{}: {}: {why}", self.name, short(validation.expression.text())));
                }
            }
        }
    }
}

impl Validation<'_> {
    /// Why the validation does not hold; `None` if it does.
    fn failure(&self, scope: &Scope, budget: &mut Budget) -> Result<Option<String>, String> {
        match self.expression.evaluate(scope, budget).map_err(|why| why.to_string())? {
            Answer::Bool(true) => Ok(None),
            Answer::Bool(false) => Ok(Some(message(
                self.message_expression.as_ref(),
                self.message,
                &format!("failed expression: {}", self.expression.text().trim()),
                scope,
                budget,
            ))),
            _ => Err("its result is no truth value".to_owned()),
        }
    }
}

/// What is said of an expression that does not hold: the result of the expression for it, the text, or `otherwise`.
pub fn message(
    expression: Option<&Expression>,
    text: &str,
    otherwise: &str,
    scope: &Scope,
    budget: &mut Budget,
) -> String {
    let made = expression.and_then(|expression| match expression.evaluate(scope, budget) {
        Ok(Answer::Text(made)) => Some(made.trim().to_owned()),
        _ => None,
    });
    let made = made.filter(|made| !made.is_empty() && !made.contains('\n') && made.len() <= LONGEST_MESSAGE);
    made.unwrap_or_else(|| if text.is_empty() { otherwise.to_owned() } else { text.to_owned() })
}

/// The expressions of a policy that are never judged, for a warning on its creation.
pub fn faults(policy: &Value) -> Vec<String> {
    let spec = &policy["spec"];
    let lists = [("variables", "expression"), ("matchConditions", "expression"), ("validations", "expression")];
    let mut faults = Vec::new();
    for (list, field) in lists.into_iter().chain([("validations", "messageExpression")]) {
        for (index, item) in array(&spec[list]).iter().enumerate() {
            let Some(text) = item[field].as_str() else { continue };
            if let Some(why) = Expression::read(text).fault() {
                faults.push(format!("spec.{list}[{index}].{field}: it is not judged by this server: {why}"));
            }
        }
    }
    faults
}

/// The beginning of an expression.
pub fn short(expression: &str) -> String {
    let line = expression.split_whitespace().collect::<Vec<_>>().join(" ");
    let cut: String = line.chars().take(80).collect();
    if cut.len() < line.len() { format!("{cut}…") } else { cut }
}

#[cfg(all(test, feature = "cel"))]
mod tests;
