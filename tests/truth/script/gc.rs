//! Garbage collection of dependents: in the background, in the foreground, orphaned.

use serde_json::{Value, json};

use super::scenario;
use crate::dsl::*;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        scenario("gc-background", background()),
        scenario("gc-foreground", foreground()),
        scenario("gc-orphan", orphan()),
        scenario("gc-odd", odd()),
    ]
}

fn child(name: &str, block: bool) -> Value {
    job(name).with("/metadata/ownerReferences", owned_by("batch/v1", "CronJob", "c", "c", block))
}

fn grandchild(name: &str) -> Value {
    pod(name).with("/metadata/ownerReferences", owned_by("batch/v1", "Job", "j", "j", true))
}

/// The collector's own entry in the managed fields has its name.
fn plain(value: Value) -> Value {
    value.without("/metadata/managedFields").without("/metadata/resourceVersion")
}

fn background() -> Vec<Step> {
    vec![
        post(CRONJOBS, &cronjob("c")).id("c").named("a CronJob"),
        post(JOBS, &child("j", true)).id("j").named("its Job"),
        post(PODS, &grandchild("p")).named("the Job's Pod"),
        post(JOBS, &child("held", true).with("/metadata/finalizers", json!(["example.com/hold"])))
            .named("a Job that holds on"),
        delete_with(format!("{CRONJOBS}/c"), &json!({"propagationPolicy": "Background"}))
            .named("the CronJob goes at once"),
        get(format!("{CRONJOBS}/c")).named("it is gone"),
        get(format!("{JOBS}/j")).until_status(404).named("its Job goes"),
        get(format!("{PODS}/p")).until_status(404).named("the Job's Pod goes"),
        get(format!("{JOBS}/held"))
            .until("/metadata/deletionGracePeriodSeconds", json!(0))
            .part(plain)
            .named("the one that holds on is marked"),
        patch(MERGE, format!("{JOBS}/held"), &json!({"metadata": {"finalizers": null}}))
            .part(plain)
            .named("it lets go"),
        get(format!("{JOBS}/held")).until_status(404).named("it is gone, too"),
    ]
}

fn foreground() -> Vec<Step> {
    vec![
        post(CRONJOBS, &cronjob("c")).id("c").named("a CronJob"),
        post(JOBS, &child("j", true).with("/metadata/finalizers", json!(["example.com/hold"])))
            .id("j")
            .named("a Job that blocks and holds on"),
        post(JOBS, &child("free", false).with("/metadata/finalizers", json!(["example.com/hold"])))
            .named("a Job that does not block"),
        post(PODS, &grandchild("p")).named("the Job's Pod"),
        delete_with(format!("{CRONJOBS}/c"), &json!({"propagationPolicy": "Foreground"}))
            .named("the CronJob is marked"),
        get(format!("{CRONJOBS}/c")).named("it waits for its Jobs"),
        get(format!("{PODS}/p")).until_status(404).named("the Pod goes first"),
        get(format!("{JOBS}/j"))
            .until("/metadata/finalizers", json!(["example.com/hold"]))
            .part(plain)
            .named("the Job is marked, and its Pod no longer counts"),
        delete_with(format!("{CRONJOBS}/c"), &json!({"propagationPolicy": "Foreground"}))
            .part(plain)
            .named("a second deletion changes nothing"),
        patch(MERGE, format!("{JOBS}/j"), &json!({"metadata": {"finalizers": null}}))
            .part(plain)
            .named("the Job lets go"),
        get(format!("{JOBS}/j")).until_status(404).named("the Job goes"),
        get(format!("{CRONJOBS}/c"))
            .until_status(404)
            .named("the CronJob goes last, not waiting for what does not block"),
        get(format!("{JOBS}/free"))
            .until("/metadata/deletionGracePeriodSeconds", json!(0))
            .part(plain)
            .named("that one is marked"),
        patch(MERGE, format!("{JOBS}/free"), &json!({"metadata": {"finalizers": null}}))
            .part(plain)
            .named("and lets go"),
        post(CRONJOBS, &cronjob("alone")).named("a CronJob without Jobs"),
        delete_with(format!("{CRONJOBS}/alone"), &json!({"propagationPolicy": "Foreground"}))
            .named("in the foreground it is marked as well"),
        get(format!("{CRONJOBS}/alone")).until_status(404).named("and goes"),
        post(CRONJOBS, &cronjob("one").with("/metadata/labels", json!({"l": "1"}))).named("one of a collection"),
        delete_with(format!("{CRONJOBS}?labelSelector=l%3D1"), &json!({"propagationPolicy": "Foreground"}))
            .named("a collection in the foreground"),
        get(format!("{CRONJOBS}/one")).until_status(404).named("goes as well"),
    ]
}

fn orphan() -> Vec<Step> {
    vec![
        post(CRONJOBS, &cronjob("c")).id("c").named("a CronJob"),
        post(JOBS, &child("j", true)).id("j").named("its Job"),
        delete_with(format!("{CRONJOBS}/c"), &json!({"propagationPolicy": "Orphan"})).named("the CronJob is marked"),
        get(format!("{CRONJOBS}/c")).until_status(404).named("it goes"),
        get(format!("{JOBS}/j"))
            .until("/metadata/ownerReferences", Value::Null)
            .part(plain)
            .named("its Job stays, without an owner"),
        post(CRONJOBS, &cronjob("d")).named("another"),
        delete_with(format!("{CRONJOBS}/d"), &json!({"orphanDependents": true})).named("the old way to say so"),
        get(format!("{CRONJOBS}/d")).until_status(404).named("goes, too"),
        post(CRONJOBS, &cronjob("e")).named("a third"),
        delete_with(format!("{CRONJOBS}/e"), &json!({"orphanDependents": false}))
            .named("the old way to say the contrary"),
        get(format!("{CRONJOBS}/e")).named("goes at once"),
        post(PODS, &grandchild("p")).named("a Pod of the orphan"),
        delete(format!("{JOBS}/j")).named("a Job's deletion orphans by default"),
        get(format!("{JOBS}/j")).until_status(404).named("the Job goes"),
        get(format!("{PODS}/p")).until("/metadata/ownerReferences", Value::Null).part(plain).named("its Pod stays"),
    ]
}

fn odd() -> Vec<Step> {
    let two = |a: &str, b: &str| {
        let mut owners = owned_by("batch/v1", "CronJob", a, a, true);
        let mut other = owned_by("batch/v1", "CronJob", b, b, true)[0].clone();
        other["controller"] = json!(false);
        owners.as_array_mut().unwrap().push(other);
        owners
    };
    vec![
        post(CRONJOBS, &cronjob("a")).id("a").named("one owner"),
        post(CRONJOBS, &cronjob("b")).id("b").named("a second owner"),
        post(JOBS, &job("j").with("/metadata/ownerReferences", two("a", "b"))).named("a Job of both"),
        delete(format!("{CRONJOBS}/a")).named("one owner goes"),
        get(format!("{JOBS}/j"))
            .until("/metadata/ownerReferences/1", Value::Null)
            .part(plain)
            .named("the Job stays with the other"),
        delete(format!("{CRONJOBS}/b")).named("the other goes"),
        get(format!("{JOBS}/j")).until_status(404).named("the Job goes"),
        post(CRONJOBS, &cronjob("a")).id("a2").named("a namesake of the first owner"),
        post(JOBS, &job("stale").with("/metadata/ownerReferences", owned_by("batch/v1", "CronJob", "a", "a", true)))
            .named("a Job of its predecessor"),
        get(format!("{JOBS}/stale")).until_status(404).named("is collected"),
        post(JOBS, &job("mine").with("/metadata/ownerReferences", owned_by("batch/v1", "CronJob", "a", "a2", true)))
            .named("a Job of its own"),
        post(
            JOBS,
            &job("wrong").with("/metadata/ownerReferences", owned_by("batch/v1", "CronJob", "other-name", "a2", true)),
        )
        .named("a Job that names its owner wrongly"),
        get(format!("{JOBS}/wrong")).until_status(404).named("is collected"),
        get(format!("{JOBS}/mine")).named("its own stays"),
        patch(MERGE, format!("{CRONJOBS}/a"), &json!({"metadata": {"finalizers": ["foregroundDeletion"]}}))
            .named("the collector's finalizer by hand"),
        delete_with(format!("{CRONJOBS}/a"), &json!({"propagationPolicy": "Background"}))
            .named("a deletion in the background drops it"),
        get(format!("{CRONJOBS}/a")).until_status(404).named("it goes"),
        get(format!("{JOBS}/mine")).until_status(404).named("and so does its own"),
    ]
}
