//! What an author implements: one function from a key's object to an [`Outcome`].

use std::{error::Error, fmt, future::Future, io, sync::Arc, time::Duration};

use boatswain_cache::{Key, LiveError, ReadError, WaitError};
use boatswain_workqueue::Merge;

use crate::{client::ClientError, context::Context, own::OwnerError};

/// Brings the world in line with one object of kind `K`.
///
/// # Guarantees
///
/// - Two calls for one key never overlap, whatever failed in between.
/// - After the last change of an object a call starts later than that change became visible in the cache.
/// - A panic costs this attempt of this key and nothing else.
///
/// # Cancellation safety
///
/// The future is dropped at its next await when its deadline passes or when the grace period of a stop ends. Whatever it
/// wrote until then stays written; the next attempt starts from the cache again.
pub trait Reconciler<K>: Send + Sync + 'static {
    /// What can go wrong. Whose fault it is decides how it is retried, see [`Reconciler::classify`].
    type Error: Error + Send + Sync + 'static;

    /// Makes one step towards what `object` asks for. `object` is shared and immutable.
    fn reconcile(
        &self,
        object: Arc<K>,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Self::Error>> + Send;

    /// Is called when the object of a key is gone from the cache, with its last known state where there is one; again after a crash,
    /// and until it succeeds.
    ///
    /// Deletions while no process of yours ran are not seen here: only a finalizer makes the end of an object certain.
    fn gone(
        &self,
        key: &Key,
        last: Option<Arc<K>>,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Self::Error>> + Send {
        let _ = (key, last, cx);
        async { Ok(Outcome::Done) }
    }

    /// Says whose fault an error is. The default is [`Fault::of`], which looks through its chain of sources.
    fn classify(&self, error: &Self::Error) -> Fault {
        Fault::of(error)
    }
}

/// What a run of a key decided about the key's next run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing more to do until something changes.
    Done,
    /// Run again after this time at the latest; a change before then runs the key at once and consumes the wait.
    RequeueAfter(Duration),
    /// Not ready yet: run again with exponential backoff, or at once when something changes. It is no error and ends a row of them.
    Retry,
    /// Leave the key alone until it changes; the reason is shown with the parked key.
    GiveUp(String),
}

/// For people: what the reconciler asks for.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done => f.write_str("done"),
            Self::RequeueAfter(time) => write!(f, "asks to run again after {}", in_words(*time)),
            Self::Retry => f.write_str("is not ready yet"),
            Self::GiveUp(reason) => write!(f, "gave up: {reason}"),
        }
    }
}

/// A time as people write it, in two units at most: `55.65 s`, `2 min 30 s`, `10 min`.
fn in_words(time: Duration) -> String {
    let (whole, millis) = (time.as_secs(), time.subsec_millis());
    let two = |big: u64, unit: &str, small: u64, of: &str| match small {
        0 => format!("{big} {unit}"),
        small => format!("{big} {unit} {small} {of}"),
    };
    match whole {
        0 => format!("{millis} ms"),
        1..60 => format!("{} s", whole as f64 + f64::from(millis / 10) / 100.0),
        60..3_600 => two(whole / 60, "min", whole % 60, "s"),
        3_600..86_400 => two(whole / 3_600, "h", whole % 3_600 / 60, "min"),
        _ => two(whole / 86_400, "d", whole % 86_400 / 3_600, "h"),
    }
}

impl Outcome {
    /// [`Outcome::Done`], for the end of a chain: `cx.patch_status(..).await.map(Outcome::done)`.
    pub fn done<T>(_: T) -> Self {
        Self::Done
    }
}

/// Whose fault an error is; it decides how the key is retried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The object's: backs off exponentially and is parked when [`max_retries`](crate::RetryPolicy::max_retries) retries have failed.
    Object,
    /// The infrastructure's (connections, timeouts, rights, 408, 429, 5xx): backs off, never parks.
    Infrastructure {
        /// What the server asked for in `Retry-After`; of more than five minutes, five are waited.
        retry_after: Option<Duration>,
    },
    /// A write met a newer version (409): tried again shortly, counts as no attempt.
    Conflict,
    /// Trying again cannot help: parked at once.
    Permanent,
}

impl Fault {
    /// The longest a server is left alone because it asks for it. Neither news nor anything else ends such a wait.
    pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(5 * 60);

    /// Walks the chain of sources for an error of the API client, of a read past the cache, of a lister, of a connection or of a timeout; anything
    /// else is the object's fault.
    ///
    /// Of refusals (403), those by quota, limits and admission are the object's: they are about what it asks for. Missing rights are not.
    pub fn of(error: &(dyn Error + 'static)) -> Self {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(error) = error.downcast_ref::<ClientError>() {
                return error.fault();
            }
            // a boxed source is an error of its own type
            let boxed = error.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
            if let Some(error) = error.downcast_ref::<kube::Error>().or(boxed) {
                return crate::client::fault_of(error);
            }
            if let Some(error) = error.downcast_ref::<LiveError>() {
                return crate::client::fault_of_read(error);
            }
            let away = Self::Infrastructure { retry_after: None };
            match error.downcast_ref::<ReadError>() {
                Some(ReadError::NotSynced { .. }) => return away,
                Some(_) => return Self::Object,
                None => {}
            }
            match error.downcast_ref::<WaitError>() {
                Some(WaitError::OutOfScope { .. } | WaitError::NoVersion { .. }) => {
                    return Self::Object;
                }
                Some(_) => return away,
                None => {}
            }
            let broken = error.downcast_ref().is_some_and(is_of_a_connection);
            if broken || error.is::<tokio::time::error::Elapsed>() {
                return away;
            }
            next = error.source();
        }
        Self::Object
    }
}

/// Files fail as connections do, but for reasons of their own.
fn is_of_a_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::NotConnected
            | Kind::BrokenPipe
            | Kind::TimedOut
            | Kind::UnexpectedEof
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::AddrNotAvailable
    )
}

/// What most reconcilers need as their error: a read without an answer, a request that failed, an object that cannot be owned.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// A lister has no answer.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// A request to the API server failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// An object cannot be owned by another.
    #[error("{0}")]
    Owner(#[from] OwnerError),
}

/// Why a key runs: a small set, merged when several reasons coalesce into one run. For logs and people, not for decisions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Causes(u32);

impl Causes {
    /// The object appeared.
    pub const CREATED: Self = Self(1);
    /// The object changed.
    pub const UPDATED: Self = Self(1 << 1);
    /// The object is gone.
    pub const DELETED: Self = Self(1 << 2);
    /// An object it owns changed.
    pub const OWNED: Self = Self(1 << 3);
    /// An object it refers to, or that is mapped to it, changed.
    pub const WATCHED: Self = Self(1 << 4);
    /// The first list after the start.
    pub const INITIAL: Self = Self(1 << 5);
    /// The periodic second look.
    pub const RESYNC: Self = Self(1 << 6);
    /// The previous run asked for it by `RequeueAfter`.
    pub const REQUEUED: Self = Self(1 << 7);
    /// The previous run failed or was not ready.
    pub const RETRY: Self = Self(1 << 8);
    /// The shard was rebuilt after a crash.
    pub const REBUILT: Self = Self(1 << 9);
    /// Somebody [unparked](crate::ControllerHandle::unpark) it.
    pub const UNPARKED: Self = Self(1 << 10);
    /// Somebody [asked for the run](crate::ControllerHandle::enqueue), or made it [more urgent](crate::ControllerHandle::promote).
    pub const ASKED: Self = Self(1 << 11);

    /// A [channel](crate::channel) or a stream of the program's asked for it.
    pub const EXTERNAL: Self = Self(1 << 12);
    /// Its time has come, or that of a [period](crate::Controller::every).
    pub const TIMER: Self = Self(1 << 13);

    /// At most 16: the journal keeps as many bits.
    const NAMES: [&'static str; 14] = [
        "created", "updated", "deleted", "owned", "watched", "initial", "resync", "requeued",
        "retry", "rebuilt", "unparked", "asked", "external", "timer",
    ];

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every cause of `other` is in this set.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(crate) const fn bits(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self(bits)
    }

    /// Whether something outside of Kubernetes asked, which asks once only.
    pub(crate) const fn is_asked(self) -> bool {
        self.0 & (Self::EXTERNAL.0 | Self::TIMER.0 | Self::ASKED.0 | Self::UNPARKED.0) != 0
    }

    /// Whether the key's object is another now, or gone.
    pub(crate) const fn renew(self) -> bool {
        self.contains(Self::DELETED)
            || self.contains(Self::CREATED) && !self.contains(Self::INITIAL)
    }
}

impl Merge for Causes {
    fn merge(&mut self, later: Self) {
        *self = self.and(later);
    }
}

impl fmt::Display for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names = Self::NAMES
            .iter()
            .enumerate()
            .filter(|(bit, _)| self.0 & (1 << bit) != 0);
        match names.next() {
            None => f.write_str("none"),
            Some((_, first)) => {
                f.write_str(first)?;
                names.try_for_each(|(_, name)| write!(f, "+{name}"))
            }
        }
    }
}

impl fmt::Debug for Causes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A plain function as a [`Reconciler`]: how a controller written for kube-rs moves over.
pub struct FnReconciler<F, C> {
    run: F,
    context: Arc<C>,
}

impl<F, C> FnReconciler<F, C> {
    /// Wraps `run`, which gets `context` at every call.
    pub fn new(context: Arc<C>, run: F) -> Self {
        Self { run, context }
    }
}

impl<K, F, C, E, Fut> Reconciler<K> for FnReconciler<F, C>
where
    K: Send + Sync + 'static,
    F: Fn(Arc<K>, Arc<C>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, E>> + Send,
    C: Send + Sync + 'static,
    E: Error + Send + Sync + 'static,
{
    type Error = E;

    async fn reconcile(&self, object: Arc<K>, _: &Context) -> Result<Outcome, E> {
        (self.run)(object, self.context.clone()).await
    }
}

#[cfg(test)]
mod tests {
    use boatswain_cache::LiveCause;

    use super::*;

    fn refused(code: u16, reason: &str) -> ClientError {
        let status = kube::core::Status {
            code,
            reason: reason.into(),
            ..kube::core::Status::default()
        };
        ClientError {
            verb: "update",
            resource: "deployments/scale".into(),
            key: Key::new(Some("shop"), "web"),
            source: Box::new(kube::Error::Api(Box::new(status))),
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("while scaling")]
    struct Named(#[source] ReconcileError);

    #[derive(Debug, thiserror::Error)]
    #[error("while reading")]
    struct Read(#[source] LiveError);

    #[derive(Debug, thiserror::Error)]
    #[error("while sending")]
    struct Sent(#[source] io::Error);

    #[derive(Debug, thiserror::Error)]
    #[error(transparent)]
    struct Transparent(ClientError);

    #[test]
    fn the_fault_is_found_through_any_wrapper() {
        assert_eq!(Fault::of(&refused(409, "Conflict")), Fault::Conflict);
        assert_eq!(
            Fault::of(&Named(refused(409, "Conflict").into())),
            Fault::Conflict
        );
        assert_eq!(
            Fault::of(&Transparent(refused(409, "Conflict"))),
            Fault::Conflict
        );
        assert_eq!(
            Fault::of(&Named(refused(422, "Invalid").into())),
            Fault::Object
        );
        assert_eq!(Fault::of(&refused(409, "AlreadyExists")), Fault::Object);
        let overload = Fault::of(&refused(503, "ServiceUnavailable"));
        assert_eq!(overload, Fault::Infrastructure { retry_after: None });
        let away = Fault::Infrastructure { retry_after: None };
        let live = LiveError {
            resource: "pods".into(),
            key: Key::new(Some("shop"), "web"),
            cause: LiveCause::TimedOut(Duration::from_secs(10)),
        };
        assert_eq!(Fault::of(&Read(live)), away);
        let reset = io::ErrorKind::ConnectionReset;
        assert_eq!(Fault::of(&Sent(reset.into())), away);
        let missing = io::ErrorKind::NotFound;
        assert_eq!(Fault::of(&Sent(missing.into())), Fault::Object, "a file");
        let late = WaitError::TimedOut {
            resource: "pods".into(),
            scope: "shop".into(),
            limit: Duration::from_secs(5),
            why: "no connection".into(),
        };
        assert_eq!(Fault::of(&late), away);
        let sent = WaitError::NoVersion {
            resource: "pods".into(),
            key: Key::new(Some("shop"), "web"),
        };
        assert_eq!(Fault::of(&sent), Fault::Object);
        let io = kube::Error::ReadEvents(std::io::Error::other("reset"));
        assert_eq!(Fault::of(&io), Fault::Infrastructure { retry_after: None });
    }

    #[tokio::test(start_paused = true)]
    async fn what_took_too_long_is_not_the_objects_fault() {
        let never = std::future::pending::<()>();
        let error = tokio::time::timeout(Duration::from_secs(1), never).await;
        let error = error.expect_err("it never ends");
        let away = Fault::Infrastructure { retry_after: None };
        assert_eq!(Fault::of(&error), away);
    }

    #[test]
    fn an_object_that_appears_or_goes_renews_its_key_and_one_that_was_there_does_not() {
        let news = [
            Causes::CREATED,
            Causes::DELETED,
            Causes::DELETED.and(Causes::INITIAL),
        ];
        assert!(news.into_iter().all(Causes::renew));
        let first = Causes::CREATED.and(Causes::INITIAL);
        for other in [
            first,
            Causes::UPDATED,
            Causes::OWNED,
            Causes::RESYNC,
            Causes::ASKED,
        ] {
            assert!(!other.renew(), "{other}");
        }
    }

    #[test]
    fn outcomes_read_like_words_and_not_like_code() {
        let millis = |n| Outcome::RequeueAfter(Duration::from_millis(n)).to_string();
        for (n, time) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (5_000, "5 s"),
            (55_653, "55.65 s"),
            (600_000, "10 min"),
            (150_400, "2 min 30 s"),
            (5_400_000, "1 h 30 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(millis(n), format!("asks to run again after {time}"));
        }
        assert_eq!(Outcome::Done.to_string(), "done");
        assert_eq!(Outcome::Retry.to_string(), "is not ready yet");
        let gave_up = Outcome::GiveUp("not ours".into());
        assert_eq!(gave_up.to_string(), "gave up: not ours");
    }

    #[test]
    fn causes_merge_and_read_like_a_sum() {
        let mut causes = Causes::UPDATED;
        causes.merge(Causes::WATCHED);
        assert_eq!(causes.to_string(), "updated+watched");
        assert!(causes.contains(Causes::UPDATED) && !causes.contains(Causes::DELETED));
        assert_eq!(Causes::default().to_string(), "none");
    }
}
