//! When keys of low priority are held back, for keys that are due and for a server that is overloaded.
//!
//! Guarantees: pure; the time is an argument. The gate closes for a time that is requested, and for keys that have come due:
//! for a time at most, and until [`AFTER_DUE`] after the last of them is done. Due keys that were handed out before it closed do
//! not keep it closed: one that hangs would do so each time. No request closes it for longer than [`LONGEST_CLOSING`] from then
//! on. It stays closed until someone calls [`Gate::open`], so that workers are woken when it opens.

use std::time::{Duration, Instant};

/// The gate outlasts the keys that are due by this: what they have caused, such as the events of watches, is still on its way.
pub(super) const AFTER_DUE: Duration = Duration::from_millis(5);

/// The longest time for which one request closes the gate.
const LONGEST_CLOSING: Duration = super::STARVATION_LIMIT;

/// The gate for keys of low priority; open at first.
#[derive(Debug, Clone, Default)]
pub(super) struct Gate {
    /// It was closed until then.
    closed_until: Option<Instant>,
    /// It was closed for due keys, until then at most.
    closed_for_due_until: Option<Instant>,
    /// How often it was closed for due keys.
    closings: u64,
    /// How many due keys are being processed that were handed out since the last closing.
    due: usize,
    /// When the last of these was done, if none is being processed.
    due_done_at: Option<Instant>,
}

impl Gate {
    /// Closes for `time` from now on; never opens sooner for that.
    pub(super) fn close(&mut self, time: Duration, now: Instant) {
        self.closed_until = self.closed_until.max(Some(now + time.min(LONGEST_CLOSING)));
    }

    /// Closes for keys that have just come due, for `time` at most.
    pub(super) fn close_for_due(&mut self, time: Duration, now: Instant) {
        if self.due_end().is_none_or(|end| end <= now) {
            (self.closed_for_due_until, self.due) = (None, 0);
            self.closings += 1;
        }
        self.due_done_at = None;
        self.closed_for_due_until = self.closed_for_due_until.max(Some(now + time.min(LONGEST_CLOSING)));
    }

    /// A due key is handed out; returns what [`Self::due_done`] takes.
    pub(super) fn due_started(&mut self) -> u64 {
        self.due += 1;
        self.due_done_at = None;
        self.closings
    }

    /// A due key is done that was handed out in that closing.
    pub(super) fn due_done(&mut self, closing: u64, now: impl FnOnce() -> Instant) {
        if closing != self.closings {
            return;
        }
        self.due -= 1;
        if self.due == 0 && self.closed_for_due_until.is_some() {
            self.due_done_at = Some(now());
        }
    }

    /// Opens if its time has come. Returns whether it was closed and is open now.
    pub(super) fn open(&mut self, now: Instant) -> bool {
        let opens = self.opens_at().is_some_and(|end| end <= now);
        if opens {
            (self.closed_until, self.closed_for_due_until, self.due_done_at) = (None, None, None);
        }
        opens
    }

    /// Whether it has yet to be opened.
    pub(super) fn is_closed(&self) -> bool {
        self.closed_until.is_some() || self.closed_for_due_until.is_some()
    }

    /// When it may be opened, if no more due keys are handed out.
    pub(super) fn opens_at(&self) -> Option<Instant> {
        self.closed_until.max(self.due_end())
    }

    fn due_end(&self) -> Option<Instant> {
        let until = self.closed_for_due_until?;
        Some(self.due_done_at.map_or(until, |done| until.min(done + AFTER_DUE)))
    }
}
