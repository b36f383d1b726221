//! The verbs, through `handle()`.

use serde_json::{Value, json};

use super::support::{APPLY, JSON_PATCH, MERGE, STRATEGIC, Server, WIDGETS, at, owned, widget};

#[tokio::test(start_paused = true)]
async fn refusals_are_those_of_the_real_server() {
    let server = Server::new();
    server.post(WIDGETS, &widget("a")).await.expect(201);
    let body = widget("a").to_string();
    let rows: Vec<(&str, &str, String, &str, &str, u16, &str)> = vec![
        ("an unknown path is text", "GET", "/nothing".into(), "", "", 404, ""),
        (
            "an unknown resource of a known group is a Status",
            "GET",
            "/apis/test/v1/foos".into(),
            "",
            "",
            404,
            "the server could not find the requested resource",
        ),
        (
            "a collection cannot be put",
            "PUT",
            WIDGETS.into(),
            "application/json",
            &body,
            405,
            "the server does not allow this method on the requested resource",
        ),
        ("a name that is taken", "POST", WIDGETS.into(), "", &body, 409, "widgets.test \"a\" already exists"),
        ("an absent object", "GET", at("b"), "", "", 404, "widgets.test \"b\" not found"),
        ("an absent object cannot be deleted", "DELETE", at("b"), "", "", 404, "widgets.test \"b\" not found"),
        (
            "an absent namespace",
            "POST",
            "/apis/test/v1/namespaces/nope/widgets".into(),
            "",
            &body,
            404,
            "namespaces \"nope\" not found",
        ),
        ("a patch of no known form", "PATCH", at("a"), "application/json", "{}", 415, "415: Unsupported Media Type"),
        (
            "a body of no known form",
            "POST",
            WIDGETS.into(),
            "text/plain",
            &body,
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "broken JSON",
            "POST",
            WIDGETS.into(),
            "application/json",
            "{bad",
            400,
            "the object provided is unrecognized (must be of type Widget): couldn't get version/kind; json parse \
             error: invalid character 'b' looking for beginning of object key string ({bad)",
        ),
        (
            "a label selector that cannot be read",
            "GET",
            format!("{WIDGETS}?labelSelector=a%3D%3D%3Db"),
            "",
            "",
            400,
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "a field that cannot be selected",
            "GET",
            format!("{WIDGETS}?fieldSelector=spec.x%3D1"),
            "",
            "",
            400,
            "\"spec.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"",
        ),
        (
            "a revision of the future",
            "GET",
            format!("{WIDGETS}?resourceVersion=9999"),
            "",
            "",
            504,
            "Timeout: Too large resource version: 9999, current: 6",
        ),
        (
            "a limit that is no number",
            "GET",
            format!("{WIDGETS}?limit=abc"),
            "",
            "",
            400,
            "strconv.ParseInt: parsing \"abc\": invalid syntax",
        ),
        (
            "a continue token that is none",
            "GET",
            format!("{WIDGETS}?continue=abc"),
            "",
            "",
            400,
            "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value",
        ),
        (
            "initial events of a list",
            "GET",
            format!("{WIDGETS}?sendInitialEvents=true"),
            "",
            "",
            422,
            "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden \
             for list",
        ),
        (
            "an apply without a manager",
            "PATCH",
            at("a"),
            APPLY,
            "{}",
            422,
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ),
        (
            "a JSON patch whose test fails",
            "PATCH",
            at("a"),
            JSON_PATCH,
            r#"[{"op":"test","path":"/spec/size","value":2}]"#,
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            "a strategic patch without the merge key",
            "PATCH",
            at("a"),
            STRATEGIC,
            r#"{"spec":{"parts":[{"x":"y"}]}}"#,
            500,
            "map: map[x:y] does not contain declared merge key: name",
        ),
        (
            "a propagation policy that is none",
            "DELETE",
            format!("{}?propagationPolicy=Bad", at("a")),
            "",
            "",
            422,
            "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Bad\": supported \
             values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"",
        ),
        (
            "a UID that is another's",
            "DELETE",
            at("a"),
            "application/json",
            r#"{"preconditions":{"resourceVersion":"1"}}"#,
            409,
            "Operation cannot be fulfilled on Widget.test \"a\": the ResourceVersion in the precondition (1) does not \
             match the ResourceVersion in record (6). The object might have been modified",
        ),
    ];
    for (why, method, path, content_type, body, code, message) in rows {
        let headers = [("content-type", content_type)];
        let reply = server.ask(method, &path, if content_type.is_empty() { &[] } else { &headers }, body).await;
        assert_eq!((reply.code, reply.message()), (code, message), "{why}: {}", reply.body);
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_object_gets_what_the_server_gives_and_its_manager() {
    let server = Server::new();
    let mut body = json!({"metadata": {"generateName": "w-"}, "spec": {"parts": [{"name": "p", "x": 1}]}});
    body["metadata"]["labels"] = json!({"app": "x"});
    let made = server.post(WIDGETS, &body).await.expect(201);
    let meta = &made["metadata"];
    assert_eq!(made["kind"], "Widget");
    assert!(meta["name"].as_str().unwrap().starts_with("w-") && meta["name"].as_str().unwrap().len() == 7);
    assert_eq!(meta["creationTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(meta["uid"].as_str().unwrap().len(), 36);
    assert_eq!(
        meta["managedFields"],
        json!([{
            "manager": "tester", "operation": "Update", "apiVersion": "test/v1", "time": "2026-01-01T00:00:00Z",
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:metadata": {"f:generateName": {}, "f:labels": {".": {}, "f:app": {}}},
                "f:spec": {"f:size": {}, "f:parts": {".": {}, "k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:x": {}}}},
            },
        }])
    );
    let again = Server::new().post(WIDGETS, &body).await.expect(201);
    assert_eq!(again, made, "the same seed gives the same names and uids");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_ignored_warned_about_or_refused() {
    let server = Server::new();
    let mut body = widget("a");
    body["spec"]["bogus"] = json!(1);
    let dry = format!("{WIDGETS}?dryRun=All");
    let told = server.post(&dry, &body).await;
    assert_eq!((told.code, told.warnings), (201, vec![r#"299 - "unknown field \"spec.bogus\"""#.to_owned()]));
    let ignored = server.post(&format!("{dry}&fieldValidation=Ignore"), &body).await;
    assert_eq!((ignored.code, ignored.warnings.len()), (201, 0));
    let refused = server.post(&format!("{dry}&fieldValidation=Strict"), &body).await;
    let message = "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \
                   \"spec.bogus\"";
    assert_eq!((refused.code, refused.message()), (400, message));
    assert_eq!(server.get(&at("a")).await.code, 404, "a dry run stores nothing");
}

#[tokio::test(start_paused = true)]
async fn updates_need_the_newest_version_and_no_change_makes_no_revision() {
    let server = Server::new();
    let made = server.post(WIDGETS, &widget("a")).await.expect(201);
    let same = server.put(&at("a"), &made).await.expect(200);
    assert_eq!(same, made, "an update that changes nothing makes no revision");
    let mut changed = made.clone();
    changed["spec"]["size"] = json!(2);
    changed["status"] = json!({"seen": true});
    let stored = server.put(&at("a"), &changed).await.expect(200);
    assert_eq!(stored["metadata"]["generation"], 2);
    assert_eq!(stored["status"], json!({}), "the main resource does not write the status");
    let stale = server.put(&at("a"), &changed).await;
    assert_eq!(
        (stale.code, stale.message()),
        (
            409,
            "Operation cannot be fulfilled on widgets.test \"a\": the object has been modified; please apply your \
             changes to the latest version and try again"
        )
    );
    let status = json!({"spec": {"size": 9}, "status": {"seen": true}});
    let with_status = server.patch(&format!("{}/status", at("a")), MERGE, &status).await.expect(200);
    assert_eq!((&with_status["spec"]["size"], &with_status["status"]), (&json!(2), &json!({"seen": true})));
    let entries = with_status["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[1]["subresource"], "status");
    let negative = server.patch(&at("a"), MERGE, &json!({"spec": {"size": -1}})).await;
    assert_eq!(negative.message(), "Widget.test \"a\" is invalid: spec.size: Invalid value: -1: must not be negative");
}

#[tokio::test(start_paused = true)]
async fn patches_of_every_form_change_what_they_say() {
    let server = Server::new();
    let mut body = widget("a");
    body["spec"]["parts"] = json!([{"name": "p", "x": 1}, {"name": "q"}]);
    server.post(WIDGETS, &body).await.expect(201);
    let rows: Vec<(&str, &str, Value, Value)> = vec![
        ("a merge patch replaces lists", MERGE, json!({"spec": {"parts": [{"name": "p"}]}}), json!([{"name": "p"}])),
        (
            "a strategic patch merges lists by key",
            STRATEGIC,
            json!({"spec": {"parts": [{"name": "p", "x": 2}, {"name": "q"}]}}),
            json!([{"name": "p", "x": 2}, {"name": "q"}]),
        ),
        (
            "a strategic patch deletes items",
            STRATEGIC,
            json!({"spec": {"parts": [{"name": "p", "$patch": "delete"}]}}),
            json!([{"name": "q"}]),
        ),
        (
            "a strategic patch orders items",
            STRATEGIC,
            json!({"spec": {"$setElementOrder/parts": [{"name": "r"}, {"name": "q"}], "parts": [{"name": "r"}]}}),
            json!([{"name": "r"}, {"name": "q"}]),
        ),
        (
            "a strategic patch replaces a list",
            STRATEGIC,
            json!({"spec": {"parts": [{"name": "z"}, {"$patch": "replace"}]}}),
            json!([{"name": "z"}]),
        ),
        (
            "a JSON patch inserts, replaces and removes",
            JSON_PATCH,
            json!([
                {"op": "add", "path": "/spec/parts/0", "value": {"name": "a"}},
                {"op": "add", "path": "/spec/parts/-", "value": {"name": "b"}},
                {"op": "replace", "path": "/spec/parts/0/name", "value": "c"},
                {"op": "remove", "path": "/spec/parts/1"}
            ]),
            json!([{"name": "c"}, {"name": "b"}]),
        ),
    ];
    for (why, form, patch, parts) in rows {
        let reply = server.patch(&at("a"), form, &patch).await.expect(200);
        assert_eq!(reply["spec"]["parts"], parts, "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn apply_creates_merges_conflicts_and_removes_fields() {
    let server = Server::new();
    let apply = |manager: &str, spec: Value| {
        let body = json!({"apiVersion": "test/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": spec});
        (format!("{}?fieldManager={manager}", at("a")), body)
    };
    let (path, body) = apply("one", json!({"parts": [{"name": "p", "x": 1}]}));
    let made = server.patch(&path, APPLY, &body).await.expect(201);
    let fields = &made["metadata"]["managedFields"];
    assert_eq!(
        fields[0]["fieldsV1"],
        json!({"f:spec": {"f:parts": {"k:{\"name\":\"p\"}": {".": {}, "f:name": {}, "f:x": {}}}}})
    );
    assert_eq!((&fields[0]["operation"], &fields[0]["manager"]), (&json!("Apply"), &json!("one")));

    let (path, body) = apply("two", json!({"parts": [{"name": "p", "x": 2}, {"name": "q"}]}));
    let refused = server.patch(&path, APPLY, &body).await;
    assert_eq!(refused.message(), "Apply failed with 1 conflict: conflict with \"one\": .spec.parts[name=\"p\"].x");
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "FieldManagerConflict");
    let forced = server.patch(&format!("{path}&force=true"), APPLY, &body).await.expect(200);
    assert_eq!(forced["spec"]["parts"], json!([{"name": "p", "x": 2}, {"name": "q"}]));

    let (path, body) = apply("two", json!({"parts": [{"name": "p", "x": 2}]}));
    let fewer = server.patch(&path, APPLY, &body).await.expect(200);
    assert_eq!(fewer["spec"]["parts"], json!([{"name": "p", "x": 2}]), "what is applied no more goes");
    let again = server.patch(&path, APPLY, &body).await.expect(200);
    assert_eq!(again, fewer, "the same apply again changes nothing");

    let unknown = json!({"apiVersion": "test/v1", "kind": "Widget", "spec": {"bogus": 1}});
    let refused = server.patch(&path, APPLY, &unknown).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            500,
            "failed to create typed patch object (/; test/v1, Kind=Widget): .spec.bogus: field not declared in schema"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn tables_and_metadata_are_made_on_request() {
    let server = Server::new();
    server.post(WIDGETS, &widget("a")).await.expect(201);
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let list = server.ask("GET", WIDGETS, &table, "").await.expect(200);
    assert_eq!((&list["kind"], &list["rows"][0]["cells"]), (&json!("Table"), &json!(["a"])));
    assert_eq!(list["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let whole = server.ask("GET", &format!("{}?includeObject=Object", at("a")), &table, "").await.expect(200);
    assert_eq!(whole["rows"][0]["object"]["kind"], "Widget");
    let partial = [("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")];
    let list = server.ask("GET", WIDGETS, &partial, "").await.expect(200);
    assert_eq!(list["items"][0]["kind"], "PartialObjectMetadata");
    assert!(list["items"][0].get("spec").is_none());
    let refused = server.ask("GET", WIDGETS, &[("accept", "text/plain")], "").await;
    assert_eq!(refused.code, 406);
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_revision_until_it_is_forgotten() {
    let server = Server::new();
    for name in ["a", "b", "c", "d"] {
        server.post(WIDGETS, &widget(name)).await.expect(201);
    }
    let first = server.get(&format!("{WIDGETS}?limit=2")).await.expect(200);
    assert_eq!(first["metadata"]["remainingItemCount"], 2);
    let token = first["metadata"]["continue"].as_str().unwrap().to_owned();
    server.delete(&at("c")).await.expect(200);
    server.post(WIDGETS, &widget("bb")).await.expect(201);
    let second = server.get(&format!("{WIDGETS}?limit=2&continue={token}")).await.expect(200);
    let names: Vec<&str> =
        second["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["c", "d"], "the page shows the state of the first page's revision");
    assert_eq!(second["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);

    server.api.compact();
    server.post(WIDGETS, &widget("e")).await.expect(201);
    let expired = server.get(&format!("{WIDGETS}?limit=2&continue={token}")).await;
    assert_eq!((expired.code, &expired.body["reason"]), (410, &json!("Expired")));
    assert!(expired.message().starts_with("The provided continue parameter is too old"));
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = server.get(&format!("{WIDGETS}?continue={token}")).await.expect(200);
    assert_eq!(rest["items"].as_array().unwrap().len(), 3, "bb, d and e: the list goes on inconsistently");
}

#[tokio::test(start_paused = true)]
async fn finalizers_hold_an_object_until_the_last_is_gone() {
    let server = Server::new();
    let mut body = widget("a");
    body["metadata"]["finalizers"] = json!(["x/y"]);
    server.post(WIDGETS, &body).await.expect(201);
    let marked = server.delete(&at("a")).await.expect(200);
    assert_eq!(marked["metadata"]["deletionTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(marked["metadata"]["generation"], 2);
    let more = server.patch(&at("a"), MERGE, &json!({"metadata": {"finalizers": ["x/y", "z/z"]}})).await;
    assert_eq!(
        more.message(),
        "Widget.test \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is \
         being deleted, found new finalizers []string{\"z/z\"}"
    );
    let taken = server.post(WIDGETS, &widget("a")).await;
    assert_eq!(taken.message(), "object is being deleted: widgets.test \"a\" already exists");
    server.patch(&at("a"), MERGE, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    assert_eq!(server.get(&at("a")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn dependents_are_deleted_by_the_propagation_policy() {
    let rows = [
        ("in the background the owner goes first, then its dependents", "Background", false, false),
        ("in the foreground both go", "Foreground", false, false),
        ("orphans stay, without their owner", "Orphan", false, true),
    ];
    for (why, policy, owner_stays, dependent_stays) in rows {
        let server = Server::new();
        let owner = server.post(WIDGETS, &widget("owner")).await.expect(201);
        server.post(WIDGETS, &owned("child", &owner, true)).await.expect(201);
        server.delete(&format!("{}?propagationPolicy={policy}", at("owner"))).await.expect(200);
        assert_eq!(server.get(&at("owner")).await.code == 200, owner_stays, "{why}");
        let child = server.get(&at("child")).await;
        assert_eq!(child.code == 200, dependent_stays, "{why}");
        assert!(child.body["metadata"]["ownerReferences"].is_null(), "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_blocking_dependent_holds_its_owner() {
    let server = Server::new();
    let owner = server.post(WIDGETS, &widget("owner")).await.expect(201);
    let mut child = owned("child", &owner, true);
    child["metadata"]["finalizers"] = json!(["x/y"]);
    server.post(WIDGETS, &child).await.expect(201);
    let marked = server.delete(&format!("{}?propagationPolicy=Foreground", at("owner"))).await.expect(200);
    assert_eq!(marked["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(server.get(&at("child")).await.expect(200)["metadata"]["deletionTimestamp"].is_string());
    assert_eq!(server.get(&at("owner")).await.code, 200);
    server.patch(&at("child"), MERGE, &json!({"metadata": {"finalizers": []}})).await.expect(200);
    assert_eq!(server.get(&at("owner")).await.code, 404);
}

#[tokio::test(start_paused = true)]
async fn circle_of_owners_is_deleted_in_the_foreground() {
    let server = Server::new();
    let first = server.post(WIDGETS, &widget("first")).await.expect(201);
    let second = server.post(WIDGETS, &owned("second", &first, true)).await.expect(201);
    let third = server.post(WIDGETS, &owned("third", &second, true)).await.expect(201);
    let owners = owned("first", &third, true)["metadata"]["ownerReferences"].clone();
    server.patch(&at("first"), MERGE, &json!({"metadata": {"ownerReferences": owners}})).await.expect(200);
    server.delete(&format!("{}?propagationPolicy=Foreground", at("first"))).await.expect(200);
    for name in ["first", "second", "third"] {
        assert_eq!(server.get(&at(name)).await.code, 404, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn dependent_without_any_owner_is_deleted_and_with_one_left_is_kept() {
    let server = Server::new();
    let ghost = json!({"metadata": {"name": "ghost", "uid": "no-such-uid"}});
    server.post(WIDGETS, &owned("orphaned", &ghost, false)).await.expect(201);
    assert_eq!(server.get(&at("orphaned")).await.code, 200, "its writer sees it");
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    assert_eq!(server.get(&at("orphaned")).await.code, 404);

    let owner = server.post(WIDGETS, &widget("owner")).await.expect(201);
    let mut both = owned("both", &owner, false);
    let other = owned("x", &ghost, false)["metadata"]["ownerReferences"][0].clone();
    both["metadata"]["ownerReferences"].as_array_mut().unwrap().push(other);
    server.post(WIDGETS, &both).await.expect(201);
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let kept = server.get(&at("both")).await.expect(200);
    assert_eq!(kept["metadata"]["ownerReferences"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_namespace_empties_before_it_goes() {
    let server = Server::new();
    server.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await.expect(201);
    let inside = "/apis/test/v1/namespaces/n/widgets";
    let mut held = widget("held");
    held["metadata"]["finalizers"] = json!(["x/y"]);
    server.post(inside, &held).await.expect(201);
    server.post(inside, &widget("free")).await.expect(201);
    let marked = server.delete("/api/v1/namespaces/n").await.expect(200);
    assert_eq!(marked["status"]["phase"], "Terminating");
    server.get(&format!("{inside}/free")).await.expect(200);
    let refused = server.post(inside, &widget("late")).await;
    assert_eq!(
        (refused.code, refused.message()),
        (
            403,
            "widgets.test \"late\" is forbidden: unable to create new content in namespace n because it is being \
             terminated"
        )
    );
    assert_eq!(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
    let a_moment = std::time::Duration::from_secs(3);
    tokio::time::sleep(a_moment).await;
    assert_eq!(server.get(&format!("{inside}/free")).await.code, 404);
    server.get("/api/v1/namespaces/n").await.expect(200);
    server.patch(&format!("{inside}/held"), MERGE, &json!({"metadata": {"finalizers": null}})).await.expect(200);
    tokio::time::sleep(a_moment).await;
    assert_eq!(server.get("/api/v1/namespaces/n").await.code, 404);
    let immortal = server.delete("/api/v1/namespaces/default").await;
    assert_eq!(immortal.message(), "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

#[tokio::test(start_paused = true)]
async fn selectors_choose_and_collections_are_deleted_by_them() {
    let server = Server::new();
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "")] {
        let mut body = widget(name);
        if !tier.is_empty() {
            body["metadata"]["labels"] = json!({"tier": tier});
        }
        server.post(WIDGETS, &body).await.expect(201);
    }
    let rows = [
        ("labelSelector=tier", vec!["a", "b"]),
        ("labelSelector=!tier", vec!["c"]),
        ("labelSelector=tier%3Dx", vec!["a"]),
        ("labelSelector=tier!%3Dx", vec!["b", "c"]),
        ("labelSelector=tier+in+(x,y)", vec!["a", "b"]),
        ("labelSelector=tier+notin+(x)", vec!["b", "c"]),
        ("fieldSelector=metadata.name%3Dc", vec!["c"]),
        ("fieldSelector=metadata.name!%3Dc,spec.size%3D1", vec!["a", "b"]),
    ];
    for (query, names) in rows {
        let list = server.get(&format!("{WIDGETS}?{query}")).await.expect(200);
        let found: Vec<&str> =
            list["items"].as_array().unwrap().iter().map(|i| i["metadata"]["name"].as_str().unwrap()).collect();
        assert_eq!(found, names, "{query}");
    }
    server.delete(&format!("{WIDGETS}?labelSelector=tier")).await.expect(200);
    let left = server.get("/apis/test/v1/widgets").await.expect(200);
    assert_eq!(left["items"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn snapshot_restores_every_object() {
    let server = Server::new();
    let made = server.post(WIDGETS, &widget("a")).await.expect(201);
    let snapshot = server.api.snapshot();
    let other = Server::new();
    other.post(WIDGETS, &widget("b")).await.expect(201);
    other.api.restore(&snapshot).unwrap();
    assert_eq!(other.get(&at("a")).await.expect(200), made);
    assert_eq!(other.get(&at("b")).await.code, 404);
    assert!(other.api.restore(&json!({"version": 1, "revision": 1})).is_err());
    assert_eq!(other.get(&at("a")).await.code, 200, "a snapshot that cannot be restored changes nothing");
}

#[tokio::test(start_paused = true)]
async fn kubes_client_works_without_sockets() {
    let server = Server::new();
    let client = server.api.client();
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> = kube::Api::all(client);
    let names: Vec<String> = namespaces
        .list(&kube::api::ListParams::default())
        .await
        .unwrap()
        .into_iter()
        .filter_map(|n| n.metadata.name)
        .collect();
    assert_eq!(names, ["default", "kube-node-lease", "kube-public", "kube-system"]);
    let error = namespaces.get("nope").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.is_not_found()));
}

#[tokio::test(start_paused = true)]
async fn pages_show_one_state_and_count_what_is_left_however_much_changes_between_them() {
    // More than keep their trees, and more than one run of keys.
    const ALL: usize = 1600;
    let server = Server::new();
    for number in 0..ALL {
        server.post(WIDGETS, &widget(&format!("w{number:04}"))).await.expect(201);
    }
    let (mut names, mut token) = (Vec::new(), String::new());
    for round in 0..4 {
        let page = server.get(&format!("{WIDGETS}?limit=400&continue={token}")).await.expect(200);
        let items = page["items"].as_array().unwrap();
        names.extend(items.iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()));
        let left = page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
        assert_eq!(left, u64::try_from(ALL - names.len()).unwrap(), "what was left of the first page's state");
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        // Before and after the page, some objects are deleted, some created and some changed.
        for at in [round * 10, 1590 - round * 10] {
            server.delete(&format!("{WIDGETS}/w{at:04}")).await.expect(200);
            server.post(WIDGETS, &widget(&format!("w{at:04}-new"))).await.expect(201);
            let other = at + 1;
            server.patch(&format!("{WIDGETS}/w{other:04}"), MERGE, &json!({"spec": {"size": 7}})).await.expect(200);
        }
    }
    assert_eq!(token, "", "there is no fifth page");
    assert_eq!(names, (0..ALL).map(|number| format!("w{number:04}")).collect::<Vec<_>>());
    let old = server.get(&format!("{WIDGETS}/w0200")).await.expect(200);
    assert_eq!(old["spec"]["size"], 1, "what was not touched for long is read as it was written");
    let selected = server.get(&format!("{WIDGETS}?fieldSelector=spec.size%3D7")).await.expect(200);
    assert_eq!(selected["items"].as_array().unwrap().len(), 8);
}
