//! How many steps a piece of work takes, for tests that compare the number with the length of an input.
//!
//! Guarantees: the number depends on the work alone, never on time, and each thread counts its own. A build without debug
//! assertions counts nothing and pays nothing.

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Counts steps, such as lines that are read or items that are compared.
#[inline]
pub fn add(steps: usize) {
    #[cfg(debug_assertions)]
    STEPS.with(|counted| counted.set(counted.get().saturating_add(u64::try_from(steps).unwrap_or(u64::MAX))));
    #[cfg(not(debug_assertions))]
    let _ = steps;
}

/// Counts one step for each item that the iterator yields.
pub fn each<T>(items: impl Iterator<Item = T>) -> impl Iterator<Item = T> {
    items.inspect(|_| add(1))
}

/// The steps that `work` takes on this thread, and its result. Without debug assertions, the steps are 0.
pub fn of<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let counted = || {
        #[cfg(debug_assertions)]
        let counted = STEPS.with(Cell::get);
        #[cfg(not(debug_assertions))]
        let counted = 0;
        counted
    };
    let before = counted();
    let result = work();
    (counted() - before, result)
}

#[cfg(test)]
mod tests;
