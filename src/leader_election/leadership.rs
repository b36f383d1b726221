//! The right to write, as a handle that expires by itself.
//!
//! Guarantees: a [`Leadership`] is valid only while no other process that follows the protocol can hold the lease. It expires
//! at its deadline without further action, also when the elector is stopped, starved or dropped. A revoked handle never
//! becomes valid again. What [`TimeLeft`] says of creates, the lease says to whoever takes it over.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use apimachinery::clock::SharedClock;
use parking_lot::Mutex;
use tokio::sync::{Notify, SetOnce};
use tokio::time::{Instant, timeout_at};

/// How much longer than is asked for creates are announced to stay open, so that one renewal serves all that ask meanwhile.
const ANNOUNCED_AHEAD: Duration = Duration::from_secs(6);

/// The state that the elector shares with its handles.
#[derive(Debug)]
struct State {
    /// Writes may begin before this moment. `None`: without leader election, writes may always begin.
    fence: Option<Instant>,
    /// The moment from which others may take the lease; `None` while this process does not hold it.
    lease_end: Option<Instant>,
    /// Says how long it has been; `None` without leader election.
    clock: Option<SharedClock>,
    revoked: bool,
    takeover: Takeover,
    signs: Option<SignsOfLife>,
    /// Until when creates shall be allowed to stay open.
    wanted: Option<Instant>,
    /// The last write of the lease that succeeded.
    term: Option<Term>,
}

impl State {
    /// How long the machine has been suspended since the last write began. All moments come earlier by that.
    fn slept(&self) -> Duration {
        let now = self.clock.as_ref().map_or(Duration::ZERO, |clock| clock.suspended());
        self.term.map_or(Duration::ZERO, |term| now.saturating_sub(term.suspended))
    }
}

/// When the work under a lease last showed a sign of life, if it shows any.
#[derive(Clone)]
struct SignsOfLife(Arc<dyn Fn() -> Option<Instant> + Send + Sync>);

impl fmt::Debug for SignsOfLife {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignsOfLife")
    }
}

/// How the previous holder left the lease, the worst last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Takeover {
    /// There was none: this process created the lease, or runs without leader election.
    #[default]
    First,
    /// The holder released it after its writes had ended.
    Released,
    /// The holder let it expire, and creates that it had sent may be committed until this moment.
    RanOut(Instant),
    /// The same, and the lease does not say until when.
    RanOutInSilence,
}

/// How long a create may take that begins now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeLeft {
    /// Until the lease ends, or soon after the last write where it is short, which it then says.
    pub usual: Duration,
    /// Until the end of what the lease says of open creates; at least as long.
    pub announced: Duration,
}

impl TimeLeft {
    pub(crate) const UNLIMITED: Self = Self { usual: Duration::MAX, announced: Duration::MAX };
}

/// What a write of the lease promises.
#[derive(Debug, Clone, Copy)]
pub(super) struct Term {
    /// When it began, and how long the machine had been suspended by then.
    pub started: Instant,
    pub suspended: Duration,
    /// Until when usual creates may stay open, and until when announced ones.
    pub usual: Instant,
    pub announced: Instant,
}

/// A cheap handle on this process's leadership, to be checked before each write.
///
/// The fence lies one renew deadline after the *start* of the last successful renewal. Other candidates take over one lease
/// duration after it at the earliest. A write that begins before [`Leadership::deadline`] and must not be committed under
/// another leader has [`Leadership::time_left`] for that.
///
/// The time for which the machine is suspended counts, although the monotonic clock stands still meanwhile.
#[derive(Debug, Clone)]
pub struct Leadership(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Tells the elector that creates want to be announced.
    wants: Notify,
    /// Tells who waits for that of each renewal, and of the end.
    renewed: Notify,
}

impl Leadership {
    /// Leadership without an election (`--leader-elect=false`): always valid.
    pub fn unconditional() -> Self {
        Self::with_fence(None, None)
    }

    /// A leadership that is not held yet.
    pub(super) fn none(clock: SharedClock) -> Self {
        Self::with_fence(Some(Instant::now()), Some(clock))
    }

    fn with_fence(fence: Option<Instant>, clock: Option<SharedClock>) -> Self {
        let state = Mutex::new(State {
            fence,
            lease_end: None,
            clock,
            revoked: false,
            takeover: Takeover::First,
            signs: None,
            wanted: None,
            term: None,
        });
        Self(Arc::new(Shared { state, wants: Notify::new(), renewed: Notify::new() }))
    }

    /// One that ends after these times.
    #[cfg(test)]
    pub(crate) fn ending_in(usual: Duration, announced: Duration) -> Self {
        let started = Instant::now();
        let leadership = Self::with_fence(Some(started), None);
        let [usual, announced] = [usual, announced].map(|length| started + length);
        leadership.extend(usual, usual, Term { started, suspended: Duration::ZERO, usual, announced });
        leadership
    }

    /// The time before which writes may begin; in the past when leadership was lost or never held.
    pub fn deadline(&self) -> Instant {
        // "Never" needs an instant; a century is far enough and cannot overflow.
        const NEVER: Duration = Duration::from_secs(100 * 366 * 86_400);
        let state = self.0.state.lock();
        let Some(fence) = state.fence else { return Instant::now() + NEVER };
        fence.checked_sub(state.slept()).unwrap_or_else(Instant::now)
    }

    /// Whether a write may begin now.
    pub fn is_valid_now(&self) -> bool {
        self.time_left().is_some()
    }

    /// How long writes may take, if one may begin now; unlimited without an election.
    pub fn time_left(&self) -> Option<TimeLeft> {
        let state = self.0.state.lock();
        let Some(fence) = state.fence else { return Some(TimeLeft::UNLIMITED) };
        let now = Instant::now() + state.slept();
        let term = state.term.filter(|_| now < fence)?;
        let [usual, announced] = [term.usual, term.announced].map(|end| end.saturating_duration_since(now));
        Some(TimeLeft { usual, announced })
    }

    /// Waits until the lease says that creates may stay open for `length` from now, or until no write may begin any more.
    pub async fn announce(&self, length: Duration) {
        loop {
            let renewed = self.0.renewed.notified();
            if self.time_left().is_none_or(|left| left.announced >= length) {
                return;
            }
            self.wants_open(Instant::now() + length + ANNOUNCED_AHEAD);
            self.0.wants.notify_one();
            let _ = timeout_at(self.deadline(), renewed).await;
        }
    }

    /// The lease shall say that creates may stay open until `end`, from the next renewal on.
    pub(super) fn wants_open(&self, end: Instant) {
        let mut state = self.0.state.lock();
        state.wanted = state.wanted.max(Some(end));
    }

    /// Until when the lease shall say that creates may stay open.
    pub(super) fn wanted(&self) -> Option<Instant> {
        self.0.state.lock().wanted
    }

    /// Waits until something wants to be announced.
    pub(super) async fn wants(&self) {
        self.0.wants.notified().await;
    }

    /// Whether other processes can lead after this one; false without an election.
    pub fn is_shared(&self) -> bool {
        self.0.state.lock().fence.is_some()
    }

    /// How the previous holder left the lease.
    pub fn takeover(&self) -> Takeover {
        self.0.state.lock().takeover
    }

    /// Makes the renewal depend on the work under the lease: `last_sign` is when that last showed a sign of life. It must
    /// not block, nor own what has this handle. Without one for
    /// [`LONGEST_SILENCE`](super::decision::LONGEST_SILENCE) the elector stops renewing.
    pub fn depends_on(&self, last_sign: impl Fn() -> Option<Instant> + Send + Sync + 'static) {
        self.0.state.lock().signs = Some(SignsOfLife(Arc::new(last_sign)));
    }

    /// When the work under the lease last showed a sign of life; `None` if the renewal does not depend on it.
    pub(super) fn last_sign(&self) -> Option<Instant> {
        let signs = self.0.state.lock().signs.clone()?;
        (signs.0)()
    }

    /// Records how the previous holder left the lease; of several attempts without a holder in between the worst counts.
    pub(super) fn taken_over(&self, takeover: Takeover) {
        let mut state = self.0.state.lock();
        state.takeover = state.takeover.max(takeover);
    }

    /// Another process holds the lease, and passes on what was left to it.
    pub(super) fn taken_by_another(&self) {
        self.0.state.lock().takeover = Takeover::First;
    }

    /// Moves the fence after a successful write of the lease.
    pub(super) fn extend(&self, fence: Instant, lease_end: Instant, term: Term) {
        let mut state = self.0.state.lock();
        if !state.revoked {
            state.fence = Some(fence);
            state.lease_end = Some(lease_end);
            state.term = Some(term);
        }
        drop(state);
        self.0.renewed.notify_waiters();
    }

    /// Ends the right to write, for good. `holds_lease`: whether this process still holds the lease and only failed to renew
    /// it. Then the health check goes on watching the lease.
    pub(crate) fn revoke(&self, holds_lease: bool) {
        let mut state = self.0.state.lock();
        let now = Instant::now();
        state.revoked = true;
        state.fence = Some(state.fence.map_or(now, |fence| fence.min(now)));
        state.term = None;
        if !holds_lease {
            state.lease_end = None;
        }
        drop(state);
        self.0.renewed.notify_waiters();
    }

    /// The moment from which other candidates may take the lease, while this process holds it.
    pub(super) fn lease_end(&self) -> Option<Instant> {
        self.0.state.lock().lease_end
    }
}

/// Lets writes through while this process leads.
#[derive(Debug, Default)]
pub struct Gate(SetOnce<Leadership>);

impl Gate {
    /// One that is always open (`--leader-elect=false`).
    pub fn unconditional() -> Self {
        let gate = Self::default();
        gate.open(Leadership::unconditional());
        gate
    }

    /// This process leads from now on; the handle expires by itself.
    pub fn open(&self, leadership: Leadership) {
        // A process leads once: it ends when it loses the lease.
        let _ = self.0.set(leadership);
    }

    /// Waits until this process leads for the first time.
    pub async fn opened(&self) {
        self.0.wait().await;
    }

    /// How long writes may take, if one may begin now. Asked before each write.
    pub fn time_left(&self) -> Option<TimeLeft> {
        self.0.get().and_then(Leadership::time_left)
    }

    /// [`Leadership::announce`]; returns at once while this process does not lead.
    pub async fn announce(&self, length: Duration) {
        if let Some(leadership) = self.0.get() {
            leadership.announce(length).await;
        }
    }
}

/// The health check `leaderElection`. It fails only for a leader whose lease expired longer ago than is tolerated: a process
/// that should have ended and did not. Matches `HealthzAdaptor` in client-go's tools/leaderelection/healthzadaptor.go.
#[derive(Debug, Clone)]
pub struct HealthzAdaptor {
    leadership: Leadership,
    lease_name: String,
    timeout: Duration,
}

impl HealthzAdaptor {
    /// The name of the check; the same as upstream's.
    pub const NAME: &'static str = "leaderElection";

    pub(super) fn new(leadership: Leadership, lease_name: &str, timeout: Duration) -> Self {
        Self { leadership, lease_name: lease_name.to_owned(), timeout }
    }

    /// Passes on a standby and on a leader that renews. Matches `Check` in client-go's
    /// tools/leaderelection/leaderelection.go.
    ///
    /// # Errors
    /// When this process holds the lease and it expired more than the tolerated time ago.
    pub fn check(&self) -> Result<(), String> {
        match self.leadership.lease_end() {
            Some(end) if Instant::now() > end + self.timeout => {
                Err(format!("failed election to renew leadership on lease {}", self.lease_name))
            }
            _ => Ok(()),
        }
    }
}
