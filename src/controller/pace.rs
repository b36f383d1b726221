//! How many syncs run at a time.
//!
//! Guarantees: no more than there are workers and no fewer than one. A refusal for overload halves the number, a sync that
//! ends well raises it by its reciprocal, so that it doubles in as many round trips as it takes to double a number one by
//! one: it hovers where the API server just keeps up. Without it every worker would run into the same refusal, and
//! all their keys would come back together and be refused together.

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Hands out turns.
#[derive(Debug)]
pub(super) struct Pace {
    state: Mutex<State>,
    /// A turn may be free.
    freed: Notify,
}

#[derive(Debug)]
struct State {
    limit: Limit,
    /// Turns that are taken.
    taken: usize,
}

/// A turn that is taken until it is dropped.
pub(super) struct Turn<'a>(&'a Pace);

impl Pace {
    /// A pace that nothing limits.
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { limit: Limit::new(usize::MAX), taken: 0 }), freed: Notify::new() }
    }

    /// From now on there are so many workers.
    pub(super) fn set_workers(&self, workers: usize) {
        self.state.lock().limit = Limit::new(workers);
    }

    /// Waits for a turn. Cancel safe.
    pub(super) async fn turn(&self) -> Turn<'_> {
        loop {
            let mut freed = std::pin::pin!(self.freed.notified());
            // In line before looking: what is freed after the look finds us waiting.
            freed.as_mut().enable();
            if let Some(turn) = self.try_turn() {
                return turn;
            }
            freed.await;
        }
    }

    fn try_turn(&self) -> Option<Turn<'_>> {
        let state = &mut *self.state.lock();
        state.limit.allows(state.taken).then(|| {
            state.taken += 1;
            Turn(self)
        })
    }

    /// A sync ended well.
    pub(super) fn went_well(&self) {
        self.state.lock().limit.raise();
        self.freed.notify_one();
    }

    /// The API server refused a request because it is overloaded.
    pub(super) fn refused(&self) {
        self.state.lock().limit.halve();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.state.lock().taken -= 1;
        self.0.freed.notify_one();
    }
}

/// Additive increase, multiplicative decrease.
#[derive(Debug, Clone, Copy)]
struct Limit {
    most: f64,
    now: f64,
}

#[allow(clippy::cast_precision_loss)]
impl Limit {
    fn new(most: usize) -> Self {
        Self { most: most as f64, now: most as f64 }
    }

    fn allows(&self, taken: usize) -> bool {
        (taken as f64) + 1.0 <= self.now
    }

    fn raise(&mut self) {
        self.now = (self.now + self.now.recip()).min(self.most);
    }

    fn halve(&mut self) {
        self.now = (self.now / 2.0).max(1.0);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn free(pace: &Pace) -> usize {
        std::iter::from_fn(|| pace.try_turn()).collect::<Vec<_>>().len()
    }

    #[test]
    fn a_refusal_halves_the_turns_and_success_brings_them_back() {
        let pace = Pace::new();
        pace.set_workers(32);
        let after = |what: &dyn Fn(&Pace), times: usize| {
            (0..times).for_each(|_| what(&pace));
            free(&pace)
        };
        let (refused, went_well) = (Pace::refused, Pace::went_well);
        assert_eq!(after(&refused, 0), 32);
        assert_eq!(after(&refused, 1), 16);
        assert_eq!(after(&refused, 10), 1, "never fewer than one");
        assert_eq!(after(&went_well, 1), 2);
        assert_eq!(after(&went_well, 6), 4);
        assert_eq!(after(&went_well, 1_000), 32, "never more than there are workers");
    }

    #[tokio::test]
    async fn a_turn_that_is_given_back_goes_to_who_waits() {
        let pace = Pace::new();
        pace.set_workers(1);
        let first = pace.turn().await;
        let mut second = Box::pin(pace.turn());
        let third = Box::pin(pace.turn());
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        // Whoever is woken and gives up wakes the next.
        drop(second);
        drop(third.await);
    }
}
