//! How many workers the groups share, by how fast they are answered.
//!
//! Guarantees: pure; the time is an argument. Work is what a worker does about one key. These limits hold when work begins:
//! - There is at most `limit` work at a time. When the limit falls, the part of the reserve (see below) that slow groups hold
//!   does not count, and of three or fewer, what they hold beyond half: a hung request keeps no other group waiting.
//! - Slow groups hold at most half of the limit, or a quarter of it while keys of high priority wait whose groups have yet to
//!   show how fast they are answered.
//! - Groups that have yet to show it hold at most half of what slow groups leave. The first key of such a group may begin
//!   until they hold three quarters of it. So one unanswered group does not keep the next from showing that it is answered.
//! - Slow groups and these together leave a reserve of an eighth of the limit to prompt groups, and to the first key of a
//!   group that was prompt before and returns.
//!
//! A group is slow while work of it has lasted for [`UNANSWERED`] or longer, or the last that ended took that long. It is
//! prompt while the last that ended was faster. A group that returns after it had no key must show again that it is prompt,
//! but for one that was prompt while others were not, or while the limit had fallen. A
//! key of low priority does not make a slow group prompt: where creates hang, status writes may still be fast. So groups that
//! are not answered can never take all workers, neither one nor many. Groups that were answered until now can: what they hold
//! by the time the first of it has lasted for [`UNANSWERED`] is theirs until it ends.
//!
//! Without a limit nothing is measured and every key may be handed out. This is fair queuing as in API Priority and Fairness,
//! with workers as seats.

use std::time::Duration;

use super::order::Priority;

/// A group is slow once work of it has lasted for this long.
pub const UNANSWERED: Duration = Duration::from_secs(1);

/// Work that ends sooner than this made no request, so it shows nothing about how fast its group is answered.
pub(super) const LEAST_EVIDENCE: Duration = Duration::from_millis(1);

/// One in this many workers is reserved for groups that are answered.
const RESERVE: usize = 8;

pub(super) const UNLIMITED: usize = usize::MAX;

/// How fast the keys of a group are processed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The last work that ended was fast, and none has lasted for [`UNANSWERED`].
    Prompt,
    /// No work has ended since the group returned; it was prompt before.
    Returning,
    /// No work has ended since the group's first key came.
    Unproven,
    /// The last work that ended was slow, or some has lasted for [`UNANSWERED`].
    Slow,
}

pub(super) const STANDINGS: [Standing; 4] = [Standing::Prompt, Standing::Returning, Standing::Unproven, Standing::Slow];

/// What a group has shown.
#[derive(Debug, Clone, Default)]
pub(super) struct Evidence {
    last_end: LastEnd,
    /// How much of its work has lasted for [`UNANSWERED`] or longer.
    unanswered: usize,
}

/// What is remembered of the work that ended last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LastEnd {
    #[default]
    None,
    /// It was fast, and the group has had no key since.
    FastBefore,
    Fast,
    Slow,
}

impl Evidence {
    pub(super) fn standing(&self) -> Standing {
        match self.last_end {
            _ if self.unanswered > 0 => Standing::Slow,
            LastEnd::Slow => Standing::Slow,
            LastEnd::Fast => Standing::Prompt,
            LastEnd::FastBefore => Standing::Returning,
            LastEnd::None => Standing::Unproven,
        }
    }

    /// Work has lasted for [`UNANSWERED`].
    pub(super) fn unanswered(&mut self) {
        self.unanswered += 1;
    }

    /// Work about a key of that priority ended after `took`; `was_unanswered` if [`Self::unanswered`] was called for it.
    pub(super) fn ended(&mut self, took: Duration, priority: Priority, was_unanswered: bool) {
        self.unanswered -= usize::from(was_unanswered);
        if took >= UNANSWERED {
            self.last_end = LastEnd::Slow;
        } else if took >= LEAST_EVIDENCE && (priority > Priority::Low || self.last_end != LastEnd::Slow) {
            self.last_end = LastEnd::Fast;
        }
    }

    /// The group has no key left. Slowness is remembered, and with `remembers_prompt` promptness. Returns whether anything is.
    pub(super) fn gone(&mut self, remembers_prompt: bool) -> bool {
        self.last_end = match self.last_end {
            LastEnd::Fast | LastEnd::FastBefore if remembers_prompt => LastEnd::FastBefore,
            LastEnd::Slow => LastEnd::Slow,
            _ => LastEnd::None,
        };
        self.last_end != LastEnd::None
    }
}

/// Which keys of groups of one standing may be handed out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Every key.
    pub(super) any: bool,
    /// The first key of a group that has none in processing.
    pub(super) first: bool,
}

/// How much work there may be, and how much there is.
#[derive(Debug, Clone)]
pub(super) struct Shares {
    pub(super) limit: usize,
    /// The highest limit so far.
    widest: usize,
    /// By the standing of its group.
    held: [usize; STANDINGS.len()],
}

impl Shares {
    pub(super) fn unlimited() -> Self {
        Self { limit: UNLIMITED, widest: 0, held: [0; STANDINGS.len()] }
    }

    /// Sets how much work, at least one, there may be.
    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
        self.widest = self.widest.max(self.limit);
    }

    /// Whether it matters which groups were prompt: others hold work, or the limit has fallen.
    pub(super) fn remembers_prompt(&self) -> bool {
        self.held() > self.held[Standing::Prompt as usize] || self.limit < self.widest
    }

    /// How much work there is.
    pub(super) fn held(&self) -> usize {
        self.held.iter().sum()
    }

    pub(super) fn take(&mut self, standing: Standing) {
        self.held[standing as usize] += 1;
    }

    pub(super) fn give_back(&mut self, standing: Standing) {
        self.held[standing as usize] -= 1;
    }

    /// A group with that much work has another standing.
    pub(super) fn transfer(&mut self, work: usize, before: Standing, after: Standing) {
        self.held[before as usize] -= work;
        self.held[after as usize] += work;
    }

    /// Whether the limit is reached. What slow groups hold of the reserve does not count, and with three workers or fewer, what they
    /// hold beyond half of them. So when the limit falls, keys of other groups do not wait until the slow ones have ended.
    pub(super) fn is_full(&self) -> bool {
        self.held() - self.held[Standing::Slow as usize] + self.slow() >= self.limit
    }

    /// How much work of slow groups counts.
    fn slow(&self) -> usize {
        let most = if self.limit > 3 { self.unreserved() } else { self.limit / 2 };
        self.held[Standing::Slow as usize].min(most)
    }

    /// How much work groups that are not prompt may have.
    fn unreserved(&self) -> usize {
        // With three workers or fewer, a reserve would take more than it leaves.
        if self.limit > 3 { self.limit - self.limit.div_ceil(RESERVE) } else { self.limit }
    }

    /// Which keys of groups of that standing may be handed out. `is_unknown_due`: keys of high priority wait whose groups are
    /// [`Standing::Unproven`].
    pub(super) fn of(&self, standing: Standing, is_unknown_due: bool) -> Share {
        let [_, returning, unproven, slow] = self.held;
        let unknown = returning + unproven;
        let free = self.limit.saturating_sub(self.slow());
        let is_bounded = self.slow() + unknown < self.unreserved();
        let any_unknown = is_bounded && unknown < (free / 2).max(1);
        match standing {
            Standing::Prompt => Share { any: true, first: true },
            Standing::Returning => Share { any: any_unknown, first: true },
            Standing::Unproven => Share { any: any_unknown, first: is_bounded && unknown < (free - free / 4).max(1) },
            // Groups of unknown speed come first.
            Standing::Slow => {
                let half = self.limit / if is_unknown_due { 4 } else { 2 };
                Share { any: is_bounded && slow < half.max(1), first: false }
            }
        }
    }
}
