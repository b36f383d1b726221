#![allow(clippy::unwrap_used)]
//! `recorded.jsonl` holds objects of `manifests/` and kube-apiserver v1.37.2's answers, written by
//! `tests/controlplane/record`. Fields that differ between objects and the addresses of a Service are removed.

use super::*;
use crate::fields;
use crate::kinds::{all, tests::row};

fn resource_of(object: &Value) -> Resource {
    all().into_iter().find(|resource| object["kind"] == *resource.kind).unwrap()
}

#[test]
fn stored_object_equals_kube_apiservers() {
    let mut kinds = Vec::new();
    for line in include_str!("recorded.jsonl").lines() {
        let record: Value = serde_json::from_str(line).unwrap();
        let (applied, kind) = (&record["object"], &record["object"]["kind"]);
        let resource = resource_of(applied);
        let strategy = &resource.strategy;
        let mut object = applied.clone();
        assert_eq!(strategy.normalize(&mut object).unwrap(), Vec::<String>::new(), "{kind}");
        strategy.set_defaults(&mut object);
        strategy.prepare_for_create(&mut object);
        assert_eq!(strategy.validate_create(&object), [], "{kind}");
        assert_eq!(object, record["result"], "{kind}");
        if let Some(claimed) = record.get("claimed") {
            let mut ours = fields::claimed(&resource, applied);
            ours.exclude("apiVersion");
            ours.exclude("kind");
            ours.strip(Some("metadata"), |field| field == "f:name");
            assert_eq!(&ours.encode(), claimed, "{kind}");
        }
        kinds.push(resource.kind.clone());
    }
    let unseen = stored().into_iter().filter(|resource| !kinds.contains(&resource.kind));
    assert_eq!(
        unseen.map(|resource| resource.kind).collect::<Vec<_>>(),
        [
            "ConfigMap",
            "Secret",
            "DaemonSet",
            "ReplicaSet",
            "StatefulSet",
            "HorizontalPodAutoscaler",
            "PersistentVolumeClaim",
            "PodTemplate",
            "Ingress",
        ]
    );
}

#[test]
fn status_of_stored_kinds_is_a_subresource_and_spec_changes_increase_the_generation() {
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "d" },
        "spec": { "selector": { "matchLabels": { "a": "b" } }, "template": { "spec": { "containers": [{ "name": "c" }] } } },
        "status": { "readyReplicas": 3 } });
    let strategy = resource_of(&deployment).strategy;
    let mut old = deployment.clone();
    strategy.normalize(&mut old).unwrap();
    strategy.prepare_for_create(&mut old);
    assert_eq!(old["status"], json!({}), "a status is written at its own path only");
    let mut new = old.clone();
    new["status"] = deployment["status"].clone();
    strategy.prepare_for_update(&mut new, &old);
    assert_eq!((&new["metadata"]["generation"], &new["status"]), (&json!(1), &json!({})));
    new["spec"]["replicas"] = json!(3);
    strategy.prepare_for_update(&mut new, &old);
    assert_eq!(new["metadata"]["generation"], 2);
    new["status"] = deployment["status"].clone();
    strategy.prepare_for_status_update(&mut new, &old);
    assert_eq!((&new["spec"], &new["status"]["readyReplicas"]), (&old["spec"], &json!(3)));
}

#[test]
fn string_data_of_a_secret_overrides_its_data() {
    let mut secret = json!({ "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "s" },
        "data": { "a": "YQ==", "b": "Yg==" }, "stringData": { "b": "two", "c": "" } });
    resource_of(&secret).strategy.normalize(&mut secret).unwrap();
    assert_eq!(secret["data"], json!({ "a": "YQ==", "b": "dHdv", "c": "" }));
    assert!(secret.get("stringData").is_none());
    let mut texts_alone = json!({ "apiVersion": "v1", "kind": "Secret", "stringData": { "a": "a" } });
    resource_of(&texts_alone).strategy.normalize(&mut texts_alone).unwrap();
    assert_eq!(texts_alone["data"], json!({ "a": "YQ==" }));
}

#[test]
fn missing_required_field_is_reported() {
    let rows = [
        ("Deployment", vec!["spec.selector", "spec.template.spec.containers"]),
        ("RoleBinding", vec!["roleRef.kind", "roleRef.name"]),
        ("FlowSchema", vec!["spec.priorityLevelConfiguration.name"]),
        ("PriorityLevelConfiguration", vec!["spec.type"]),
        ("StatefulSet", vec!["spec.selector", "spec.template.spec.containers"]),
        ("HorizontalPodAutoscaler", vec!["spec.scaleTargetRef.kind", "spec.scaleTargetRef.name"]),
        ("PersistentVolumeClaim", vec!["spec.accessModes", "spec.resources.requests.storage"]),
        ("PodTemplate", vec!["template.spec.containers"]),
        ("Ingress", vec![]),
        ("Role", vec![]),
        ("ConfigMap", vec![]),
    ];
    for (kind, want) in rows {
        let mut object = json!({ "kind": kind, "metadata": { "name": "x" } });
        let strategy = resource_of(&object).strategy;
        strategy.normalize(&mut object).unwrap();
        let errors = strategy.validate_create(&object);
        assert_eq!(errors.iter().map(|error| error.field.as_str()).collect::<Vec<_>>(), want, "{kind}");
        assert!(errors.iter().all(|error| error.body == "Required value"), "{kind}: {errors:?}");
    }
}

#[test]
fn kinds_of_an_application_get_their_defaults() {
    let stored = |object: Value| {
        let resource = resource_of(&object);
        let mut object = object;
        assert_eq!(resource.strategy.normalize(&mut object).unwrap(), Vec::<String>::new());
        resource.strategy.set_defaults(&mut object);
        resource.strategy.prepare_for_create(&mut object);
        assert_eq!(resource.strategy.validate_create(&object), []);
        (resource.api_version(), object)
    };
    let template = json!({"spec": {"containers": [{"name": "c", "image": "i"}]}});
    let claim = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let (_, set) = stored(json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
        "spec": {
            "selector": {"matchLabels": {"a": "b"}}, "serviceName": "s", "template": template,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
        },
    }));
    assert_eq!((&set["spec"]["replicas"], &set["spec"]["podManagementPolicy"]), (&json!(1), &json!("OrderedReady")));
    assert_eq!(set["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"], "Always");
    assert_eq!(set["spec"]["volumeClaimTemplates"][0]["spec"]["volumeMode"], "Filesystem");
    let (version, autoscaler) = stored(json!({
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "s"},
        "spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d"}},
    }));
    assert_eq!((version.as_str(), &autoscaler["spec"]["minReplicas"]), ("autoscaling/v2", &json!(1)));
    stored(json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "s"}, "spec": claim}));
    stored(json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "s"},
        "spec": {"rules": [{"host": "example.com", "http": {"paths": [
            {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}},
        ]}}]},
    }));
}

#[test]
fn tables_print_what_kubectl_get_shows() {
    let meta = json!({ "name": "x", "creationTimestamp": "2026-11-20T11:00:00Z" });
    let service = |spec: Value| json!({ "metadata": meta, "spec": spec });
    let subjects = json!([
        { "kind": "User", "name": "u" },
        { "kind": "ServiceAccount", "name": "a", "namespace": "n" },
        { "kind": "ServiceAccount", "name": "b", "namespace": "n" },
    ]);
    let limited = json!({ "nominalConcurrencyShares": 20, "limitResponse": { "queuing": { "queues": 64, "handSize": 6, "queueLengthLimit": 50 } } });
    let rows = [
        ("configmaps", json!({ "metadata": meta, "data": { "a": "" }, "binaryData": { "b": "" } }), "x | 2 | 60m"),
        ("secrets", json!({ "metadata": meta, "type": "Opaque", "data": { "a": "" } }), "x | Opaque | 1 | 60m"),
        ("serviceaccounts", json!({ "metadata": meta }), "x | 60m"),
        ("resourcequotas", json!({ "metadata": meta }), "x |  |  | 60m"),
        (
            "services",
            service(json!({
                "type": "ClusterIP", "ports": [{ "port": 443, "protocol": "TCP" }, { "port": 53, "protocol": "UDP" }],
                "selector": { "a": "b", "c": "d" },
            })),
            "x | ClusterIP | <none> | <none> | 443/TCP,53/UDP | 60m | a=b,c=d",
        ),
        (
            "services",
            service(json!({ "type": "ExternalName", "externalName": "example.com" })),
            "x | ExternalName | <none> | example.com | <none> | 60m | <none>",
        ),
        (
            "deployments",
            json!({ "metadata": meta, "status": {}, "spec": {
                "replicas": 2, "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
            } }),
            "x | 0/2 | 0 | 0 | 60m | c | i | a=b",
        ),
        (
            "daemonsets",
            json!({ "metadata": meta, "status": {}, "spec": {
                "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": { "nodeSelector": { "k": "v" }, "containers": [{ "name": "c", "image": "i" }] } },
            } }),
            "x | 0 | 0 | 0 | 0 | 0 | k=v | 60m | c | i | a=b",
        ),
        (
            "replicasets",
            json!({ "metadata": meta, "status": {}, "spec": {
                "replicas": 2, "selector": { "matchLabels": { "a": "b" } },
                "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
            } }),
            "x | 2 | 0 | 0 | 60m | c | i | a=b",
        ),
        (
            "statefulsets",
            json!({ "metadata": meta, "status": {}, "spec": {
                "replicas": 2, "template": { "spec": { "containers": [{ "name": "c", "image": "i" }] } },
            } }),
            "x | 0/2 | 60m | c | i",
        ),
        (
            "horizontalpodautoscalers",
            json!({ "metadata": meta, "spec": {
                "minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": { "kind": "Deployment", "name": "d" },
            } }),
            "x | Deployment/d | <unknown> | 1 | 3 | 0 | 60m",
        ),
        (
            "persistentvolumeclaims",
            json!({ "metadata": meta, "spec": { "storageClassName": "fast", "volumeMode": "Filesystem" } }),
            "x | Pending |  |  |  | fast | 60m | Filesystem",
        ),
        (
            "podtemplates",
            json!({ "metadata": meta, "template": {
                "metadata": { "labels": { "a": "b" } }, "spec": { "containers": [{ "name": "c", "image": "i" }] },
            } }),
            "x | c | i | a=b",
        ),
        (
            "ingresses",
            json!({ "metadata": meta, "spec": {
                "ingressClassName": "nginx", "rules": [{ "host": "a.example" }, { "host": "b.example" }], "tls": [{}],
            } }),
            "x | nginx | a.example,b.example |  | 80, 443 | 60m",
        ),
        ("ingresses", json!({ "metadata": meta, "spec": { "rules": [{}] } }), "x | <none> | * |  | 80 | 60m"),
        (
            "poddisruptionbudgets",
            json!({ "metadata": meta, "spec": { "maxUnavailable": 1 }, "status": { "disruptionsAllowed": 0 } }),
            "x | N/A | 1 | 0 | 60m",
        ),
        ("networkpolicies", json!({ "metadata": meta, "spec": { "podSelector": {} } }), "x | <none> | 60m"),
        (
            "flowschemas",
            json!({ "metadata": meta, "spec": { "matchingPrecedence": 9, "priorityLevelConfiguration": { "name": "p" } } }),
            "x | p | 9 | <none> | 60m | ?",
        ),
        (
            "prioritylevelconfigurations",
            json!({ "metadata": meta, "spec": { "type": "Limited", "limited": limited } }),
            "x | Limited | 20 | 64 | 6 | 50 | 60m",
        ),
        ("clusterroles", json!({ "metadata": meta }), "x | 2026-11-20T11:00:00Z"),
        (
            "rolebindings",
            json!({ "metadata": meta, "roleRef": { "kind": "Role", "name": "r" }, "subjects": subjects }),
            "x | Role/r | 60m | u |  | n/a, n/b",
        ),
        ("mutatingwebhookconfigurations", json!({ "metadata": meta, "webhooks": [{}] }), "x | 1 | 60m"),
    ];
    for (plural, object, want) in rows {
        assert_eq!(row(plural, &object), want, "{plural}");
    }
}
