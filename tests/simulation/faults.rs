//! The kinds of faults.

use std::sync::OnceLock;

use crate::rng::Rng;
use crate::scenario::{Millis, SECOND, Scenario};

/// Whether worlds have slow admission and noisy namespaces. A create with `?timeout=` may then commit after its client
/// gave up, and other namespaces may be delayed. `SIM_NEW=1` or `SIM_NEW=0` in the environment overrides this constant.
const HAS_SLOW_ADMISSION: bool = true;

/// See [`HAS_SLOW_ADMISSION`].
pub fn has_slow_admission() -> bool {
    static VALUE: OnceLock<bool> = OnceLock::new();
    *VALUE.get_or_init(|| std::env::var("SIM_NEW").map_or(HAS_SLOW_ADMISSION, |value| value == "1"))
}

/// Whether each world that allows it has what few have otherwise, by `SIM_…=1` in the environment, so that a defect which only it shows
/// is found soon: `TAKEOVER` for a takeover that the faults around it make hard, `RESTORE` for a restore of etcd, `STANDSTILL` for a
/// machine that sleeps with everything on it, `SWITCH` to the in-tree controller and back, `OUTAGE` of the whole server, `STATUSES` or
/// `VERBS` refused for minutes, `ONLY_REFUSALS` as faults, `OPERATORS` who edit while no controller runs, `BACKFILL`s, CronJobs that
/// leave `LATE` slots out, and `NOISY` namespaces.
pub fn is_everywhere(what: &str) -> bool {
    std::env::var(format!("SIM_{what}")).is_ok_and(|value| value == "1")
}

/// One fault with a duration.
#[derive(Clone, Debug)]
pub struct Fault {
    pub number: u64,
    pub at: Millis,
    pub until: Millis,
    /// The affected replica; all of them for a fault of the server.
    pub replica: usize,
    /// The namespace whose admission of Jobs is affected.
    pub namespace: Option<&'static str>,
    pub kind: FaultKind,
    /// The percentage of requests, for faults of requests; other kinds define their own meaning.
    pub amount: u64,
}

macro_rules! fault_kinds {
    ($($kind:ident $text:literal $weight:literal,)* ; $($later:ident $later_text:literal $later_weight:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind { $($kind,)* $($later,)* }

        impl FaultKind {
            /// The faults of replicas and the server, with their weights.
            pub const ALL: &'static [(u64, FaultKind)] = &[$(($weight, FaultKind::$kind),)*];

            /// The faults of admission, and load, with their weights.
            const PRESSURE: &'static [(u64, FaultKind)] = &[$(($later_weight, FaultKind::$later),)*];

            /// For people.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$kind => $text,)* $(FaultKind::$later => $later_text,)* }
            }
        }
    };
}

fault_kinds! {
    Delay "delayed request" 4,
    DropRequest "request lost before commit" 4,
    DropReply "reply lost after commit" 6,
    Timeout "no answer, nothing committed" 3,
    TimeoutCommitted "no answer, but committed" 5,
    ConnectionError "connection error" 3,
    Conflict "409" 4,
    TooMany "429" 3,
    TooManyRetryAfter "429 with Retry-After" 3,
    Internal "500" 3,
    Unavailable "503" 3,
    Forbidden "403" 3,
    Invalid "422" 3,
    CrashBefore "crash at request k before its commit" 6,
    CrashAfter "crash at request k after its commit" 9,
    Restart "orderly restart" 3,
    Freeze "frozen and thawed" 6,
    ServerRestart "API server restart" 4,
    StaleList "stale list" 5,
    WatchCut "watches cut" 5,
    WatchPause "watches paused" 5,
    WatchSilent "watches silent" 3,
    LagCronJobs "CronJob stream lags" 5,
    LagJobs "Job stream lags" 5,
    Coalesce "watch events coalesced" 8,
    NoBookmarks "bookmarks dropped" 2,
    Compaction "history compacted" 4,
    NoStreaming "streaming lists refused" 3,
    ClockStep "clock stepped" 5,
    Poison "poisoned key" 4,
    ;
    AdmissionDenies "admission of a namespace denies" 4,
    AdmissionSilent "admission of a namespace never answers" 4,
    AdmissionSlow "slow admission of a namespace" 8,
    AdmissionLoad "admission of a namespace as slow as it has requests" 5,
    ServerLoad "server as slow as it has requests" 4,
    CreateHeld "connection lost under a create that commits later" 6,
    StatusRefused "statuses of a namespace refused for minutes" 0,
    CreateRefused "creates of Jobs refused for minutes" 0,
    DeleteRefused "deletions of Jobs refused for minutes" 0,
    LeaseRefused "lease refused for minutes" 0,
    ReadRefused "reads of an object refused for minutes" 0,
    JobsSilent "Job watch silent" 0,
    CronJobsSilent "CronJob watch silent" 0,
    NamespacesSilent "Namespace watch silent" 0,
    LeaseDeleted "lease of a dead leader deleted" 0,
    Outage "no controller runs" 0,
    Sleep "machine asleep" 0,
}

impl FaultKind {
    /// The kinds of pressure that worlds have.
    pub fn pressure() -> Vec<(u64, Self)> {
        let commits_late = |kind| matches!(kind, Self::AdmissionSlow | Self::AdmissionLoad | Self::CreateHeld);
        Self::PRESSURE.iter().copied().filter(|(_, kind)| has_slow_admission() || !commits_late(*kind)).collect()
    }

    /// Whether it affects only the admission of Jobs in one namespace.
    pub fn is_of_a_namespace(self) -> bool {
        use FaultKind as K;
        matches!(self, K::AdmissionDenies | K::AdmissionSilent | K::AdmissionSlow | K::AdmissionLoad | K::CreateHeld)
    }
}

impl Fault {
    pub fn generate(rng: &mut Rng, number: u64, scenario: &Scenario, active: Millis) -> Self {
        use FaultKind as K;
        let kind = rng.weighted(K::ALL);
        // Many begin just before a minute, when they can do most harm.
        let begin = rng.range(10 * SECOND, active - 60 * SECOND);
        let to_minute =
            60 * SECOND - (u64::try_from(scenario.start.timestamp_millis()).unwrap() + begin) % (60 * SECOND);
        let at = if rng.percent(60) { begin + to_minute.saturating_sub(rng.range(1, 3000)) } else { begin };
        let long = match kind {
            K::Freeze => rng.range(3, 50),
            K::WatchPause | K::LagJobs | K::LagCronJobs => rng.range(5, 90),
            K::Coalesce => rng.range(60, 180),
            K::WatchSilent => rng.range(5, 30),
            K::ServerRestart => rng.range(1, 40),
            K::Conflict | K::Forbidden | K::Invalid => rng.range(5, 30),
            _ => rng.range(5, 60),
        };
        let amount = match kind {
            K::CrashBefore | K::CrashAfter => rng.range(1, 12),
            K::LagJobs | K::LagCronJobs => rng.range(200, 20_000),
            K::StaleList => rng.range(2, 60),
            K::ClockStep => rng.range(0, 8),
            K::Poison => rng.range(0, scenario.cron_jobs.len() as u64),
            _ => *rng.pick(&[15, 40, 80, 100]),
        };
        let replica = usize::try_from(rng.range(0, scenario.replicas as u64)).unwrap();
        Self { number, at, until: (at + long * SECOND).min(active), replica, namespace: None, kind, amount }
    }

    /// A fault of the admission of Jobs in `namespace`, or load.
    pub fn pressure(rng: &mut Rng, number: u64, namespace: &'static str, active: Millis) -> Self {
        let kind = rng.weighted(&FaultKind::pressure());
        let at = rng.range(10 * SECOND, active - 60 * SECOND);
        let until = (at + rng.range(20, 240) * SECOND).min(active);
        let namespace = kind.is_of_a_namespace().then_some(namespace);
        Self { number, at, until, replica: 0, namespace, kind, amount: Self::amount_of_pressure(rng, kind) }
    }

    /// For denials and hangs, which form they have; for held creates, the percentage; else milliseconds, for load per request in
    /// flight.
    pub fn amount_of_pressure(rng: &mut Rng, kind: FaultKind) -> u64 {
        match kind {
            FaultKind::AdmissionSlow => rng.range(5, 31) * SECOND,
            FaultKind::AdmissionLoad => *rng.pick(&[100, 400, 1500]),
            FaultKind::ServerLoad => *rng.pick(&[2, 10, 40]),
            FaultKind::CreateHeld => *rng.pick(&[30, 60]),
            _ => rng.range(0, 2),
        }
    }

    /// A refusal of all statuses in `namespace`, with one code after the other, that every replica meets and may not outlive.
    pub fn refusals(rng: &mut Rng, first: u64, namespace: &'static str, scenario: &Scenario) -> Vec<Self> {
        let mut at = rng.range(20 * SECOND, scenario.active - 180 * SECOND);
        let mut faults = Vec::new();
        for number in first..first + rng.range(1, 4) {
            let until = (at + rng.range(30, 150) * SECOND).min(scenario.active - 60 * SECOND);
            let (kind, amount) = (FaultKind::StatusRefused, *rng.pick(&[403, 404, 409, 422]));
            faults.push(Self { number, at, until, replica: 0, namespace: Some(namespace), kind, amount });
            at = until;
        }
        if rng.percent(70) {
            let at = at - rng.range(0, 20 * SECOND);
            faults.extend((0..scenario.replicas).map(|replica| {
                let number = first + 10 + replica as u64;
                Self { number, at, until: at + SECOND, replica, namespace: None, kind: FaultKind::Restart, amount: 100 }
            }));
        }
        faults
    }

    /// How far a clock is stepped, in milliseconds.
    pub fn clock_step(&self) -> i64 {
        [-90_000, -20_000, -1_500, 400, 5_000, 61_000, 600_000, 8_000_000][usize::try_from(self.amount % 8).unwrap()]
    }
}
