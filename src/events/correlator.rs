//! What an event becomes: a new Event, a higher count on an earlier one, a part of a combined one, or nothing.
//!
//! Guarantees: pure, with the event's own time as `now`. Each of the three caches has at most `cache_entries` entries, each
//! of fixed size whatever the messages are. A wall clock that steps back never mutes an object for longer than an empty token
//! bucket would. Matches `EventCorrelator` in client-go's `tools/record/events_cache.go`, in this order: the aggregator may
//! replace message and key, the logger counts under the key, the spam filter may drop the result (which stays counted). Four
//! choices differ. Where the aggregator is full, upstream forgets an arbitrary message, so chance decides which messages keep
//! an Event of their own; here the first messages keep theirs. A combined Event keeps its `reportingComponent`, which
//! upstream drops. The server's answers are not read back, because no field of them takes part in a later decision. In the
//! spam filter, each reason that upstream does not have has a budget of its own: such Events are rare, and the routine ones
//! of a minutely CronJob always use up theirs.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};

use super::lru::Lru;
use super::{Event, EventType, ObjectKey, reasons};

/// The prefix of a combined Event's message.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// The correlator's settings. The defaults are client-go's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CorrelatorOptions {
    /// The bound of each cache, in entries.
    pub cache_entries: usize,
    /// From this many different messages on, events that differ in nothing else are combined.
    pub max_events: usize,
    /// After this long without an event of a group, its messages are forgotten.
    pub max_interval: TimeDelta,
    /// How many events of one type about one object may come at once. A reason that upstream does not have is counted for
    /// itself.
    pub spam_burst: u32,
    /// The time after which one more event is allowed.
    pub spam_refill: TimeDelta,
}

impl Default for CorrelatorOptions {
    fn default() -> Self {
        Self {
            cache_entries: 4096,
            max_events: 10,
            max_interval: TimeDelta::seconds(600),
            spam_burst: 25,
            spam_refill: TimeDelta::seconds(300),
        }
    }
}

/// Filters, combines, counts and de-duplicates. Matches client-go's `EventCorrelator`.
#[derive(Debug)]
pub struct Correlator {
    aggregator: Aggregator,
    logger: Logger,
    spam_filter: SpamFilter,
    /// Messages are kept as 64-bit hashes, so the caches do not grow with message length. A collision within one object and
    /// reason would at worst count two messages as one.
    hasher: RandomState,
}

impl Correlator {
    /// A correlator that has seen nothing.
    pub fn new(options: &CorrelatorOptions) -> Self {
        Self {
            aggregator: Aggregator {
                groups: Lru::new(options.cache_entries),
                max_events: options.max_events,
                max_interval: options.max_interval,
            },
            logger: Logger { seen: Lru::new(options.cache_entries) },
            spam_filter: SpamFilter {
                budgets: Lru::new(options.cache_entries),
                burst: options.spam_burst,
                refill: options.spam_refill,
            },
            hasher: RandomState::new(),
        }
    }

    /// The Event to write for `event`, whose `last_timestamp` is the present. An Event with `count` 1 is to be created, one
    /// with a higher `count` to be patched (or created if it is gone). `None` is spam. Matches `EventCorrelate`.
    pub fn correlate(&mut self, event: Event) -> Option<Event> {
        let now = event.last_timestamp;
        let source = Source { object: event.involved_object.identity(), type_: event.type_ };
        let budgeted =
            Budgeted { source: source.clone(), reason: reasons::is_own(event.reason).then_some(event.reason) };
        let group = Group { source, reason: event.reason };
        let message = self.hasher.hash_one(&event.message);
        let (event, key) = if self.aggregator.is_one_of_many(&group, message, now) {
            (Event { message: format!("{COMBINED_PREFIX}{}", event.message), ..event }, Key { group, message: None })
        } else {
            (event, Key { group, message: Some(message) })
        };
        let event = self.logger.observe(event, key);
        self.spam_filter.allows(budgeted, now).then_some(event)
    }
}

/// Where an event comes from. The reporting component is the same for all events of one correlator.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Source {
    object: Arc<ObjectKey>,
    type_: EventType,
}

/// The key of the spam filter's budget: one reason that upstream does not have, or (`None`) all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Budgeted {
    source: Source,
    reason: Option<&'static str>,
}

/// Events that differ at most in their message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Group {
    source: Source,
    reason: &'static str,
}

/// The key of one Event object: a message of a group, or (`None`) the combined rest of the group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    group: Group,
    message: Option<u64>,
}

/// Matches `EventAggregator`.
#[derive(Debug)]
struct Aggregator {
    groups: Lru<Group, Similar>,
    max_events: usize,
    max_interval: TimeDelta,
}

/// The messages of one group that have an Event of their own: always fewer than `max_events`.
#[derive(Debug)]
struct Similar {
    messages: Vec<u64>,
    last: DateTime<Utc>,
}

impl Aggregator {
    /// Records the message; true if it belongs to the group's combined Event. Matches `EventAggregate`.
    fn is_one_of_many(&mut self, group: &Group, message: u64, now: DateTime<Utc>) -> bool {
        let similar = self.groups.get_or_insert_with(group.clone(), || Similar { messages: Vec::new(), last: now });
        if now.signed_duration_since(similar.last) > self.max_interval {
            similar.messages.clear();
        }
        similar.last = now;
        if similar.messages.contains(&message) {
            return false;
        }
        let full = similar.messages.len() + 1 >= self.max_events;
        if !full {
            similar.messages.push(message);
        }
        full
    }
}

/// Matches `eventLogger`.
#[derive(Debug)]
struct Logger {
    seen: Lru<Key, Seen>,
}

/// The Event object of a key.
#[derive(Debug)]
struct Seen {
    name: Arc<str>,
    first_timestamp: DateTime<Utc>,
    count: i32,
}

impl Logger {
    /// The event with the name, first time and count of its key. Matches `eventObserve`.
    fn observe(&mut self, event: Event, key: Key) -> Event {
        let seen = self.seen.get_or_insert_with(key, || Seen {
            name: event.name.clone(),
            first_timestamp: event.first_timestamp,
            count: 0,
        });
        seen.count = seen.count.saturating_add(1);
        Event { name: seen.name.clone(), first_timestamp: seen.first_timestamp, count: seen.count, ..event }
    }
}

/// Matches `EventSourceObjectSpamFilter`, with its default key for the events that upstream has.
#[derive(Debug)]
struct SpamFilter {
    budgets: Lru<Budgeted, Budget>,
    burst: u32,
    refill: TimeDelta,
}

/// A token bucket, stored as the time until it is full again: exact, and without floating point.
#[derive(Debug)]
struct Budget {
    owed: TimeDelta,
    last: DateTime<Utc>,
}

impl SpamFilter {
    /// Takes one token if available. A time before the last one counts as no time passed.
    fn allows(&mut self, budgeted: Budgeted, now: DateTime<Utc>) -> bool {
        let capacity = self.refill * i32::try_from(self.burst).unwrap_or(i32::MAX);
        let budget = self.budgets.get_or_insert_with(budgeted, || Budget { owed: TimeDelta::zero(), last: now });
        let passed = now.signed_duration_since(budget.last).clamp(TimeDelta::zero(), budget.owed);
        budget.last = now;
        budget.owed -= passed;
        let allowed = budget.owed + self.refill <= capacity;
        if allowed {
            budget.owed += self.refill;
        }
        allowed
    }
}

#[cfg(test)]
mod tests;
