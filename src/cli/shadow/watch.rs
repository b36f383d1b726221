//! The informers and the queue of a shadow, and the loop that compares.
//!
//! Guarantees: nothing is sent but lists and watches. Keys come from the events of CronJobs and Jobs and from a timer for each next
//! slot, as in the controller, and one task works on them. What is kept of a CronJob goes with it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use chrono::{DateTime, TimeDelta, Utc};
use kube::Client;
use parking_lot::RwLock;
use schedule::Zone;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::compare::{MISSED_AFTER, Sight, Track, slot_for};
use super::eyes::Eyes;
use super::file::ReportFile;
use super::metrics::ShadowMetrics;
use super::report::{Report, Sums};
use super::sights::{Handler, MOST_SIGHTS, Sights};
use super::stalls::Stalls;
use super::status::StatusWatch;
use super::what_if::WhatIf;
use super::{Progress, ShadowError, refusals};
use crate::api::batch_v1::{CronJob, Job};
use crate::api::policy::PolicyOptions;
use crate::api::{Object as _, ObjectName};
use crate::cache::{Informer, Observer, Store};
use crate::cli::cluster::ControllerFlags;
use crate::cli::explain::InCharge;
use crate::cli::explain::lease::Leases;
use crate::cli::explain::read::read_leases;
use crate::cli::explain::rehearsal::Rehearsal;
use crate::cli::explain::watched::Watched;
use crate::cli::restrictions::Restrictions;
use crate::controller::plan::Verdict;
use crate::workqueue::{self, WorkQueue};

/// How often leases and Namespaces are read.
const PERIOD: Duration = Duration::from_secs(10);
/// What was judged so long before another restriction of its Namespace was read may have been judged by the wrong one.
const DOUBTED: TimeDelta = TimeDelta::seconds(20);
/// How often the summary is shown.
const SHOWN: Duration = Duration::from_secs(1);
/// During a gap of the watch, a key is looked at again after this time.
const GAP_PERIOD: TimeDelta = TimeDelta::seconds(5);
/// How long a Job waits for the watch to show its CronJob.
const OWNER_COMES: TimeDelta = TimeDelta::seconds(10);

/// What is known of a CronJob.
struct Known {
    track: Track,
    status: StatusWatch,
    /// The version that was looked at last, as the controller in charge sees it.
    cron_job: Arc<CronJob>,
    /// That controller.
    in_charge: InCharge,
}

/// A shadow of the controller in charge.
pub(super) struct Shadow {
    client: Client,
    cron_jobs: Arc<Store<Watched>>,
    jobs: Arc<Store<Job>>,
    queue: WorkQueue<ObjectName>,
    clock: SharedClock,
    flags: ControllerFlags,
    sights: Arc<Sights>,
    leases: Arc<RwLock<Leases>>,
    restrictions: Arc<RwLock<Restrictions>>,
    /// Cancelled once leases and Namespaces were read.
    read: CancellationToken,
    eyes: Arc<Eyes>,
    stalls: Stalls,
    known: HashMap<ObjectName, Known>,
    sums: Sums,
    metrics: Option<ShadowMetrics>,
    since: DateTime<Utc>,
    /// No slot that is due after this time is compared.
    until: Option<DateTime<Utc>>,
    /// Where the report so far is written.
    pub file: Option<ReportFile>,
    _stop: DropGuard,
}

impl Shadow {
    /// Starts the informers. Must be called inside a tokio runtime.
    pub fn start(
        client: &Client,
        namespace: Option<&str>,
        flags: ControllerFlags,
        clock: SharedClock,
        metrics: Option<ShadowMetrics>,
        what_if: WhatIf,
    ) -> Self {
        let namespaces: Vec<String> = namespace.map(str::to_owned).into_iter().collect();
        let seed: u64 = rand::random();
        let policies = PolicyOptions { enabled: true, seed: Arc::clone(&flags.seed) };
        let mut cron_jobs = Informer::<Watched>::new(client.clone(), &namespaces, seed).selecting(move |watched| {
            watched.apply(&policies);
            true
        });
        let mut jobs = Informer::<Job>::new(client.clone(), &namespaces, !seed);
        let queue = WorkQueue::new(workqueue::Config::new("shadow", Arc::clone(&clock)));
        let (sights, eyes) = (Arc::<Sights>::default(), Eyes::new(Arc::clone(&clock)));
        let handler =
            Arc::new(Handler { queue: queue.clone(), sights: Arc::clone(&sights), clock: Arc::clone(&clock) });
        cron_jobs.add_event_handler(Arc::clone(&handler) as _);
        jobs.add_event_handler(handler);
        cron_jobs.set_observer(Arc::clone(&eyes) as Arc<dyn Observer>);
        jobs.set_observer(Arc::clone(&eyes) as Arc<dyn Observer>);
        let (stop, leases) = (CancellationToken::new(), Arc::<RwLock<Leases>>::default());
        let restrictions = Arc::<RwLock<Restrictions>>::default();
        let shadow = Self {
            client: client.clone(),
            cron_jobs: cron_jobs.store(),
            jobs: jobs.store(),
            queue,
            since: clock.now(),
            stalls: Stalls::new(clock.now()),
            clock,
            sums: Sums::supposing(what_if, &flags.seed),
            flags,
            sights,
            leases: Arc::clone(&leases),
            restrictions: Arc::clone(&restrictions),
            read: CancellationToken::new(),
            eyes,
            known: HashMap::new(),
            metrics,
            until: None,
            file: None,
            _stop: stop.clone().drop_guard(),
        };
        tokio::spawn(cron_jobs.run(stop.clone()));
        tokio::spawn(jobs.run(stop.clone()));
        let (client, namespace) = (client.clone(), namespace.map(str::to_owned));
        let (queue, cron_jobs, read_once) = (shadow.queue.clone(), Arc::clone(&shadow.cron_jobs), shadow.read.clone());
        let reading = async move {
            loop {
                *leases.write() = read_leases(&client).await;
                let read = Restrictions::read(&client, namespace.as_deref()).await;
                let read = read.or_last(&restrictions.read());
                if *restrictions.read() != read {
                    *restrictions.write() = read;
                    cron_jobs.list().iter().for_each(|cron_job| queue.add(cron_job.object_name().clone()));
                }
                read_once.cancel();
                sleep(PERIOD).await;
            }
        };
        tokio::spawn(async move { stop.run_until_cancelled(reading).await });
        shadow
    }

    /// Compares for `lasts`, or until `stop`. After that time, slots without a Job are waited for, three minutes at most; not after
    /// `stop`.
    ///
    /// # Errors
    /// When the first lists are refused.
    pub async fn run(
        mut self,
        lasts: Option<TimeDelta>,
        stop: &CancellationToken,
        show: &mut (dyn FnMut(&Progress) + Send),
    ) -> Result<(Report, bool), ShadowError> {
        if stop.run_until_cancelled(self.sync(show)).await.transpose()?.is_none() {
            return Ok(self.report());
        }
        self.since = self.clock.now();
        self.until = lasts.and_then(|lasts| self.since.checked_add_signed(lasts));
        self.work(stop, show).await;
        self.end();
        if self.eyes.see(&self.cron_jobs, &self.jobs).is_some() {
            refusals::take_back(&self.client, &mut self.sums).await;
        }
        self.write_file(true);
        Ok(self.report())
    }

    /// Waits until the first lists are complete.
    async fn sync(&self, show: &mut (dyn FnMut(&Progress) + Send)) -> Result<(), ShadowError> {
        let synced = async {
            self.cron_jobs.wait_for_cache_sync().await;
            self.jobs.wait_for_cache_sync().await;
            // They say which controller is in charge, and of what.
            self.read.cancelled().await;
        };
        let mut synced = std::pin::pin!(synced);
        let mut ticks = interval(SHOWN);
        loop {
            tokio::select! {
                () = &mut synced => return Ok(()),
                _ = ticks.tick() => {
                    if let Some(refusal) = self.eyes.refusal() {
                        return Err(ShadowError::Refused(refusal));
                    }
                    show(&self.progress(None));
                }
            }
        }
    }

    /// Works on keys until the end, and then until each slot has its Job or is missed.
    async fn work(&mut self, stop: &CancellationToken, show: &mut (dyn FnMut(&Progress) + Send)) {
        let mut ticks = interval(SHOWN);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                _ = ticks.tick() => {
                    show(&self.progress(self.until));
                    self.write_file(false);
                    let now = self.clock.now();
                    self.stalls.tick(now, self.queue.is_empty());
                    let is_over = |end| now >= end && (!self.awaits() || now - end >= MISSED_AFTER);
                    if self.until.is_some_and(is_over) {
                        return;
                    }
                }
                key = self.queue.get() => {
                    let Some(key) = key else { return };
                    self.look_at(&key);
                    self.queue.done(&key);
                }
            }
        }
    }

    /// Ends the comparison; slots that have been without a Job for three minutes are missed. If the watch has a gap now, they are not
    /// seen, and neither are those that were due in it.
    fn end(&mut self) {
        let now = self.clock.now();
        let sees = self.eyes.see(&self.cron_jobs, &self.jobs).is_some();
        let end = self.until.map_or(now, |until| until.min(now));
        for name in self.known.keys().cloned().collect::<Vec<_>>() {
            if let Some(known) = self.known.get_mut(&name) {
                if sees {
                    known.track.pass(known.cron_job.status.last_schedule_time, now);
                } else {
                    known.track.skip_until(end, &known.cron_job, &known.cron_job, self.flags.zone);
                }
            }
            self.sum_up(&name);
        }
    }

    /// Writes the report into its file, at the end and from time to time.
    fn write_file(&mut self, is_end: bool) {
        if let Some(mut file) = self.file.take() {
            if is_end || file.is_due() {
                file.write(&self.report().0);
            }
            self.file = Some(file);
        }
    }

    fn report(&self) -> (Report, bool) {
        let now = self.clock.now();
        let until = self.until.map_or(now, |until| until.min(now));
        let report = self.sums.report(self.cron_jobs.len(), self.open(), self.since, until);
        let report = report.without_namespaces(self.restrictions.read().unread.clone());
        let is_blind = self.eyes.see(&self.cron_jobs, &self.jobs).is_none();
        let trouble = is_blind.then(|| self.eyes.trouble().unwrap_or_default());
        (report.blind_at_the_end(trouble.as_deref()), self.sums.is_same())
    }

    /// Whether a slot has no Job yet, or a Job waits for its slot.
    fn awaits(&self) -> bool {
        self.known.values().any(|known| known.track.awaits())
    }

    fn open(&self) -> usize {
        self.known.values().map(|known| known.track.open()).sum()
    }

    fn progress(&self, end: Option<DateTime<Utc>>) -> Progress {
        let (passed, total) = (self.clock.now() - self.since, end.map(|end| end - self.since));
        let late = self.sums.late.quantiles();
        Progress {
            passed,
            total,
            is_synced: self.cron_jobs.has_synced() && self.jobs.has_synced(),
            cron_jobs: self.cron_jobs.len(),
            slots: self.sums.slots(),
            agreement: self.sums.agreement(),
            missed: self.sums.missed.len(),
            twice: self.sums.twice.len(),
            differs: self.sums.differs.len(),
            late: late.p99,
            trouble: self.eyes.trouble(),
        }
    }

    /// Looks at a CronJob.
    fn look_at(&mut self, key: &ObjectName) {
        let now = self.clock.now();
        let Some(watched) = self.cron_jobs.get(key) else { return self.forget(key, now) };
        let Some(since) = self.eyes.see(&self.cron_jobs, &self.jobs) else {
            self.queue.add_at(key.clone(), now + GAP_PERIOD);
            return;
        };
        let (in_charge, cron_job) = watched.seen(&self.leases.read());
        let mut cron_job = self.restrictions.read().applied(cron_job, in_charge);
        if in_charge == InCharge::NotManaged {
            // It is suspended for the in-tree controller, and this one leaves it out.
            Arc::make_mut(&mut cron_job).spec.suspend = true;
        }
        let is_apart = is_apart(&watched, in_charge);
        let jobs: Vec<Arc<Job>> =
            self.jobs.by_controller(&cron_job.uid).into_iter().filter(|job| job.is_child_of(&cron_job)).collect();
        let mut sights = self.sights.lock().remove(key).unwrap_or_default();
        let is_full = sights.len() == MOST_SIGHTS;
        sights.retain(|sight| sight.job.is_child_of(&cron_job));
        let (sights, after): (Vec<Sight>, Vec<Sight>) =
            sights.into_iter().partition(|sight| self.is_compared(&sight.job, &cron_job));
        let zone = self.flags.zone;
        let known = self.known.remove(key).filter(|known| known.track.uid == cron_job.uid);
        let mut known = known.unwrap_or_else(|| Known::new(&cron_job, in_charge, &jobs, &sights, since));
        let sights = known.track.due(sights, &cron_job, now);
        known.track.is_apart = is_apart;
        let is_changed = known.keep_up(&cron_job, in_charge, since, zone, now);
        let in_tree = (in_charge == InCharge::InTree).then(|| Arc::clone(&known.cron_job));
        known.track.in_tree.look(in_tree, &cron_job, zone, now);
        let (earlier, earlier_jobs) = known.track.before(&cron_job, jobs.clone(), &sights);
        let ran = earlier_jobs.iter().filter(|job| is_running(job)).count();
        let verdict = self.verdict(&earlier, earlier_jobs, &sights, now);
        let is_compared = |until| verdict_slot(verdict).is_none_or(|slot| cron_job.due(slot) <= until);
        let starts = self.until.is_none_or(is_compared)
            && known.track.judge(verdict, &cron_job, zone, [self.stalls.ready(now), now]);
        if starts && !is_apart {
            self.sums.supposed.may_start(ran);
        }
        let is_beside =
            |job: &&Arc<Job>| is_running(job) && self.is_compared(job, &cron_job) && !known.track.is_early(job);
        let running: Vec<&Arc<Job>> = jobs.iter().filter(is_beside).collect();
        for sight in &sights {
            known.track.see(sight, &running, &cron_job, zone, now);
        }
        for slot in after.iter().filter_map(|sight| slot_for(&sight.job)) {
            known.track.overtake(slot, &cron_job);
        }
        for job in after.iter().chain(&sights).map(|sight| &sight.job) {
            self.sums.unannotated += u64::from(known.track.take_unannotated(job, &cron_job));
        }
        if is_full {
            // There may have been more.
            known.track.lose_open();
        }
        if !sights.is_empty() && known.track.open() > 0 {
            let (earlier, jobs) = known.track.before(&cron_job, jobs.clone(), &[]);
            known.track.judge_again(self.verdict(&earlier, jobs, &[], now), &sights);
        }
        known.track.look_for_overlap(&running, &cron_job, is_changed);
        known.track.pass(cron_job.status.last_schedule_time, now);
        for wrong in known.status.look(&cron_job, &jobs, known.track.started(), now) {
            if !is_apart {
                self.sums.wrong_status(key, known.track.started(), &wrong);
            }
        }
        known.cron_job = Arc::clone(&cron_job);
        if let Some(next) = known.next_look(zone, now) {
            self.queue.add_at(key.clone(), next);
        }
        self.sum_up_known(key, &mut known);
        self.known.insert(key.clone(), known);
    }

    /// Whether the slot of a Job is compared: not after the end.
    fn is_compared(&self, job: &Job, cron_job: &CronJob) -> bool {
        self.until.is_none_or(|until| slot_for(job).is_none_or(|slot| cron_job.due(slot) <= until))
    }

    /// What this controller would do now.
    fn verdict(&self, cron_job: &Arc<CronJob>, mut jobs: Vec<Arc<Job>>, new: &[Sight], now: DateTime<Utc>) -> Verdict {
        let rehearsal = Rehearsal::of(cron_job, &jobs, self.flags.zone, now);
        // Another owner's Job may have the name.
        let taken = rehearsal.start.as_ref().and_then(|(name, _)| self.jobs.get(name));
        let is_new = |taken: &Arc<Job>| new.iter().any(|sight| sight.job.uid == taken.uid);
        match taken.filter(|taken| !taken.is_child_of(cron_job) && !is_new(taken)) {
            None => rehearsal.settlement.verdict,
            Some(taken) => {
                jobs.push(taken);
                Rehearsal::of(cron_job, &jobs, self.flags.zone, now).settlement.verdict
            }
        }
    }

    /// Drops what is known of a CronJob that is gone. Its Jobs may have been shown before it.
    fn forget(&mut self, key: &ObjectName, now: DateTime<Utc>) {
        if let Some(known) = self.known.get_mut(key) {
            known.track.lose_open();
            self.sum_up(key);
            self.known.remove(key);
        }
        let mut sights = self.sights.lock();
        let is_new = |sight: &Sight| now - sight.at < OWNER_COMES;
        if sights.get(key).is_some_and(|sights| sights.iter().any(is_new)) {
            self.queue.add_at(key.clone(), now + TimeDelta::seconds(1));
        } else {
            sights.remove(key);
            self.queue.remove_timers(key);
        }
    }

    fn sum_up(&mut self, key: &ObjectName) {
        if let Some(mut known) = self.known.remove(key) {
            self.sum_up_known(key, &mut known);
            self.known.insert(key.clone(), known);
        }
    }

    fn sum_up_known(&mut self, key: &ObjectName, known: &mut Known) {
        for change in known.track.take_changes() {
            self.sums.apply(key, &change);
            if let Some(metrics) = self.metrics.as_ref().filter(|_| !change.is_apart) {
                metrics.observe(&change);
            }
        }
        if let Some(metrics) = &self.metrics {
            metrics.set(&self.sums);
        }
    }
}

impl Known {
    fn new(
        cron_job: &Arc<CronJob>,
        in_charge: InCharge,
        jobs: &[Arc<Job>],
        sights: &[Sight],
        since: DateTime<Utc>,
    ) -> Self {
        let is_old = |job: &&Arc<Job>| !sights.iter().any(|sight| sight.job.uid == job.uid);
        let old: Vec<Arc<Job>> = jobs.iter().filter(is_old).cloned().collect();
        // All slots of a CronJob that was created meanwhile are seen.
        let since = since.max(cron_job.creation_timestamp);
        Self {
            track: Track::new(cron_job, &old, since),
            status: StatusWatch::default(),
            cron_job: Arc::clone(cron_job),
            in_charge,
        }
    }

    /// When the CronJob has to be looked at again.
    fn next_look(&self, zone: Zone, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let cron_job = &self.cron_job;
        let next_slot = (!cron_job.deleting && !cron_job.spec.suspend).then(|| cron_job.next_due(zone, now)).flatten();
        [next_slot, self.track.next_look(cron_job), self.status.next_look()].into_iter().flatten().min()
    }

    /// Compares nothing up to the end of a gap, and around a change of the CronJob. Returns whether it was changed.
    fn keep_up(
        &mut self,
        cron_job: &Arc<CronJob>,
        in_charge: InCharge,
        since: DateTime<Utc>,
        zone: Zone,
        now: DateTime<Utc>,
    ) -> bool {
        if self.track.is_before(cron_job.nominal(since.max(cron_job.creation_timestamp))) {
            self.track.skip_until(since, &self.cron_job, cron_job, zone);
            self.status.reset();
        }
        let is_restricted_otherwise = self.cron_job.restriction() != cron_job.restriction()
            || std::mem::replace(&mut self.in_charge, in_charge) != in_charge && !self.cron_job.same_policies(cron_job);
        if is_restricted_otherwise {
            // It may have been changed at any time since it was read before, and so may the leases.
            self.track.doubt(now - DOUBTED);
        }
        let is_changed = self.cron_job.spec != cron_job.spec
            || !self.cron_job.same_policies(cron_job)
            || is_restricted_otherwise
            || self.cron_job.deleting != cron_job.deleting;
        if is_changed {
            self.track.skip_until(now, &self.cron_job, cron_job, zone);
            self.track.lose_early(cron_job);
        }
        is_changed
    }
}

/// Whether it has annotations that its controller does not read.
fn is_apart(watched: &Watched, in_charge: InCharge) -> bool {
    in_charge == InCharge::InTree && watched.cron_job.policies.is_some()
}

/// The slot that a verdict is about.
fn verdict_slot(verdict: Verdict) -> Option<DateTime<Utc>> {
    match verdict {
        Verdict::Started { slot, .. } => Some(slot),
        Verdict::Skipped(skip) => skip.slot(),
        Verdict::Open | Verdict::NothingDue => None,
    }
}

/// Whether it is an unfinished Job of a slot.
fn is_running(job: &Job) -> bool {
    job.finished.is_none() && !job.deleting && slot_for(job).is_some()
}
