//! Which servers do not stream which lists.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::sync::lock;

#[cfg(test)]
mod tests;

/// For how long a server is not tried again.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// Servers remembered per resource: one process talks to few, and they are updated now and then.
const MAX_SERVERS: usize = 8;

/// What informers have learnt about servers that do not stream lists (`sendInitialEvents`), so that the next list does not try again.
///
/// Kept by server version and resource for an hour. Clones share what they know: give one to all informers of a process, as clones of one
/// [`InformerOptions`](crate::InformerOptions) do.
///
/// # Guarantees
///
/// It does not grow with time: a resource holds at most eight servers.
#[derive(Clone, Default)]
pub struct StreamLists(Arc<Mutex<Memory>>);

/// By resource, then by version of the server.
type Memory = BTreeMap<String, BTreeMap<String, Refusal>>;

struct Refusal {
    until: Instant,
    reason: Arc<str>,
}

impl StreamLists {
    /// Nothing learnt yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Why lists of `resource` by the server of this version are not streamed, if so.
    #[must_use]
    pub fn refused(&self, server: &str, resource: &str, now: Instant) -> Option<Arc<str>> {
        let memory = lock(&self.0);
        let refusal = memory.get(resource)?.get(server)?;
        (now < refusal.until).then(|| refusal.reason.clone())
    }

    /// Whether anything is remembered of `resource`: only then is it worth asking a server for its version.
    pub(crate) fn concern(&self, resource: &str, now: Instant) -> bool {
        let mut memory = lock(&self.0);
        let Some(servers) = memory.get_mut(resource) else {
            return false;
        };
        servers.retain(|_, refusal| now < refusal.until);
        let concern = !servers.is_empty();
        if !concern {
            memory.remove(resource);
        }
        concern
    }

    /// A server of this version is not to be asked to stream `resource` for an hour.
    pub(crate) fn refuse(&self, server: &str, resource: &str, reason: &str, now: Instant) {
        let mut memory = lock(&self.0);
        let servers = memory.entry(resource.to_owned()).or_default();
        let refusal = Refusal {
            until: now + REMEMBERED,
            reason: reason.into(),
        };
        servers.insert(server.to_owned(), refusal);
        while servers.len() > MAX_SERVERS {
            let oldest = servers.iter().min_by_key(|(_, refusal)| refusal.until);
            let Some(oldest) = oldest.map(|(server, _)| server.clone()) else {
                break;
            };
            servers.remove(&oldest);
        }
    }
}

impl fmt::Debug for StreamLists {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let memory = lock(&self.0);
        let servers = memory.iter().flat_map(|(resource, servers)| {
            servers
                .iter()
                .map(move |(server, refusal)| ((resource, server), &refusal.reason))
        });
        f.debug_map().entries(servers).finish()
    }
}
