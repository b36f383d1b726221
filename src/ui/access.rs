//! The links of one server, and the sessions for which their tokens are exchanged.
//!
//! Guarantees: a token is exchanged once, within [`LIFETIME`]. At most one link is open. A client that fails to exchange a token
//! while none is open causes a new link, which only the readers of [`Access::links`] see: a stranger may cause one each
//! [`LIFETIME`], and cannot close it. At most [`MOST_SESSIONS`] sessions exist; the one that was unused for longest ends for a
//! new one. Tokens and sessions come from a cryptographic generator and are compared in constant time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::dev::guard::{self, same};

/// How long a link can be used: long enough to copy it to another machine by hand.
pub const LIFETIME: Duration = Duration::from_secs(5 * 60);
/// So many sessions exist at a time; each tab that has used a link has one.
const MOST_SESSIONS: usize = 16;

/// Who may use one server.
pub struct Access {
    /// The address of the page, without a path.
    origin: String,
    secrets: Mutex<Secrets>,
    /// The newest link.
    links: watch::Sender<String>,
}

struct Secrets {
    open: Open,
    /// The one that was used last is last.
    sessions: VecDeque<String>,
}

/// A token that can be exchanged.
struct Open {
    token: String,
    until: Instant,
    /// Cancelled when it was exchanged.
    used: CancellationToken,
}

impl Open {
    fn new() -> Self {
        // 128 bits, so that the link fits on a line of a terminal.
        let token = guard::token().chars().take(32).collect();
        Self { token, until: Instant::now() + LIFETIME, used: CancellationToken::new() }
    }

    fn is_usable(&self) -> bool {
        !self.used.is_cancelled() && Instant::now() < self.until
    }
}

impl Access {
    /// Access to a server at this address, with an open link.
    pub fn new(addr: SocketAddr) -> Self {
        let (origin, open) = (format!("http://{addr}"), Open::new());
        let links = watch::Sender::new(link(&origin, &open));
        Self { origin, secrets: Mutex::new(Secrets { open, sessions: VecDeque::new() }), links }
    }

    /// The newest link, and each that follows it.
    pub fn links(&self) -> watch::Receiver<String> {
        self.links.subscribe()
    }

    /// Exchanges a token for a session. If it is not that of an open link, and no link is open, there is a new link.
    pub fn exchange(&self, sent: &str) -> Option<String> {
        let mut secrets = self.secrets.lock();
        let Secrets { open, sessions } = &mut *secrets;
        if !open.is_usable() {
            *open = Open::new();
            self.links.send_replace(link(&self.origin, open));
            return None;
        }
        if !same(sent, &open.token) {
            return None;
        }
        open.used.cancel();
        let session = guard::token();
        if sessions.len() == MOST_SESSIONS {
            sessions.pop_front();
        }
        sessions.push_back(session.clone());
        Some(session)
    }

    /// Whether this is a session.
    pub fn is_session(&self, sent: &str) -> bool {
        let sessions = &mut self.secrets.lock().sessions;
        let found = sessions.iter().position(|session| same(sent, session));
        let used = found.and_then(|index| sessions.remove(index));
        sessions.extend(used);
        found.is_some()
    }

    /// Waits until the newest link cannot be used any more.
    pub async fn closed(&self) {
        let (used, until) = {
            let open = &self.secrets.lock().open;
            (open.used.clone(), open.until)
        };
        let _ = timeout_at(until, used.cancelled()).await;
    }
}

/// The token is in the fragment, which a browser sends to no server.
fn link(origin: &str, open: &Open) -> String {
    format!("{origin}/#token={}", open.token)
}

#[cfg(test)]
mod tests;
