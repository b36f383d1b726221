//! Garbage collection and namespace deletion.
//!
//! Guarantees: [`settle`] runs within the change that caused it. A client that sees the answer to its request also sees the
//! consequences, in an order that depends on the objects alone. It terminates: every step removes an object, a finalizer, an
//! owner reference or what one blocks.
//!
//! Two cases are handled a moment later ([`settle_late`]): objects written with a reference to a missing owner, and the
//! contents of a terminating namespace. Their writer can still see them, and a client that deletes a namespace and then its
//! contents finds the contents.
//!
//! Matches kube-controller-manager `pkg/controller/garbagecollector` (`attemptToDeleteItem`, `processDeletingDependentsItem`,
//! `orphanDependents`) and `pkg/controller/namespace`. Upstream runs these some milliseconds later, and the last one five
//! seconds later (`namespaceDeletionGracePeriod`). An owner of a kind that is not served counts as present.

use std::sync::Arc;

use serde_json::{Value, json};

use super::delete::{self, DeleteOptions};
use super::managers::Writer;
use super::meta::{self, CLEANUP, FOREGROUND, ORPHAN};
use super::object::Object;
use super::store::{DEFINITIONS, Id, Store};

const NAMESPACES: &str = "namespaces";

/// Processes every object that a change may affect, until nothing is left to do.
pub fn settle(store: &mut Store) {
    look_at_all(store, false);
}

/// Processes the objects written with owner references since the last call, and the terminating namespaces.
pub fn settle_late(store: &mut Store) {
    for id in std::mem::take(&mut store.late) {
        if id.collection == NAMESPACES || id.collection == DEFINITIONS {
            store.dirty.push_back(id);
        } else if let Some(object) = store.get(&id).filter(|object| !meta::is_deleting(object)) {
            judge_owners(store, &id, &object);
        }
    }
    look_at_all(store, true);
}

fn look_at_all(store: &mut Store, is_late: bool) {
    while let Some(id) = store.dirty.pop_front() {
        let Some(object) = store.get(&id) else { continue };
        if is_ending_definition(&id, &object) {
            end_definition(store, id, is_late);
        } else if id.collection != NAMESPACES {
            look_at(store, &id, &object);
        } else if object["status"]["phase"] == "Terminating" {
            if is_late {
                end_namespace(store, &id, &object);
            } else {
                store.late.insert(id);
            }
        }
    }
}

fn has(object: &Value, finalizer: &str) -> bool {
    meta::finalizers(object).iter().any(|f| f == finalizer)
}

fn look_at(store: &mut Store, id: &Id, object: &Value) {
    if !meta::is_deleting(object) {
        if store.orphaned.remove(id) {
            judge_owners(store, id, object);
        }
    } else if has(object, ORPHAN) {
        orphan_dependents(store, id, object);
    } else if has(object, FOREGROUND) {
        finish_foreground(store, id, object);
    }
}

/// Removes the owner's reference from its dependents, then releases the owner.
fn orphan_dependents(store: &mut Store, id: &Id, owner: &Value) {
    let uid = meta::text(owner, "uid").to_owned();
    for dependent in store.dependents(&uid) {
        drop_owners(store, &dependent, std::slice::from_ref(&uid));
    }
    drop_finalizer(store, id, ORPHAN);
}

/// Deletes the dependents of an owner in foreground deletion. Releases the owner once none blocks it.
fn finish_foreground(store: &mut Store, id: &Id, owner: &Value) {
    let uid = meta::text(owner, "uid").to_owned();
    let dependents = store.dependents(&uid);
    for dependent in &dependents {
        if let Some(object) = store.get(dependent)
            && !meta::is_deleting(&object)
        {
            judge_owners(store, dependent, &object);
        }
    }
    let blocks = |dependent: &Id| {
        store.get(dependent).is_some_and(|object| {
            let mut owners = meta::owners(&object).iter();
            owners.any(|owner| owner["uid"] == json!(uid) && owner["blockOwnerDeletion"] == json!(true))
        })
    };
    if !dependents.iter().any(blocks) {
        drop_finalizer(store, id, FOREGROUND);
    }
}

/// Whether an owner exists, is gone, or waits for its dependents to be deleted.
enum Owner {
    Solid,
    Dangling,
    Waiting,
}

fn classify(store: &Store, owner: &Value, namespace: &str) -> Owner {
    let Some(id) = store.resolve(owner, namespace) else { return Owner::Solid };
    match store.get(&id) {
        Some(object) if object["metadata"]["uid"] == owner["uid"] => {
            if meta::is_deleting(&object) && has(&object, FOREGROUND) { Owner::Waiting } else { Owner::Solid }
        }
        _ => Owner::Dangling,
    }
}

fn judge_owners(store: &mut Store, id: &Id, object: &Value) {
    let namespace = meta::text(object, "namespace").to_owned();
    let (mut solid, mut waiting, mut gone) = (false, false, Vec::new());
    for owner in meta::owners(object) {
        let kind = classify(store, owner, &namespace);
        waiting |= matches!(kind, Owner::Waiting);
        if matches!(kind, Owner::Solid) {
            solid = true;
        } else {
            gone.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        }
    }
    if gone.is_empty() {
        return;
    }
    if solid {
        return drop_owners(store, id, &gone);
    }
    let dependents = store.dependents(meta::text(object, "uid"));
    let has_dependents = !dependents.is_empty();
    let is_in_deletion = |dependent: &Id| {
        store.get(dependent).is_some_and(|object| meta::is_deleting(&object) && has(&object, FOREGROUND))
    };
    // A circle of owners would wait for itself. Matches `attemptToDeleteItem` of the garbage collector.
    if waiting && dependents.iter().any(is_in_deletion) {
        unblock_owners(store, id);
    }
    let policy = if (waiting && has_dependents) || has(object, FOREGROUND) {
        "Foreground"
    } else if has(object, ORPHAN) {
        "Orphan"
    } else {
        "Background"
    };
    let options = DeleteOptions { propagation_policy: Some(policy.to_owned()), ..DeleteOptions::default() };
    // A rejected deletion leaves the object as it is; the next change processes it again.
    let _ = delete::delete(store, id, &options);
}

fn drop_owners(store: &mut Store, id: &Id, uids: &[String]) {
    let Some(object) = store.get(id) else { return };
    let owners = meta::owners(&object).iter();
    let kept = owners.filter(|owner| !uids.iter().any(|uid| owner["uid"] == json!(uid))).cloned().collect();
    write_owners(store, id, &object, kept);
}

/// Lets the owners be deleted before this object.
fn unblock_owners(store: &mut Store, id: &Id) {
    let Some(object) = store.get(id) else { return };
    let mut owners = meta::owners(&object).to_vec();
    for owner in &mut owners {
        owner["blockOwnerDeletion"] = json!(false);
    }
    write_owners(store, id, &object, owners);
}

fn write_owners(store: &mut Store, id: &Id, object: &Arc<Object>, kept: Vec<Value>) {
    let mut changed = (***object).clone();
    meta::set(&mut changed, "ownerReferences", if kept.is_empty() { Value::Null } else { Value::Array(kept) });
    let now = store.now();
    if let Some(collection) = store.collections.get(&id.collection) {
        let resource = &collection.resource;
        Writer { resource, manager: "kube-controller-manager", subresource: "", now }
            .update(Some(object), &mut changed);
    }
    store.put(id, changed);
}

fn drop_finalizer(store: &mut Store, id: &Id, finalizer: &str) {
    let Some(object) = store.get(id) else { return };
    let mut changed = (**object).clone();
    let mut finalizers = meta::finalizers(&changed);
    finalizers.retain(|f| f != finalizer);
    meta::set_finalizers(&mut changed, &finalizers);
    let grace = changed["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or_default();
    if finalizers.is_empty() && grace == 0 {
        store.remove(id);
    } else {
        store.put(id, changed);
    }
}

/// Deletes the contents of a terminating namespace; removes the namespace once it is empty.
fn end_namespace(store: &mut Store, id: &Id, namespace: &Value) {
    let prefix = format!("{}/", meta::text(namespace, "name"));
    let contents: Vec<Id> = store
        .collections
        .iter()
        .filter(|(_, collection)| collection.resource.namespaced)
        .flat_map(|(name, collection)| {
            let keys = collection.objects.range(&prefix).map(|(key, _)| key);
            let inside = keys.take_while(|key| key.starts_with(&prefix));
            inside.map(|key| Id { collection: name.clone(), key: key.to_owned() })
        })
        .collect();
    // Pods are deleted first; everything else stays while there are any.
    let (pods, others): (Vec<Id>, Vec<Id>) = contents.into_iter().partition(|item| item.collection == "pods");
    if empty(store, pods) || empty(store, others) {
        return;
    }
    let mut emptied = namespace.clone();
    if let Some(spec) = emptied["spec"].as_object_mut() {
        spec.remove("finalizers");
    }
    if meta::finalizers(&emptied).is_empty() {
        store.remove(id);
    } else if emptied != *namespace {
        store.put(id, emptied);
    }
}

fn is_ending_definition(id: &Id, object: &Value) -> bool {
    id.collection == DEFINITIONS && meta::is_deleting(object) && has(object, CLEANUP)
}

/// Deletes the objects of terminating definitions, also when garbage collection is off.
pub fn end_definitions(store: &mut Store) {
    let dirty = std::mem::take(&mut store.dirty).into_iter();
    for id in dirty.chain(std::mem::take(&mut store.late)) {
        if store.get(&id).is_some_and(|object| is_ending_definition(&id, &object)) {
            end_definition(store, id, true);
        }
    }
}

/// Deletes the objects of a definition and removes the definition once there are none. Removal ends their watches, which must
/// first show the deletions, so it happens a moment later.
fn end_definition(store: &mut Store, id: Id, is_late: bool) {
    let name = id.key.trim_start_matches('/').to_owned();
    let objects = store.collections.get(&name).into_iter().flat_map(|collection| collection.objects.iter());
    let objects = objects.map(|(key, _)| Id { collection: name.clone(), key: key.to_owned() }).collect();
    let is_empty = !empty(store, objects);
    if !is_late {
        store.late.insert(id);
    } else if is_empty {
        drop_finalizer(store, &id, CLEANUP);
    }
}

/// Deletes objects; returns whether any of them remains for now.
fn empty(store: &mut Store, contents: Vec<Id>) -> bool {
    let mut left = false;
    for item in contents {
        let deleting = store.get(&item).is_some_and(|object| meta::is_deleting(&object));
        if !deleting {
            let options =
                DeleteOptions { propagation_policy: Some("Background".to_owned()), ..DeleteOptions::default() };
            // A rejected deletion leaves the object, and therefore the namespace.
            let _ = delete::delete(store, &item, &options);
        }
        left |= store.get(&item).is_some();
    }
    left
}
