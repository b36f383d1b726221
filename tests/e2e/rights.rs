//! The rights that an account was granted, and those that it used.
//!
//! Grants are read from the API server's bindings and roles, so they are those of the applied manifests. Uses are read
//! from its audit log. A refused request is not a use.

use http::Method;
use serde_json::Value;

use testkit::driver::request;

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// One verb on one kind of object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    pub role: String,
    /// `None` for all namespaces, and for cluster-scoped objects.
    pub namespace: Option<String>,
    pub group: String,
    /// With its subresource, as in `cronjobs/status`.
    pub resource: String,
    pub verb: String,
    /// `None` for an object of any name.
    pub name: Option<String>,
}

impl Grant {
    /// All grants in a role's rules.
    fn all_of(role: &Value, namespace: Option<&str>) -> Vec<Self> {
        let mut grants = Vec::new();
        for rule in role["rules"].as_array().into_iter().flatten() {
            let mut names: Vec<Option<String>> = texts(&rule["resourceNames"]).into_iter().map(Some).collect();
            if names.is_empty() {
                names.push(None);
            }
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    for verb in texts(&rule["verbs"]) {
                        grants.extend(names.iter().map(|name| Self {
                            role: text(&role["metadata"]["name"]).to_owned(),
                            namespace: namespace.map(ToOwned::to_owned),
                            group: group.clone(),
                            resource: resource.clone(),
                            verb: verb.clone(),
                            name: name.clone(),
                        }));
                    }
                }
            }
        }
        grants
    }

    /// Whether it allows the request of this audit event.
    fn covers(&self, event: &Value) -> bool {
        let about = &event["objectRef"];
        let resource = match text(&about["subresource"]) {
            "" => text(&about["resource"]).to_owned(),
            subresource => format!("{}/{subresource}", text(&about["resource"])),
        };
        event["verb"] == self.verb
            && text(&about["apiGroup"]) == self.group
            && resource == self.resource
            && self.namespace.as_deref().is_none_or(|namespace| about["namespace"] == namespace)
            && self.name.as_deref().is_none_or(|name| about["name"] == name)
    }
}

/// The grants bound to the ServiceAccount itself; those that every account has are left out.
pub async fn granted(client: &kube::Client, namespace: &str, account: &str) -> Vec<Grant> {
    let mut grants = Vec::new();
    for kind in ["rolebindings", "clusterrolebindings"] {
        let bindings = request(client, Method::GET, &format!("{RBAC}/{kind}"), None).await.unwrap();
        let bindings = bindings["items"].as_array().cloned().unwrap_or_default();
        for binding in bindings.iter().filter(|binding| binds(binding, namespace, account)) {
            let scope = binding["metadata"]["namespace"].as_str();
            let name = text(&binding["roleRef"]["name"]);
            let path = match (text(&binding["roleRef"]["kind"]), scope) {
                ("Role", Some(scope)) => format!("{RBAC}/namespaces/{scope}/roles/{name}"),
                _ => format!("{RBAC}/clusterroles/{name}"),
            };
            grants.extend(Grant::all_of(&request(client, Method::GET, &path, None).await.unwrap(), scope));
        }
    }
    grants
}

/// The grants that no request needed.
pub fn unused<'a>(grants: &'a [Grant], requests: &[Value]) -> Vec<&'a Grant> {
    let allowed = |event: &&Value| event["responseStatus"]["code"] != 403;
    let is_used = |grant: &&Grant| requests.iter().filter(allowed).any(|event| grant.covers(event));
    grants.iter().filter(|grant| !is_used(grant)).collect()
}

fn binds(binding: &Value, namespace: &str, account: &str) -> bool {
    binding["subjects"].as_array().into_iter().flatten().any(|subject| {
        subject["kind"] == "ServiceAccount" && subject["namespace"] == namespace && subject["name"] == account
    })
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|item| text(item).to_owned()).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
