//! A typed reconciler behind the dispatcher's untyped door.

use std::sync::Arc;

use boatswain_cache::{InformerCore, Key, Lister, Object, ReadError};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::ObjectReference;
use serde::de::DeserializeOwned;

use crate::{
    client::ClientError,
    context::Context,
    dispatch::{Departed, Ended, Runner},
    reconcile::{Fault, Outcome, Reconciler},
};

pub(crate) struct TypedRunner<K, R> {
    lister: Lister<K>,
    reconciler: R,
    departed: Departed,
}

impl<K, R> TypedRunner<K, R> {
    pub(crate) fn new(lister: Lister<K>, reconciler: R, departed: Departed) -> Self {
        Self {
            lister,
            reconciler,
            departed,
        }
    }
}

impl<K, R> Runner for TypedRunner<K, R>
where
    K: DeserializeOwned + Send + Sync + 'static,
    R: Reconciler<K>,
{
    fn run(self: Arc<Self>, cx: Context) -> BoxFuture<'static, Ended> {
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
            let outcome = match object {
                Ok(Some(object)) => {
                    // what departed under this name before is history: the reconciler looks at what is there now
                    if let Some(before) = before {
                        self.departed.settle(&before);
                    }
                    self.reconciler.reconcile(object, &cx).await
                }
                Ok(None) => {
                    let last = self.departed.tell(cx.key());
                    let typed = last.as_ref().and_then(|last| last.decode::<K>().ok());
                    let outcome = self.reconciler.gone(cx.key(), typed, &cx).await;
                    // as long as it asks to be told again, it is, also after a crash
                    if let (Ok(Outcome::Done | Outcome::GiveUp(_)), Some(last)) = (&outcome, last) {
                        self.departed.settle(&last);
                    }
                    outcome
                }
                // a mapper or an owner reference named it: it is another process's business
                Err(error @ ReadError::OutOfScope { .. }) => {
                    tracing::debug!(key = %cx.key(), "not reconciled: {error}");
                    if let Some(before) = before {
                        self.departed.settle(&before);
                    }
                    return Ended::Outcome(Outcome::Done);
                }
                Err(ReadError::Undecodable(error)) => return Ended::Undecodable(error.to_string()),
                Err(error) => {
                    let fault = Fault::Infrastructure { retry_after: None };
                    return Ended::Failed {
                        message: error.to_string(),
                        fault,
                    };
                }
            };
            match outcome {
                Ok(outcome) => Ended::Outcome(outcome),
                Err(error) => Ended::Failed {
                    fault: self.reconciler.classify(&error),
                    message: chain(&error),
                },
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
