//! Simulated processes: a task belongs to the process of the task that starts it.
//!
//! Guarantees: the binary has one process, so nothing is wrapped and there is no cost. A simulation runs several replicas in
//! one runtime and makes a [`Process`] of each. While a process is frozen none of its tasks is polled; timers expire
//! meanwhile, as for a stopped process, and are noticed after the thaw. Once it is killed none is ever polled again.

use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures::future::Either;
use parking_lot::Mutex;

thread_local! {
    /// The process whose task is being polled.
    static CURRENT: RefCell<Option<Process>> = const { RefCell::new(None) };
}

/// Binds a future that is about to be spawned to the caller's process, if there is one.
pub fn bind<F: Future>(future: F) -> Either<F, Bound<F>> {
    match CURRENT.with_borrow(Clone::clone) {
        None => Either::Left(future),
        Some(process) => Either::Right(process.bind(future)),
    }
}

/// A simulated process; clones refer to the same one.
#[derive(Clone, Debug, Default)]
pub struct Process(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    phase: Phase,
    /// The wakers for a change of phase: one entry for each task.
    tasks: Vec<Option<Waker>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    Frozen,
    Dead,
}

impl Process {
    /// A future of this process; futures that it spawns with [`bind`] also belong to the process.
    pub fn bind<F: Future>(&self, future: F) -> Bound<F> {
        let mut state = self.0.lock();
        state.tasks.push(None);
        Bound { process: self.clone(), place: state.tasks.len() - 1, future: Some(Box::pin(future)) }
    }

    /// Suspends all tasks.
    pub fn freeze(&self) {
        self.change(Phase::Frozen);
    }

    /// Resumes all tasks.
    pub fn thaw(&self) {
        self.change(Phase::Running);
    }

    /// Ends all tasks.
    pub fn kill(&self) {
        self.change(Phase::Dead);
    }

    /// Whether the process is neither frozen nor dead.
    pub fn is_running(&self) -> bool {
        self.0.lock().phase == Phase::Running
    }

    fn change(&self, phase: Phase) {
        let wakers = {
            let mut state = self.0.lock();
            if state.phase != Phase::Dead {
                state.phase = phase;
            }
            state.tasks.clone()
        };
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    /// Stores the waker, and returns what the task may do.
    fn admit(&self, place: usize, waker: &Waker) -> Phase {
        let mut state = self.0.lock();
        let known = &mut state.tasks[place];
        if !known.as_ref().is_some_and(|known| known.will_wake(waker)) {
            *known = Some(waker.clone());
        }
        state.phase
    }
}

/// A future that belongs to a [`Process`].
#[derive(Debug)]
pub struct Bound<F> {
    process: Process,
    place: usize,
    /// `None` once the process is dead.
    future: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Bound<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match self.process.admit(self.place, context.waker()) {
            Phase::Frozen => return Poll::Pending,
            Phase::Dead => self.future = None,
            Phase::Running => {}
        }
        let _entered = Entered(CURRENT.replace(Some(self.process.clone())));
        self.future.as_mut().map_or(Poll::Pending, |future| future.as_mut().poll(context))
    }
}

impl<F> Drop for Bound<F> {
    fn drop(&mut self) {
        self.process.0.lock().tasks[self.place] = None;
    }
}

/// Restores the previous process on drop, also when a poll panics.
struct Entered(Option<Process>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.0.take());
    }
}

#[cfg(test)]
mod tests;
