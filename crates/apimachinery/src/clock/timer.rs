//! Sleep by a timer of the Linux kernel.
//!
//! Guarantees: it never ends before its deadline, and within a fraction of a millisecond after it if a CPU is free. Where no
//! such timer can be had, for example because the process has no file descriptor left, tokio's takes its place, which may be
//! two milliseconds late. It needs a runtime with I/O.

use std::io;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{self, Instant};

/// How long the machine has been suspended since it started: by so much is the clock of [`Instant`] behind.
pub(super) fn suspended() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    let monotonic = read(ClockId::Monotonic);
    read(ClockId::Boottime).saturating_sub(monotonic)
}

/// Sleeps until `deadline`.
pub(super) async fn sleep_until(deadline: Instant) {
    if expires_at(deadline).await.is_err() {
        time::sleep_until(deadline).await;
    }
}

#[allow(
    deprecated,
    reason = "what replaces `with_interest` is unsafe; the descriptor is owned, so it stays what it is"
)]
async fn expires_at(deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        // The kernel takes zero for no timer.
        return Ok(());
    }
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
    let never_again = Timespec { tv_sec: 0, tv_nsec: 0 };
    let it_value = Timespec::try_from(left).map_err(io::Error::other)?;
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &Itimerspec { it_interval: never_again, it_value })?;
    let timer = AsyncFd::with_interest(timer, Interest::READABLE)?;
    drop(timer.readable().await?);
    Ok(())
}

#[cfg(test)]
mod tests;
