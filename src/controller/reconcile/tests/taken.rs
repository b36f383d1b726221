//! What is known of a slot whose name a Job of another owner has, from one sync to the next.

use super::limits::CREATED;
use super::policies::annotated;
use super::*;
use crate::api::policy::{BACKLOG, MAX_CONCURRENT};
use crate::controller::memory::Memories;
use crate::controller::plan::{Skip, Verdict};
use crate::controller::status::Edits;
use crate::controller::tests::objects::{at, controlled_by};

#[derive(Clone, Copy)]
enum Step {
    /// A Job of another owner has the name of the slot.
    Taken(&'static str),
    /// A create of the slot is refused for such a Job, which is gone when it is read.
    GoneWhenRead(&'static str),
    /// No Job of another owner has the name any more.
    Free(&'static str),
    /// Another controller starts the slot.
    Theirs(&'static str),
    /// A sync begins five seconds after that minute.
    Sync(&'static str),
    /// Another status is written.
    Written,
    Suspended,
    Resumed,
    /// The process ends, and another begins.
    Restart,
    /// The CronJob goes, and one of its name is created at 10:05.
    Recreated,
}

/// The policies of a CronJob, or none.
type Policies<'a> = &'a [(&'a str, &'a str)];

/// A CronJob on a server, due every ten minutes and last started at ten, and a process that syncs it.
struct Replay<'a> {
    policies: Policies<'a>,
    memories: Memories,
    cron_job: Arc<CronJob>,
    /// What the names of Jobs of other owners show when they are read.
    others: HashMap<ObjectName, Result<Arc<Job>, ApiError>>,
    own: Vec<Arc<Job>>,
}

impl<'a> Replay<'a> {
    fn new(policies: Policies<'a>) -> Self {
        let patch = json!({ "spec": { "schedule": "*/10 * * * *" }, "status": { "lastScheduleTime": SLOT } });
        let cron_job = annotated(policies, CREATED, patch);
        Self { policies, memories: Memories::default(), cron_job, others: HashMap::new(), own: Vec::new() }
    }

    /// What each sync does.
    fn after(&mut self, steps: &[Step]) -> Vec<String> {
        steps.iter().filter_map(|step| self.step(*step)).collect()
    }

    fn step(&mut self, step: Step) -> Option<String> {
        match step {
            Step::Taken(slot) => {
                let name = self.name_of(at(slot));
                let foreign = job(&name.name, "foreign", json!({ "metadata": { "ownerReferences": [] } }));
                self.others.insert(name, Ok(foreign));
            }
            Step::GoneWhenRead(slot) => {
                self.others.insert(self.name_of(at(slot)), Err(refusal(404, "NotFound")));
            }
            Step::Free(slot) => assert!(self.others.remove(&self.name_of(at(slot))).is_some(), "{slot} is not taken"),
            Step::Theirs(slot) => self.own.push(self.child(at(slot))),
            Step::Sync(minute) => return Some(self.sync(at(minute) + TimeDelta::seconds(5))),
            Step::Written => {
                let status = CronJobStatus { last_successful_time: Some(at("10:01")), ..self.cron_job.status.clone() };
                self.write(status);
            }
            Step::Suspended => self.suspend(true),
            Step::Resumed => self.suspend(false),
            Step::Restart => self.memories = Memories::default(),
            Step::Recreated => {
                let (uid, version) = ("later-uid", self.next_version());
                let metadata = json!({ "uid": uid, "resourceVersion": version, "creationTimestamp": at("10:05") });
                let patch = json!({ "metadata": metadata, "spec": { "schedule": "*/10 * * * *" }, "status": null });
                self.cron_job = annotated(self.policies, "2026-03-02T10:05:00Z", patch);
                self.own.clear();
            }
        }
        None
    }

    fn name_of(&self, slot: DateTime<Utc>) -> ObjectName {
        ObjectName::new("ns", self.cron_job.controller_kind.child_name(&self.cron_job.name.name, slot))
    }

    fn child(&self, slot: DateTime<Utc>) -> Arc<Job> {
        let (name, uid) = (self.name_of(slot).name, self.cron_job.uid.to_string());
        let owned = json!({ "metadata": { "ownerReferences": [controlled_by("report", &uid)] } });
        job(&name, &name, merged(made_by_controller(&slot.to_rfc3339()), owned))
    }

    fn next_version(&self) -> String {
        (self.cron_job.resource_version.parse::<u64>().unwrap() + 1).to_string()
    }

    fn change(&mut self, change: impl FnOnce(&mut CronJob)) -> Arc<CronJob> {
        let mut changed = CronJob::clone(&self.cron_job);
        changed.resource_version = (&*self.next_version()).into();
        change(&mut changed);
        std::mem::replace(&mut self.cron_job, Arc::new(changed))
    }

    fn suspend(&mut self, suspend: bool) {
        self.change(|cron_job| cron_job.spec.suspend = suspend);
    }

    fn write(&mut self, status: CronJobStatus) {
        let before = self.change(|cron_job| cron_job.status = status);
        self.memories.settled(&before, Some(&self.cron_job), Edits::default());
    }

    /// A sync with caches that show everything, whose status is written at once.
    fn sync(&mut self, now: DateTime<Utc>) -> String {
        let mut observation = self.memories.recall(&self.cron_job, Zone::UTC, 0, String::new);
        observation.jobs.clone_from(&self.own);
        let mut case = Case::new(observation);
        let settlement = loop {
            match reconcile(&case, now) {
                Plan::Create { name, slot } => {
                    case.create = Some(if let Some(other) = self.others.get(&name) {
                        case.learn_job(name, other.clone());
                        CreateReply::Refused(refusal(409, "AlreadyExists"))
                    } else {
                        self.own.push(self.child(slot));
                        CreateReply::Created(self.child(slot))
                    });
                }
                Plan::Settle(settlement) => break settlement,
                other => panic!("{other:?}"),
            }
        };
        self.memories.decided(&self.cron_job, &case.recalled, &settlement);
        let words = words(&settlement);
        match settlement.status {
            Some(write) => self.write(write.status),
            None => self.memories.settled(&self.cron_job, None, settlement.edits),
        }
        words
    }
}

/// What a sync did, and when the next one follows.
fn words(settlement: &Settlement) -> String {
    let clock = |time: DateTime<Utc>| time.format("%H:%M").to_string();
    let what = match settlement.verdict {
        Verdict::Started { slot, .. } => format!("{} started", clock(slot)),
        Verdict::Skipped(Skip::NameTaken(slot)) => format!("{} taken", clock(slot)),
        Verdict::Skipped(skip) => skip.as_str().to_owned(),
        Verdict::NothingDue => "nothing due".to_owned(),
        Verdict::Open => "no decision".to_owned(),
    };
    let told = if reasons(settlement).contains(&"FailedCreate") { ", told" } else { "" };
    let next = requeued_at(settlement).map_or_else(|| "no next".to_owned(), |next| format!("next {}", clock(next)));
    format!("{what}{told}; {next}")
}

/// A sentence, what happens, and what each sync does.
type Row<'a> = (&'a str, &'a [Step], &'a [&'a str]);

fn check(policies: Policies<'_>, rows: &[Row<'_>]) {
    for (sentence, steps, want) in rows {
        assert_eq!(Replay::new(policies).after(steps), *want, "{sentence}");
    }
}

/// Until a later slot is due, a slot whose name is taken is tried at each sync.
#[test]
fn taken_name_is_told_once_for_a_slot_and_process_and_the_slot_starts_once_it_is_free() {
    use Step::*;

    const TOLD: &str = "10:10 taken, told; next 10:20";
    const AGAIN: &str = "10:10 taken; next 10:20";
    const STARTED: &str = "10:10 started; next 10:20";
    let rows: [Row<'_>; 15] = [
        ("tried twice", &[Taken("10:10"), Sync("10:10"), Sync("10:15")], &[TOLD, AGAIN]),
        ("its Job goes", &[Taken("10:10"), Sync("10:10"), Free("10:10"), Sync("10:15")], &[TOLD, STARTED]),
        (
            "its Job goes, and another one takes the name",
            &[Taken("10:10"), Sync("10:10"), Free("10:10"), Taken("10:10"), Sync("10:15")],
            &[TOLD, AGAIN],
        ),
        (
            "its Job goes, and another controller starts the slot",
            &[Taken("10:10"), Sync("10:10"), Free("10:10"), Theirs("10:10"), Sync("10:15")],
            &[TOLD, "nothing due; next 10:20"],
        ),
        (
            "its Job is gone when it is read",
            &[GoneWhenRead("10:10"), Sync("10:10"), Free("10:10"), Sync("10:10")],
            &["no decision; no next", STARTED],
        ),
        (
            "gone when it is read, and there again",
            &[GoneWhenRead("10:10"), Sync("10:10"), Taken("10:10"), Sync("10:10"), Sync("10:15")],
            &["no decision; no next", TOLD, AGAIN],
        ),
        (
            "a later slot is free, and the name of the first becomes so",
            &[Taken("10:10"), Sync("10:10"), Sync("10:20"), Free("10:10"), Sync("10:25")],
            &[TOLD, "10:20 started; next 10:30", "nothing due; next 10:30"],
        ),
        (
            "the name of a later slot is taken, too",
            &[Taken("10:10"), Taken("10:20"), Sync("10:10"), Sync("10:20"), Sync("10:25")],
            &[TOLD, "10:20 taken, told; next 10:30", "10:20 taken; next 10:30"],
        ),
        (
            "a later slot is taken, and the clock is set back",
            &[Taken("10:10"), Taken("10:20"), Sync("10:10"), Sync("10:20"), Sync("10:15"), Sync("10:15")],
            &[TOLD, "10:20 taken, told; next 10:30", TOLD, AGAIN],
        ),
        (
            "a status is written",
            &[Taken("10:10"), Sync("10:10"), Written, Sync("10:15"), Written, Sync("10:16")],
            &[TOLD, AGAIN, AGAIN],
        ),
        (
            "suspended and resumed",
            &[Taken("10:10"), Sync("10:10"), Suspended, Sync("10:12"), Resumed, Sync("10:15")],
            &[TOLD, "suspended; no next", AGAIN],
        ),
        ("a restart", &[Taken("10:10"), Sync("10:10"), Restart, Sync("10:15"), Sync("10:16")], &[TOLD, TOLD, AGAIN]),
        (
            "a restart, and its Job goes",
            &[Taken("10:10"), Sync("10:10"), Restart, Free("10:10"), Sync("10:15")],
            &[TOLD, STARTED],
        ),
        (
            "another CronJob of the name",
            &[Taken("10:10"), Sync("10:10"), Recreated, Sync("10:15"), Sync("10:16")],
            &[TOLD, TOLD, AGAIN],
        ),
        (
            "another CronJob of the name, and the Job goes",
            &[Taken("10:10"), Sync("10:10"), Recreated, Sync("10:15"), Free("10:10"), Sync("10:16")],
            &[TOLD, TOLD, STARTED],
        ),
    ];
    check(&[], &rows);
}

/// 10:10, 10:20 and 10:30 wait.
#[test]
fn waiting_slot_whose_name_is_taken_is_tried_once_by_a_process_unless_it_is_the_newest() {
    use Step::*;

    const POLICIES: Policies<'_> = &[(BACKLOG, "3"), (MAX_CONCURRENT, "9")];
    const TOLD: &str = "10:10 taken, told; next 10:20";
    const SECOND: &str = "10:20 started; next 10:30";
    const THIRD: &str = "10:30 started; next 10:40";
    const DONE: &str = "nothing due; next 10:40";
    const SYNC: Step = Sync("10:30");
    let rows: [Row<'_>; 13] = [
        ("no name is taken", &[SYNC, SYNC, SYNC, SYNC], &["10:10 started; next 10:20", SECOND, THIRD, DONE]),
        ("that of the oldest", &[Taken("10:10"), SYNC, SYNC, SYNC, SYNC], &[TOLD, SECOND, THIRD, DONE]),
        ("its Job goes", &[Taken("10:10"), SYNC, Free("10:10"), SYNC, SYNC, SYNC], &[TOLD, SECOND, THIRD, DONE]),
        (
            "those of two",
            &[Taken("10:10"), Taken("10:20"), SYNC, SYNC, SYNC, SYNC],
            &[TOLD, "10:20 taken, told; next 10:30", THIRD, DONE],
        ),
        (
            "those of two, and the first Job goes",
            &[Taken("10:10"), Taken("10:20"), SYNC, SYNC, Free("10:10"), SYNC, SYNC],
            &[TOLD, "10:20 taken, told; next 10:30", THIRD, DONE],
        ),
        (
            "that of the second",
            &[Taken("10:20"), SYNC, SYNC, SYNC, SYNC],
            &["10:10 started; next 10:20", "10:20 taken, told; next 10:30", THIRD, DONE],
        ),
        (
            "that of the newest",
            &[Taken("10:30"), SYNC, SYNC, SYNC, SYNC],
            &["10:10 started; next 10:20", SECOND, "10:30 taken, told; next 10:40", "10:30 taken; next 10:40"],
        ),
        (
            "that of the newest, and its Job goes",
            &[Taken("10:30"), SYNC, SYNC, SYNC, Free("10:30"), SYNC],
            &["10:10 started; next 10:20", SECOND, "10:30 taken, told; next 10:40", THIRD],
        ),
        (
            "that of the newest, which is not the newest any more",
            &[Taken("10:30"), SYNC, SYNC, SYNC, Free("10:30"), Sync("10:40")],
            &["10:10 started; next 10:20", SECOND, "10:30 taken, told; next 10:40", "10:40 started; next 10:50"],
        ),
        (
            "a status is written, and it is suspended for a while",
            &[Taken("10:10"), SYNC, Written, Suspended, SYNC, Resumed, SYNC],
            &[TOLD, "suspended; no next", SECOND],
        ),
        ("a restart", &[Taken("10:10"), SYNC, Restart, SYNC, SYNC], &[TOLD, TOLD, SECOND]),
        (
            "a restart, and its Job goes",
            &[Taken("10:10"), SYNC, Restart, Free("10:10"), SYNC],
            &[TOLD, "10:10 started; next 10:20"],
        ),
        (
            "another CronJob of the name, and the Job goes",
            &[Taken("10:10"), SYNC, Recreated, Free("10:10"), SYNC],
            &[TOLD, "10:10 started; next 10:20"],
        ),
    ];
    check(POLICIES, &rows);
}
