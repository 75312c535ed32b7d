//! Which threads actors run on.

use std::{
    io,
    sync::{Arc, Mutex},
};

use actix_rt::Arbiter;
use boatswain_supervision::Thread;
use tokio::runtime::{Builder, Handle, Runtime};

use crate::sync::lock;

/// Threads that the triggers of all controllers share: the mappers of one controller that block theirs hold up half of the others at most.
const TRIGGERS: usize = 2;
/// The nice value of a thread that gives way: a tenth of another's share where both want to run. With the highest (19) it has a seventieth, which on a machine
/// that is overrun is too little even to end in time.
#[cfg(target_os = "linux")]
const LAST: i32 = 10;

/// The threads of a manager. User code has threads of its own; informers, events and probes never share one with it.
#[derive(Clone)]
pub(crate) struct Crew {
    pub(crate) workers: Vec<Thread>,
    /// Predicates and mappers are user code, but one reconcile that blocks its thread must not keep the changes of other keys from their shards.
    pub(crate) triggers: Vec<Thread>,
    pub(crate) informers: Thread,
    /// Index functions are user code, too.
    pub(crate) indexers: Thread,
    pub(crate) events: Thread,
    pub(crate) telemetry: Thread,
    /// It gives way to all others: a picture can wait, a change cannot.
    pub(crate) dashboard: Thread,
    /// Nothing may make a renewal late.
    pub(crate) lease: Thread,
    /// For reconciles that compute; absent where everything runs on one thread.
    pub(crate) pool: Option<Pool>,
}

/// The threads of one controller.
#[derive(Clone)]
pub(crate) struct Watch {
    /// One per shard at most; shards take turns.
    pub(crate) workers: Vec<Thread>,
    pub(crate) triggers: Thread,
}

/// Threads for reconciles that compute, one per processor; there are none until the first controller asks for them.
#[derive(Clone, Default)]
pub(crate) struct Pool(Arc<Mutex<Option<Runtime>>>);

impl Pool {
    /// # Errors
    ///
    /// When the threads cannot be made.
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        let mut pool = lock(&self.0);
        if let Some(pool) = &*pool {
            return Ok(pool.handle().clone());
        }
        let made = Builder::new_multi_thread()
            .thread_name("offload")
            .enable_all()
            .build()?;
        Ok(pool.insert(made).handle().clone())
    }

    /// Ends the threads, and does not wait for them. A runtime must not be dropped where others run: this comes before the last clone goes.
    pub(crate) fn end(&self) {
        if let Some(pool) = lock(&self.0).take() {
            pool.shutdown_background();
        }
    }
}

/// Lets all other threads go before this one, where the system knows the priority of a thread.
fn give_way() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::setpriority_process(None, LAST) {
        tracing::debug!(%error, "the dashboard's thread is scheduled as any other");
    }
}

/// The arbiters behind a [`Crew`].
pub(crate) struct Arbiters(Vec<Arbiter>);

impl Crew {
    /// Everything on this thread: the deterministic mode of tests.
    pub(crate) fn here() -> Self {
        let here = Thread::here();
        Self {
            workers: vec![here.clone()],
            triggers: vec![here.clone()],
            informers: here.clone(),
            indexers: here.clone(),
            events: here.clone(),
            telemetry: here.clone(),
            dashboard: here.clone(),
            lease: here,
            pool: None,
        }
    }

    /// Those for the controller of this number: controllers of one shard each do not all stand on the first thread.
    pub(crate) fn watch(&self, number: usize) -> Watch {
        let from = |threads: &[Thread]| {
            let turned = threads.iter().cycle().skip(number % threads.len().max(1));
            turned.take(threads.len()).cloned().collect::<Vec<_>>()
        };
        Watch {
            workers: from(&self.workers),
            triggers: from(&self.triggers)
                .into_iter()
                .next()
                .unwrap_or_else(Thread::here),
        }
    }

    /// Arbiters of their own for `workers` shards, triggers, informers, events, probes, the dashboard and the lease.
    pub(crate) fn hire(workers: usize) -> (Self, Arbiters) {
        let aside = Arbiter::new();
        aside.spawn_fn(give_way);
        let mut arbiters = Vec::new();
        let mut hire = |name: String| {
            let arbiter = Arbiter::new();
            let thread = Thread::arbiter(name, &arbiter.handle());
            arbiters.push(arbiter);
            thread
        };
        let crew = Self {
            telemetry: hire("telemetry".into()),
            dashboard: Thread::arbiter("dashboard", &aside.handle()),
            lease: hire("lease".into()),
            events: hire("events".into()),
            informers: hire("informers".into()),
            indexers: hire("indexers".into()),
            triggers: (0..TRIGGERS)
                .map(|i| hire(format!("triggers-{i}")))
                .collect(),
            workers: (0..workers.max(1))
                .map(|i| hire(format!("worker-{i}")))
                .collect(),
            pool: None,
        };
        arbiters.push(aside);
        (crew, Arbiters(arbiters))
    }
}

/// Ends the threads, as soon as each is free, and does not wait for them.
impl Drop for Arbiters {
    fn drop(&mut self) {
        for arbiter in &self.0 {
            arbiter.stop();
        }
    }
}

impl Arbiters {
    /// Ends the threads and waits for them; only for a tree that has stopped.
    ///
    /// # Errors
    ///
    /// When a thread panicked outside every actor.
    pub(crate) fn dismiss(mut self) -> io::Result<()> {
        for arbiter in &self.0 {
            arbiter.stop();
        }
        for arbiter in self.0.drain(..) {
            arbiter
                .join()
                .map_err(|_| io::Error::other("an arbiter thread panicked"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_end_when_a_start_that_failed_drops_them() {
        let handles = actix_rt::System::new().block_on(async {
            let (_, arbiters) = Crew::hire(2);
            arbiters.0.iter().map(Arbiter::handle).collect::<Vec<_>>()
        });
        assert_eq!(handles.len(), 10);
        for handle in handles {
            // a thread that has ended takes no more tasks
            while handle.spawn_fn(|| ()) {
                std::thread::yield_now();
            }
        }
    }
}
