//! Faults that belong together: a takeover while a watch is silent, refusals of one verb for minutes, operators, a machine that
//! sleeps, and a rollback to the in-tree controller for a while, which is a hand-over of all CronJobs while no replica runs.
//!
//! Each comes from a sequence of random numbers of its own, so that adding one leaves the rest of the world as it was.

use cronjob_controller::api::Manage;
use cronjob_controller::api::policy::AFTER_CHANGE;

use crate::faults::{self, Fault, FaultKind as F};
use crate::limits;
use crate::policies;
use crate::rng::Rng;
use crate::scenario::{self, Action, Edit, MINUTE, Millis, NAMESPACES, SECOND, Scenario};

/// The numbers of the faults of a takeover.
pub const TAKEOVER: std::ops::Range<u64> = 300..340;

impl Scenario {
    /// Adds all of them.
    pub fn add_sequences(&mut self) {
        let seed = self.seed;
        self.take_over(&mut Rng::fork(seed, "takeover"));
        self.refuse_verbs(&mut Rng::fork(seed, "verbs"));
        self.operate(&mut Rng::fork(seed, "operators"));
        self.wait_after_changes(&mut Rng::fork(seed, "changes"));
        self.sleep(&mut Rng::fork(seed, "sleep"));
        self.meddle(&mut Rng::fork(seed, "people"));
        self.go_away(&mut Rng::fork(seed, "outage"));
        self.only_refuse(&mut Rng::fork(seed, "only refusals"));
        self.backfill(&mut Rng::fork(seed, "backfill"));
        self.roll_back(&mut Rng::fork(seed, "rollback"));
        self.restore(&mut Rng::fork(seed, "restore"));
        self.stand_still(&mut Rng::fork(seed, "standstill"));
        self.switch(&mut Rng::fork(seed, "switch"));
    }

    /// In few worlds, no other fault hides how long a CronJob waits after a refusal: creates are refused for minutes, for a reason
    /// of their namespace, and then for one of their own, so that each is tried at least once more.
    fn only_refuse(&mut self, rng: &mut Rng) {
        let is_drawn = rng.percent(8) || faults::is_everywhere("ONLY_REFUSALS");
        if !is_drawn || self.loses_takeover(|_| false) {
            return;
        }
        self.faults.retain(|fault| fault.kind.is_refusal() && fault.kind != F::AdmissionDenies);
        let has_policies = self.controller_kind.counted_from.is_some();
        for cron_job in &mut self.cron_jobs {
            if has_policies && rng.percent(40) {
                limits::leave_late_ones_out(rng, cron_job);
            } else if rng.percent(50) {
                // With a slot each minute, the next one comes before a wait is too long.
                cron_job.spec.schedule = (*rng.pick(&["*/4 * * * *", "*/5 * * * *"])).to_owned();
            }
        }
        for (number, namespace) in NAMESPACES.iter().enumerate() {
            let at = self.moment(rng, 6 * MINUTE);
            let then = at + rng.range(120, 240) * SECOND;
            let (number, until) = (700 + 2 * number as u64, then + rng.range(31, 50) * SECOND);
            let reasons =
                [(number, (at, then), *rng.pick(&[403, 409])), (number + 1, (then, until), *rng.pick(&[422, 404]))];
            for (number, time, code) in reasons {
                let fault = Fault::on(number, 0, F::CreateRefused, time, code);
                self.faults.push(Fault { namespace: Some(namespace), ..fault });
            }
        }
    }

    /// People do several things with one CronJob, one soon after the other.
    fn meddle(&mut self, rng: &mut Rng) {
        let has_policies = self.cron_jobs.iter().any(|cron_job| !cron_job.policies.is_empty());
        if rng.percent(60) {
            return;
        }
        for cron_job in 0..self.cron_jobs.len() {
            if rng.percent(60) {
                continue;
            }
            let mut at = rng.range(20 * SECOND, self.active);
            for _ in 0..rng.range(2, 5) {
                let action = self.deed(rng, has_policies);
                self.edits.push(Edit { at, cron_job, action });
                at += *rng.pick(&[0, 1, 200, 2 * SECOND, 30 * SECOND, 70 * SECOND]);
            }
        }
    }

    /// What people do with a CronJob.
    pub fn deed(&self, rng: &mut Rng, has_policies: bool) -> Action {
        let timing = Action::Timing(policies::change(rng, self.start));
        let limited = Action::Limited(limits::change(rng));
        let policies = if has_policies { 25 } else { 0 };
        let policy = Action::Policy(*rng.pick(&["Allow", "Forbid", "Replace"]));
        let limits = Action::Limits(rng.range(0, 3), rng.range(0, 3));
        let any = match scenario::action(rng, self.start, self.controller_kind) {
            // Nobody would mend it.
            Action::ReadsAs(_) => Action::DeleteFailures,
            any => any,
        };
        rng.weighted(&[
            (25, any),
            (20, Action::ManualJob),
            (15, Action::DeleteJob),
            (12, Action::Suspend(true)),
            (18, Action::Suspend(false)),
            (8, policy),
            (8, limits),
            (10, Action::Revert),
            (policies, timing),
            (policies, limited),
        ])
    }

    /// The leader crashes or hangs just before or after it starts Jobs, and the watch of Jobs, or that of CronJobs or Namespaces,
    /// shows the others nothing from before until after they took over. Some operators delete the lease then.
    fn take_over(&mut self, rng: &mut Rng) {
        if rng.percent(60) && !faults::is_everywhere("TAKEOVER") {
            return;
        }
        let at = self.before_a_minute(rng, 45 * SECOND);
        let until = at + rng.range(45, 170) * SECOND;
        // Half of the leaders cannot write for a while what they started, so that their successors have a newer slot to start.
        let is_owed = rng.percent(50);
        let (at, at_silent) = (if is_owed { at + rng.range(3, 30) * SECOND } else { at }, at);
        // Whoever writes in these seconds leads.
        let soon = at + if is_owed { rng.range(10, 32) } else { rng.range(4, 12) } * SECOND;
        if is_owed {
            for (number, namespace) in NAMESPACES.iter().enumerate() {
                let fault = Fault::on(330 + number as u64, 0, F::StatusRefused, (at_silent, soon), 403);
                self.faults.push(Fault { namespace: Some(namespace), ..fault });
            }
        }
        let kind = rng.weighted(&[(75, F::JobsSilent), (15, F::CronJobsSilent), (10, F::NamespacesSilent)]);
        self.on_replicas(rng, 300, kind, (at_silent, until), 100);
        let (crash, amount) = match is_owed {
            true => rng.weighted(&[(80, (F::CrashBefore, 0)), (20, (F::Freeze, 0))]),
            false => rng.weighted(&[(65, (F::CrashAfter, 1)), (20, (F::CrashBefore, 3)), (15, (F::Freeze, 0))]),
        };
        let long = if crash == F::Freeze { rng.range(20, 60) * SECOND } else { 0 };
        for replica in 0..self.replicas {
            // Of the frozen ones, only one: with all of them, none would take over.
            if crash != F::Freeze || replica == 0 {
                let amount = rng.range(1, amount + 3);
                self.faults.push(Fault::on(310, replica, crash, (at, soon + long), amount));
            }
        }
        if crash != F::Freeze && rng.percent(30) {
            self.faults.push(Fault::on(320, 0, F::LeaseDeleted, (soon, soon + SECOND), 0));
        }
    }

    /// Whether a world that is to have a takeover would lose a part of it, if only some faults were kept.
    pub fn loses_takeover(&self, is_kept: impl Fn(&Fault) -> bool) -> bool {
        faults::is_everywhere("TAKEOVER")
            && self.faults.iter().any(|fault| TAKEOVER.contains(&fault.number) && !is_kept(fault))
    }

    /// One verb is refused for minutes, for all CronJobs of a namespace or for one, with one code after the other. Some of
    /// these CronJobs keep little history.
    fn refuse_verbs(&mut self, rng: &mut Rng) {
        if rng.percent(70) && !faults::is_everywhere("VERBS") {
            return;
        }
        let victim = if rng.percent(50) { 0 } else { 1 + rng.range(0, self.cron_jobs.len() as u64) };
        let namespace = match victim {
            0 => *rng.pick(&NAMESPACES),
            place => self.cron_jobs[usize::try_from(place - 1).unwrap()].namespace,
        };
        self.keep_little(rng, namespace, 40, 3);
        let kinds = [
            (35, F::CreateRefused),
            (20, F::DeleteRefused),
            (15, F::StatusRefused),
            (15, F::LeaseRefused),
            (15, F::ReadRefused),
        ];
        // Of one verb, or of one after the other.
        let only = rng.percent(50).then(|| rng.weighted(&kinds));
        let mut at = self.moment(rng, 3 * MINUTE);
        for number in 400..400 + rng.range(1, 5) {
            let until = (at + rng.range(20, 120) * SECOND).min(self.active - 30 * SECOND);
            let kind = only.unwrap_or_else(|| rng.weighted(&kinds));
            // A deletion that is answered 404 has nothing to delete, and a read that is has found nothing.
            let codes = match kind {
                F::ReadRefused => [403, 403, 500, 503],
                F::DeleteRefused => [403, 409, 422, 403],
                _ => [403, 409, 422, 404],
            };
            let code = *rng.pick(&codes);
            if kind == F::LeaseRefused {
                let replica = usize::try_from(rng.range(0, self.replicas as u64)).unwrap();
                self.faults.push(Fault::on(number, replica, kind, (at, until), code));
            } else {
                let fault = Fault::on(number, 0, kind, (at, until), code + 1000 * victim);
                self.faults.push(Fault { namespace: Some(namespace), ..fault });
            }
            at = until - rng.range(0, 3) * SECOND;
            if at + 2 * MINUTE > self.active {
                return;
            }
        }
    }

    /// Operators stop all replicas, edit while none runs, and start them; or restart one after the other.
    fn operate(&mut self, rng: &mut Rng) {
        if rng.percent(65) && !faults::is_everywhere("OPERATORS") {
            return;
        }
        let at = self.moment(rng, 3 * MINUTE);
        if rng.percent(30) {
            for replica in 0..self.replicas {
                let at = at + replica as u64 * rng.range(1, 20) * SECOND;
                self.faults.push(Fault::on(500, replica, F::Restart, (at, at + SECOND), 100));
            }
            return;
        }
        let until = at + rng.range(20, 170) * SECOND;
        let is_killed = rng.range(0, 2);
        self.on_replicas(rng, 500, F::Outage, (at, until), is_killed);
        if rng.percent(30) {
            self.faults.push(Fault::on(520, 0, F::LeaseDeleted, (at + 5 * SECOND, at + 6 * SECOND), 0));
        }
        for cron_job in 0..self.cron_jobs.len() {
            let steps = rng.weighted(&[
                (40, vec![]),
                (35, vec![Action::Suspend(true), Action::Suspend(false)]),
                (8, vec![Action::Suspend(true)]),
                (8, vec![Action::ManualJob, Action::DeleteJob]),
                (9, vec![Action::DeleteJob]),
            ]);
            let mut when = at + 3 * SECOND;
            for action in steps {
                when = rng.range(when, (until - SECOND).max(when + 1));
                self.edits.push(Edit { at: when, cron_job, action });
            }
        }
    }

    /// Operators go back to the in-tree controller and come again: all CronJobs are taken back, and no replica runs from soon after
    /// that until shortly before the handover.
    fn roll_back(&mut self, rng: &mut Rng) {
        if self.manage != Manage::Annotated || rng.percent(85) {
            return;
        }
        let at = self.moment(rng, 6 * MINUTE);
        let again = rng.range(60, 240) * SECOND;
        // A controller that does harm is stopped first.
        let stopped = if rng.percent(30) { at - rng.range(1, 10) * SECOND } else { at + rng.range(0, 20) * SECOND };
        let until = at + again - rng.range(0, 20) * SECOND;
        for cron_job in 0..self.cron_jobs.len() {
            let later = rng.range(0, 2 * SECOND);
            self.edits.push(Edit { at: at + later, cron_job, action: Action::GiveBack(again) });
        }
        let is_orderly = rng.range(0, 2);
        self.on_replicas(rng, 850, F::Outage, (stopped, until), is_orderly);
    }

    /// Of the CronJobs that are suspended and resumed while no controller runs, some start no slot from before the resume.
    fn wait_after_changes(&mut self, rng: &mut Rng) {
        let outage = self.faults.iter().find(|fault| fault.kind == F::Outage).map(|fault| (fault.at, fault.until));
        let Some((at, until)) = outage.filter(|_| self.controller_kind.counted_from.is_some()) else { return };
        for edit in &self.edits {
            let is_unseen = at <= edit.at && edit.at < until && matches!(edit.action, Action::Suspend(true));
            if is_unseen && rng.percent(60) {
                self.cron_jobs[edit.cron_job].policies.insert(AFTER_CHANGE, Some("wait".to_owned()));
            }
        }
    }

    /// A machine sleeps: it comes back with its clock ahead, which is set right soon.
    fn sleep(&mut self, rng: &mut Rng) {
        if rng.percent(85) {
            return;
        }
        let (short, long) = (rng.range(1, 10), rng.range(60, 300));
        let at = self.moment(rng, 5 * MINUTE + MINUTE);
        let until = at + rng.weighted(&[(50, short), (50, long)]) * SECOND;
        let replica = usize::try_from(rng.range(0, self.replicas as u64)).unwrap();
        self.faults.push(Fault::on(600, replica, F::Sleep, (at, until), rng.range(60, 600)));
    }

    /// A moment after which the faults last for at least `left`.
    fn moment(&self, rng: &mut Rng, left: Millis) -> Millis {
        rng.range(20 * SECOND, self.active - left)
    }

    /// A moment shortly before a minute of the wall clock, with at least three minutes of faults left.
    fn before_a_minute(&self, rng: &mut Rng, earliest: Millis) -> Millis {
        let begin = rng.range(earliest, self.active - 4 * MINUTE);
        let start = u64::try_from(self.start.timestamp_millis()).unwrap();
        begin + (MINUTE - (start + begin) % MINUTE).saturating_sub(rng.range(1, 3000))
    }

    /// Gives most replicas a fault, and sometimes only one.
    pub fn on_replicas(&mut self, rng: &mut Rng, first: u64, kind: F, time: (Millis, Millis), amount: u64) {
        let only = usize::try_from(rng.range(0, self.replicas as u64)).unwrap();
        let is_of_all = kind == F::Outage || rng.percent(70);
        for replica in (0..self.replicas).filter(|replica| is_of_all || *replica == only) {
            self.faults.push(Fault::on(first, replica, kind, time, amount));
        }
    }
}

impl Fault {
    /// A fault of one replica; its number follows `first` by the replica.
    fn on(first: u64, replica: usize, kind: F, (at, until): (Millis, Millis), amount: u64) -> Self {
        Self { number: first + replica as u64, at, until, replica, namespace: None, kind, amount }
    }

    /// The code of a refusal, and the place in the scenario of the CronJob that it concerns, if it is not of all.
    pub fn refusal(&self) -> (u16, Option<usize>) {
        let place = usize::try_from(self.amount / 1000).unwrap();
        (u16::try_from(self.amount % 1000).unwrap(), place.checked_sub(1))
    }
}
