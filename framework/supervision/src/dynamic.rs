//! Children that come and go while their supervisor runs, all made from one template.

use std::fmt;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::error::{StartError, StopError};
use crate::mailbox::Address;
use crate::spec::ChildSpec;
use crate::supervisor::{Command, Supervisor};

/// Starts and stops the children of a dynamic supervisor: see [`SupervisorSpec::dynamic`](crate::SupervisorSpec::dynamic). Cheap to clone.
///
/// It stays valid across restarts of the supervisor, which take all of its children with them, as in OTP: whoever started one and needs it starts it anew.
///
/// ```
/// # use std::time::Duration;
/// # use boatswain_supervision::{actix::{Actor, System}, supervised, ChildSpec, Context, Mailbox, Restart, Strategy, SupervisorSpec, Tree, TreeOptions};
/// struct Session(u32);
/// impl Actor for Session {
///     type Context = Context<Self>;
/// }
/// supervised!(Session);
///
/// # System::new().block_on(async {
/// let (sessions, pool) = SupervisorSpec::dynamic("sessions", |number: u32| {
///     ChildSpec::actor(format!("session-{number}"), Mailbox::new(), move |_| Session(number)).restart(Restart::Transient)
/// });
/// let tree = Tree::start(sessions, TreeOptions::default()).await?;
/// pool.start(7).await?;
/// assert!(tree.snapshot().find("sessions/session-7").is_some());
/// pool.stop("session-7").await?;
/// assert!(tree.snapshot().find("sessions/session-7").is_none());
/// tree.stop(Duration::from_secs(5)).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
pub struct Dynamic<T> {
    supervisor: Address<Supervisor>,
    template: Arc<dyn Fn(T) -> ChildSpec + Send + Sync>,
}

impl<T> Dynamic<T> {
    pub(crate) fn new(
        supervisor: Address<Supervisor>,
        template: impl Fn(T) -> ChildSpec + Send + Sync + 'static,
    ) -> Dynamic<T> {
        Dynamic {
            supervisor,
            template: Arc::new(template),
        }
    }

    /// Starts a child made from `argument`; returns when it has started.
    ///
    /// # Errors
    /// If the supervisor is gone, has a child of that id, or the child fails while it starts; it is then forgotten.
    ///
    /// # Cancellation safety
    /// The child is asked for before the future is first polled; dropping it does not take the child back.
    pub fn start(
        &self,
        argument: T,
    ) -> impl Future<Output = Result<(), StartError>> + Send + use<T> {
        let (reply, answer) = oneshot::channel();
        let spec = (self.template)(argument);
        let child = spec.id().to_owned();
        self.supervisor.tell(Command::Add(spec, reply));
        async move {
            answer
                .await
                .unwrap_or(Err(StartError::SupervisorGone { child }))
        }
    }

    /// Stops the child called `id` in good order and forgets it.
    ///
    /// # Errors
    /// If there is no such child, or it blocks its thread and still runs.
    ///
    /// # Cancellation safety
    /// The stop is asked for before the future is first polled; dropping it does not take the stop back.
    pub fn stop(&self, id: &str) -> impl Future<Output = Result<(), StopError>> + Send + use<T> {
        let (reply, answer) = oneshot::channel();
        let path = id.to_owned();
        self.supervisor.tell(Command::Remove(path.clone(), reply));
        async move { answer.await.unwrap_or(Err(StopError::NotFound { path })) }
    }
}

impl<T> Clone for Dynamic<T> {
    fn clone(&self) -> Self {
        Dynamic {
            supervisor: self.supervisor.clone(),
            template: Arc::clone(&self.template),
        }
    }
}

impl<T> fmt::Debug for Dynamic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dynamic").finish_non_exhaustive()
    }
}
