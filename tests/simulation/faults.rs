//! What can go wrong.

use crate::rng::Rng;
use crate::scenario::{Millis, SECOND, Scenario};

/// One thing that goes wrong, for a while.
#[derive(Clone, Debug)]
pub struct Fault {
    pub number: u64,
    pub at: Millis,
    pub until: Millis,
    /// Which replica it happens to; all where it is the server's.
    pub replica: usize,
    pub kind: FaultKind,
    /// How many of a hundred requests, where it is about requests; else what the kind makes of it.
    pub amount: u64,
}

macro_rules! fault_kinds {
    ($($kind:ident $text:literal $weight:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum FaultKind { $($kind,)* }

        impl FaultKind {
            /// All kinds, with how often they are drawn.
            pub const ALL: &'static [(u64, FaultKind)] = &[$(($weight, FaultKind::$kind),)*];

            /// For people.
            pub fn name(self) -> &'static str {
                match self { $(FaultKind::$kind => $text,)* }
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
}

impl Fault {
    pub fn generate(rng: &mut Rng, number: u64, scenario: &Scenario, active: Millis) -> Self {
        use FaultKind as K;
        let kind = rng.weighted(K::ALL);
        // Many begin just before a minute, when there is something to harm.
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
        Self { number, at, until: (at + long * SECOND).min(active), replica, kind, amount }
    }

    /// How far a clock is stepped, in milliseconds.
    pub fn clock_step(&self) -> i64 {
        [-90_000, -20_000, -1_500, 400, 5_000, 61_000, 600_000, 8_000_000][usize::try_from(self.amount % 8).unwrap()]
    }
}
