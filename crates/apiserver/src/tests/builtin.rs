//! Behaviour that only the real server's kinds show.

use serde_json::json;

use super::support::Server;

#[tokio::test(start_paused = true)]
async fn times_beyond_the_end_of_time_are_cut() {
    let server = Server::with_kinds().await;
    let pods = "/api/v1/namespaces/default/pods";
    let container = json!({"name": "c", "image": "c"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [container], "terminationGracePeriodSeconds": i64::MAX}});
    server.post(pods, &pod).await.expect(201);
    let deleted = server.delete(&format!("{pods}/p")).await.expect(200);
    assert_eq!(deleted["metadata"]["deletionTimestamp"], "3025-05-04T00:00:00Z");
    let sooner = server.delete(&format!("{pods}/p?gracePeriodSeconds=30")).await.expect(200);
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-01T00:00:30Z");
    let watch = server.raw("GET", &format!("{pods}?watch=1&timeoutSeconds={}", i64::MAX), &[], "").await;
    assert_eq!(watch.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn secrets_and_services_are_selected_by_type() {
    let server = Server::with_kinds().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    for (name, kind) in [("a", "helm.sh/release.v1"), ("b", "Opaque")] {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": kind});
        server.post(secrets, &secret).await.expect(201);
    }
    let found = server.get(&format!("{secrets}?fieldSelector=type%3Dhelm.sh/release.v1")).await.expect(200);
    assert_eq!((found["items"].as_array().unwrap().len(), &found["items"][0]["metadata"]["name"]), (1, &json!("a")));
    let refused = server.get(&format!("{secrets}?fieldSelector=data%3Da")).await;
    assert_eq!((refused.code, refused.message()), (400, "field label not supported: data"));
    let services = "/api/v1/namespaces/default/services?fieldSelector=spec.type%3DClusterIP,spec.clusterIP%3DNone";
    assert_eq!(server.get(services).await.code, 200);
}

#[tokio::test(start_paused = true)]
async fn review_as_a_table_is_not_acceptable() {
    let server = Server::with_kinds().await;
    let reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}}}).to_string();
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    for (accept, want) in [("application/json", 201), (table, 406)] {
        let headers = [("accept", accept), ("content-type", "application/json")];
        assert_eq!(server.raw("POST", reviews, &headers, &review).await.status(), want, "{accept}");
    }
}
