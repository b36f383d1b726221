//! What a user changes in a Job that is started by hand: variables and arguments of one container.
//!
//! Guarantees: all else in the Job's spec keeps its value. The summary, which becomes an annotation, names the container and the
//! variables without their values. Pure.

use serde_json::{Map, Value, json};

/// On a Job that `trigger` started: the [summary](JobChanges::summary) of what differs from the CronJob's template.
pub const TRIGGER: &str = "cronjob-controller.dev/trigger";

/// The annotation of a Pod that names the container which kubectl takes if none is given.
const DEFAULT_CONTAINER: &str = "/template/metadata/annotations/kubectl.kubernetes.io~1default-container";

/// The changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobChanges {
    /// The name of the container; without it, the one that kubectl takes.
    pub container: Option<String>,
    /// Names and values of variables that are set; the last of the same name counts.
    pub env: Vec<(String, String)>,
    /// What replaces the arguments of the container, unless it is empty.
    pub args: Vec<String>,
}

/// A container of a Job's Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name.
    pub name: String,
    /// The names of all containers that a Pod runs beside each other, if it was taken because none was named.
    pub default_of: Option<Vec<String>>,
    path: String,
}

impl JobChanges {
    /// Whether nothing in the template changes.
    pub fn is_empty(&self) -> bool {
        self.env.is_empty() && self.args.is_empty()
    }

    /// Chooses the container in a Job's `spec`, as kubectl does: the named one, else that of the Pod's annotation, else the first.
    ///
    /// # Errors
    /// A sentence, if there is none.
    pub fn choose(&self, spec: &Value) -> Result<Container, String> {
        let [mains, inits] = ["containers", "initContainers"].map(|list| {
            let path = format!("/template/spec/{list}");
            let containers = spec.pointer(&path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let name = |(at, container): (usize, &Value)| {
                Some((container["name"].as_str()?.to_owned(), format!("{path}/{at}")))
            };
            containers.iter().enumerate().filter_map(name).collect::<Vec<_>>()
        });
        let names = |list: &[(String, String)]| list.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let found = |wanted: &str| mains.iter().chain(&inits).find(|(name, _)| name == wanted);
        if let Some(wanted) = &self.container {
            let known = [names(&mains), names(&inits)].concat().join(", ");
            let (name, path) =
                found(wanted).ok_or_else(|| format!("there is no container {wanted}; its containers are {known}"))?;
            return Ok(Container { name: name.clone(), default_of: None, path: path.clone() });
        }
        let annotated = spec.pointer(DEFAULT_CONTAINER).and_then(Value::as_str).and_then(found);
        let (name, path) = annotated.or(mains.first()).ok_or("it has no containers")?;
        Ok(Container { name: name.clone(), default_of: Some(names(&mains)), path: path.clone() })
    }

    /// Changes the chosen container in a Job's `spec`.
    pub fn apply(&self, spec: &mut Value, container: &Container) {
        let Some(container) = spec.pointer_mut(&container.path).and_then(Value::as_object_mut) else { return };
        if !self.args.is_empty() {
            container.insert("args".to_owned(), json!(self.args));
        }
        for (name, value) in &self.env {
            set(container, name, value);
        }
    }

    /// What changes, as JSON.
    pub fn summary(&self, container: &Container) -> String {
        let mut env: Vec<&str> = self.env.iter().map(|(name, _)| name.as_str()).collect();
        env.sort_unstable();
        env.dedup();
        let mut summary = json!({"container": container.name});
        if !env.is_empty() {
            summary["env"] = json!(env);
        }
        if !self.args.is_empty() {
            summary["args"] = true.into();
        }
        summary.to_string()
    }
}

/// Sets a variable of a container. One that exists keeps its place, since later ones may refer to it.
fn set(container: &mut Map<String, Value>, name: &str, value: &str) {
    let variable = json!({"name": name, "value": value});
    let env = container.entry("env").or_insert(Value::Null);
    let mut list = env.as_array().cloned().unwrap_or_default();
    let place = list.iter().position(|one| one["name"] == name);
    match place {
        Some(at) => {
            list[at] = variable;
            // Of several of one name the last one counts.
            let mut index = 0;
            list.retain(|one| {
                index += 1;
                index <= at + 1 || one["name"] != name
            });
        }
        None => list.push(variable),
    }
    *env = list.into();
}

#[cfg(test)]
mod tests;
