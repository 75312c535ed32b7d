//! Where a child runs.

use std::sync::Arc;

use actix::{Arbiter, ArbiterHandle};

/// The thread a child runs on: an actix arbiter. An actor never moves to another.
#[derive(Clone, Debug)]
pub struct Thread(Option<Arc<Place>>);

#[derive(Debug)]
struct Place {
    name: String,
    handle: ArbiterHandle,
}

impl Thread {
    /// The thread of the child's supervisor; for a root supervisor, the one that starts the tree. The default.
    #[must_use]
    pub fn here() -> Thread {
        Thread(None)
    }

    /// The thread of an arbiter, under a name for people.
    #[must_use]
    pub fn arbiter(name: impl Into<String>, handle: &ArbiterHandle) -> Thread {
        Thread(Some(Arc::new(Place {
            name: name.into(),
            handle: handle.clone(),
        })))
    }

    /// The name for people; `here` for [`Thread::here`].
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.as_ref().map_or("here", |place| &place.name)
    }

    /// The calling thread, if it runs an arbiter.
    pub(crate) fn current() -> Option<Thread> {
        let handle = Arbiter::try_current()?;
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("unnamed");
        Some(Thread::arbiter(name, &handle))
    }

    /// This thread, or `supervisor`'s if it says "here".
    pub(crate) fn or(self, supervisor: &Thread) -> Thread {
        Thread(self.0.or_else(|| supervisor.0.clone()))
    }

    pub(crate) fn is_placed(&self) -> bool {
        self.0.is_some()
    }

    /// Runs `task` on this thread; false if the thread has ended. A task that is not run is dropped.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) -> bool {
        self.0
            .as_ref()
            .is_some_and(|place| place.handle.spawn_fn(task))
    }
}
