//! Where a child runs.

use actix::{Arbiter, ArbiterHandle};

/// The thread a child runs on: an actix arbiter. An actor never moves to another.
#[derive(Clone, Debug)]
pub struct Thread(Place);

#[derive(Clone, Debug)]
enum Place {
    Here,
    Arbiter { name: String, handle: ArbiterHandle },
}

impl Thread {
    /// The thread of the child's supervisor; for a root supervisor, the one that starts the tree. The default.
    #[must_use]
    pub fn here() -> Thread {
        Thread(Place::Here)
    }

    /// The thread of an arbiter, under a name for people.
    #[must_use]
    pub fn arbiter(name: impl Into<String>, handle: &ArbiterHandle) -> Thread {
        Thread(Place::Arbiter {
            name: name.into(),
            handle: handle.clone(),
        })
    }

    /// The name for people; `here` for [`Thread::here`].
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.0 {
            Place::Here => "here",
            Place::Arbiter { name, .. } => name,
        }
    }

    /// The calling thread, if it runs an arbiter.
    pub(crate) fn current() -> Option<Thread> {
        let handle = Arbiter::try_current()?;
        let name = std::thread::current()
            .name()
            .unwrap_or("unnamed")
            .to_owned();
        Some(Thread(Place::Arbiter { name, handle }))
    }

    /// This thread, or `supervisor`'s if it says "here".
    pub(crate) fn or(self, supervisor: &Thread) -> Thread {
        match self.0 {
            Place::Here => supervisor.clone(),
            Place::Arbiter { .. } => self,
        }
    }

    pub(crate) fn is_placed(&self) -> bool {
        matches!(self.0, Place::Arbiter { .. })
    }

    /// Runs `task` on this thread; false if the thread has ended. A task that is not run is dropped.
    pub(crate) fn run(&self, task: impl FnOnce() + Send + 'static) -> bool {
        match &self.0 {
            Place::Here => false,
            Place::Arbiter { handle, .. } => handle.spawn_fn(task),
        }
    }
}
