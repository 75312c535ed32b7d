//! A typed reconciler behind the dispatcher's untyped door.

use std::sync::Arc;

use boatswain_cache::{InformerCore, Key, Lister, Object, ReadError};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;

use crate::{
    builder::Reconcilable,
    client::ClientError,
    context::Context,
    dispatch::{Departed, Ended, Runner},
    finalizer::{CleanUp, Finalizer, Step},
    reconcile::{Fault, Outcome, Reconciler},
};

pub(crate) struct TypedRunner<K, R: Reconciler<K>> {
    pub(crate) lister: Lister<K>,
    pub(crate) reconciler: R,
    pub(crate) departed: Departed,
    pub(crate) finalizer: Finalizer,
    /// There is one where the finalizer is used.
    pub(crate) clean_up: Option<CleanUp<K, R>>,
}

impl<K: Reconcilable, R: Reconciler<K>> TypedRunner<K, R> {
    /// From an object to the end of its run: whatever its finalizer asks for, and the reconcile.
    async fn attend(&self, mut object: Arc<K>, cx: &Context) -> Ended {
        loop {
            let is_on = match self.finalizer.step(object.meta()) {
                Step::Reconcile => return self.ended(self.reconciler.reconcile(object, cx).await),
                Step::Leave => return Ended::Outcome(Outcome::Done),
                Step::Add => true,
                Step::Remove => false,
                Step::CleanUp => match self.clean_up(object.clone(), cx).await {
                    Ok(Outcome::Done) => false,
                    other => return self.ended(other),
                },
            };
            // seldom: it is not to make every run's future larger
            match Box::pin(self.finalizer.put(is_on, object, cx)).await {
                // what was cleaned up is not reconciled, whoever holds it back
                Ok(Some(next)) if is_on || self.clean_up.is_none() => object = next,
                Ok(_) => return Ended::Outcome(Outcome::Done),
                Err(error) => {
                    return Ended::Failed {
                        fault: error.fault(),
                        message: error.to_string(),
                    };
                }
            }
        }
    }

    async fn clean_up(&self, object: Arc<K>, cx: &Context) -> Result<Outcome, R::Error> {
        match self.clean_up {
            Some(clean_up) => clean_up(&self.reconciler, object, cx).await,
            None => Ok(Outcome::Done),
        }
    }

    fn ended(&self, outcome: Result<Outcome, R::Error>) -> Ended {
        match outcome {
            Ok(outcome) => Ended::Outcome(outcome),
            Err(error) => Ended::Failed {
                fault: self.reconciler.classify(&error),
                message: chain(&error),
            },
        }
    }
}

impl<K, R> Runner for TypedRunner<K, R>
where
    K: Reconcilable,
    R: Reconciler<K>,
{
    fn run(&self, cx: Context) -> BoxFuture<'_, Ended> {
        Box::pin(async move {
            // before the cache is read: what departs after that is news for the next run
            let before = self.departed.get(cx.key());
            let object = self.lister.get_object(cx.key()).and_then(|object| {
                let Some(object) = object else {
                    return Ok(None);
                };
                cx.trail().saw(&object.meta().resource_version);
                Ok(Some(self.lister.decode(&object)?))
            });
            match object {
                Ok(Some(object)) => {
                    // what departed under this name before is history: the reconciler looks at what is there now
                    if let Some(before) = before {
                        self.departed.settle(&before);
                    }
                    self.attend(object, &cx).await
                }
                Ok(None) => {
                    let last = self.departed.tell(cx.key());
                    let typed = last.as_ref().and_then(|last| last.decode::<K>().ok());
                    let outcome = self.reconciler.gone(cx.key(), typed, &cx).await;
                    // as long as it asks to be told again, it is, also after a crash
                    if let (Ok(Outcome::Done | Outcome::GiveUp(_)), Some(last)) = (&outcome, last) {
                        self.departed.settle(&last);
                    }
                    self.ended(outcome)
                }
                // a mapper or an owner reference named it: it is another process's business
                Err(error @ ReadError::OutOfScope { .. }) => {
                    tracing::debug!(key = %cx.key(), "not reconciled: {error}");
                    if let Some(before) = before {
                        self.departed.settle(&before);
                    }
                    Ended::Outcome(Outcome::Done)
                }
                Err(ReadError::Undecodable(error)) => Ended::Undecodable(error.to_string()),
                Err(error) => {
                    let fault = Fault::Infrastructure { retry_after: None };
                    Ended::Failed {
                        message: error.to_string(),
                        fault,
                    }
                }
            }
        })
    }

    fn keys(&self) -> Vec<Key> {
        // of an informer that is not synced there are none to name
        let cores = self.lister.cores();
        let read = |core| Lister::<K>::new(core).list_objects().unwrap_or_default();
        let objects = cores.iter().cloned().flat_map(read);
        objects.map(|object| object.key().clone()).collect()
    }

    fn stores(&self) -> Arc<[Arc<InformerCore>]> {
        self.lister.cores()
    }

    fn look(&self, key: &Key) -> Result<Option<Object>, ReadError> {
        self.lister.get_object(key)
    }

    fn is_gone(&self, key: &Key) -> bool {
        matches!(self.lister.get_object(key), Ok(None))
    }

    fn reference(&self, key: &Key) -> Option<ObjectReference> {
        let object = self.lister.get_object(key).ok().flatten()?;
        let cores = self.lister.cores();
        let kind = cores.first()?.kind();
        Some(ObjectReference {
            api_version: Some(kind.api_version()),
            kind: Some(kind.kind.clone()),
            name: Some(key.name().to_owned()),
            namespace: key.namespace().map(str::to_owned),
            uid: Some(object.meta().uid.to_string()),
            ..ObjectReference::default()
        })
    }
}

/// An error with its causes, each once: many errors repeat their source in their own text, and those of the client say it better.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut said = error.is::<ClientError>();
    let mut next = error.source();
    while let Some(source) = next.filter(|_| !said) {
        said = source.is::<ClientError>();
        let cause = source.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
        next = source.source();
    }
    text
}
