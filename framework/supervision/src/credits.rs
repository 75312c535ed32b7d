//! Bounding a producer by what its consumer has handled.

use std::fmt;
use std::future;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bounds how many messages of a producer are on their way: it takes a [`Credit`] before it sends, and the message carries it.
///
/// A mailbox has no capacity, because an actor that waits for room in another's deadlocks with it sooner or later. Credits put the
/// waiting where it does no harm: at the source. Cheap to clone; clones share the limit, so several producers can be bounded together.
///
/// A credit is a value inside the message, so it comes back whenever the message is dropped: it was handled, it crashed its actor, or
/// its actor is gone for good and its mailbox with it. Messages that wait out a restart keep theirs, which holds the producer back
/// while the consumer is down.
///
/// ```
/// # use std::time::Duration;
/// # use actix::{Actor, Handler, Message, System};
/// # use boatswain_supervision::{
/// #     ChildSpec, Context, Credit, Credits, Mailbox, Strategy, SupervisorSpec, Tree, TreeOptions, supervised,
/// # };
/// # struct Sink;
/// # impl Actor for Sink {
/// #     type Context = Context<Self>;
/// # }
/// # supervised!(Sink);
/// struct Line(String, Credit);
///
/// impl Message for Line {
///     type Result = ();
/// }
///
/// impl Handler<Line> for Sink {
///     type Result = ();
///
///     fn handle(&mut self, Line(text, _credit): Line, _: &mut Context<Self>) {
///         println!("{text}");
///     } // the credit goes back, even if this panics
/// }
///
/// # System::new().block_on(async {
/// # let (sender, addresses) = std::sync::mpsc::channel();
/// # let root = SupervisorSpec::new("root", Strategy::OneForOne).children(move |children| {
/// #     let mailbox = Mailbox::new();
/// #     let _ = sender.send(mailbox.address());
/// #     children.add(ChildSpec::actor("sink", mailbox, |_| Sink));
/// # });
/// # let tree = Tree::start(root, TreeOptions::default()).await.unwrap();
/// # let sink = addresses.recv().unwrap();
/// let credits = Credits::new(16);
/// for n in 0..1000 {
///     let credit = credits.take().await; // waits while 16 lines are unhandled
///     sink.tell(Line(format!("line {n}"), credit));
/// }
/// assert!(sink.high_water() <= 16);
/// # tree.stop(Duration::from_secs(5)).await.unwrap();
/// # });
/// ```
#[derive(Clone)]
pub struct Credits {
    free: Arc<Semaphore>,
    limit: usize,
}

/// The right to have one message on its way. Goes back to its [`Credits`] when it is dropped, on whatever thread.
#[must_use = "a credit that is dropped at once bounds nothing"]
pub struct Credit(#[expect(dead_code, reason = "held to be dropped")] OwnedSemaphorePermit);

impl Credits {
    /// As many credits as `limit`, at most `usize::MAX >> 3`; with zero nothing is ever sent.
    #[must_use]
    pub fn new(limit: usize) -> Credits {
        let limit = limit.min(Semaphore::MAX_PERMITS);
        Credits {
            free: Arc::new(Semaphore::new(limit)),
            limit,
        }
    }

    /// Waits for a credit. Who waits longest gets the next one.
    ///
    /// # Cancellation safety
    /// Dropping the future loses no credit, only the place in the line.
    pub async fn take(&self) -> Credit {
        match Arc::clone(&self.free).acquire_owned().await {
            Ok(permit) => Credit(permit),
            // only a closed semaphore refuses, and nobody closes this one
            Err(_) => future::pending().await,
        }
    }

    /// A credit, if one is free and nobody waits for it.
    #[must_use]
    pub fn try_take(&self) -> Option<Credit> {
        Arc::clone(&self.free).try_acquire_owned().ok().map(Credit)
    }

    /// The number of credits taken and not given back.
    #[must_use]
    pub fn in_use(&self) -> usize {
        self.limit - self.free.available_permits()
    }

    /// The number of credits there are.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }
}

impl fmt::Debug for Credits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credits")
            .field("in_use", &self.in_use())
            .field("limit", &self.limit)
            .finish()
    }
}

impl fmt::Debug for Credit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credit").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
