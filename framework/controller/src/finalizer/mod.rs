//! Finalizers: what lets a controller clean up before an object goes, also while no process of it runs.
//!
//! A controller whose reconciler is a [`Cleanup`] keeps its finalizer on every object it reconciles; it is put there before the first reconcile and taken away
//! when the cleanup of a deleted object is done. A controller whose reconciler is none (any more) takes it away wherever it finds it: so code can drop its
//! cleanup, and nothing stays undeletable.

mod patch;

use std::{future::Future, sync::Arc, time::Duration};

use boatswain_cache::{Key, Kind};
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Patch, PatchParams};
use serde_json::Value;

use crate::{
    builder::Reconcilable,
    client::{ClientError, status},
    context::{Context, key_of},
    names::qualified,
    reconcile::{Outcome, Reconciler},
};

/// A reconciler that has something to undo outside of an object before that goes. Handed over by
/// [`Controller::reconciler_with_cleanup`](crate::Controller::reconciler_with_cleanup).
///
/// # Guarantees
///
/// - [`reconcile`](Reconciler::reconcile) is called with objects that have the finalizer and are not being deleted, and with no others: whatever it does
///   outside, `cleanup` follows, whoever deletes the object and whether or not a process of the controller runs then.
/// - The finalizer is taken away only after `cleanup` returned [`Outcome::Done`]; finalizers of others are never touched.
/// - `cleanup` may be called again after it succeeded: when the process ends before the finalizer is taken away.
/// - An object that is being deleted and does not have the finalizer is left alone.
///
/// It takes the right to patch the controller's kind, which need not be [declared](crate::Controller::needs).
pub trait Cleanup<K>: Reconciler<K> {
    /// Undoes what was done for `object`, which is being deleted. [`Outcome::Done`] lets it go; with any other outcome it stays, and this is called again as the
    /// outcome says. An error is retried like one of [`reconcile`](Reconciler::reconcile).
    fn cleanup(
        &self,
        object: Arc<K>,
        cx: &Context,
    ) -> impl Future<Output = Result<Outcome, Self::Error>> + Send;
}

/// Calls the cleanup of a reconciler.
pub(crate) type CleanUp<K, R> =
    for<'a> fn(
        &'a R,
        Arc<K>,
        &'a Context,
    ) -> BoxFuture<'a, Result<Outcome, <R as Reconciler<K>>::Error>>;

/// Writes of a finalizer until a lost race is left to the key's next run.
const TRIES: u32 = 5;
/// The first pause before reading again; it doubles.
const PAUSE: Duration = Duration::from_millis(10);

/// A controller's finalizer, used or to be taken away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finalizer {
    /// Of the objects it is on.
    kind: Kind,
    name: String,
    is_used: bool,
}

/// What is to be done for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Reconcile,
    /// Put the finalizer on it.
    Add,
    CleanUp,
    /// Take the finalizer away.
    Remove,
    /// It is being deleted and does not wait for us.
    Leave,
}

impl Finalizer {
    /// That of `controller`, unless its author has chosen a name.
    pub(crate) fn of(kind: Kind, controller: &str, chosen: Option<String>, is_used: bool) -> Self {
        let own = || format!("boatswain/{}", qualified(controller).replace('/', "_"));
        Self {
            kind,
            name: chosen.unwrap_or_else(own),
            is_used,
        }
    }

    pub(crate) fn step(&self, object: &ObjectMeta) -> Step {
        let is_deleted = object.deletion_timestamp.is_some();
        match (self.is_used, self.is_on(object), is_deleted) {
            (false, false, _) | (true, true, false) => Step::Reconcile,
            (false, true, _) => Step::Remove,
            (true, true, true) => Step::CleanUp,
            (true, false, false) => Step::Add,
            (true, false, true) => Step::Leave,
        }
    }

    fn is_on(&self, object: &ObjectMeta) -> bool {
        let finalizers = object.finalizers.as_deref().unwrap_or_default();
        finalizers.contains(&self.name)
    }

    /// Puts it on `object`, if that is not being deleted, or takes it away. Returns the object as it is then; none if it is gone, or another one by now.
    ///
    /// # Errors
    ///
    /// When the server refuses, or the object is changed by others again and again.
    pub(crate) async fn put<K: Reconcilable>(
        &self,
        on: bool,
        object: Arc<K>,
        cx: &Context,
    ) -> Result<Option<Arc<K>>, ClientError> {
        let (key, uid) = (key_of(&*object), object.meta().uid.clone());
        let mut object = object;
        let mut pause = PAUSE;
        for tries in 1.. {
            let patch = match (on, self.is_on(object.meta())) {
                (true, false) if object.meta().deletion_timestamp.is_none() => {
                    patch::add(object.meta(), &self.name)
                }
                (false, true) => patch::remove(object.meta(), &self.name),
                _ => return Ok(Some(object)),
            };
            match self.send(&patch, &key, cx).await {
                Err(gone) if gone.is_not_found() => return Ok(None),
                Err(lost) if is_lost(&lost) && tries < TRIES => {}
                answer => return answer.map(|object| Some(Arc::new(object))),
            }
            cx.clock().sleep(pause).await;
            pause *= 2;
            object = match cx.get_live_of::<K>(self.kind.clone(), &key).await? {
                Some(found) if found.meta().uid == uid => found,
                _ => return Ok(None),
            };
        }
        Ok(None)
    }

    async fn send<K: Reconcilable>(
        &self,
        patch: &Value,
        key: &Key,
        cx: &Context,
    ) -> Result<K, ClientError> {
        let params = PatchParams {
            field_manager: Some(cx.manager().to_owned()),
            ..PatchParams::default()
        };
        let request = Context::path_of(&self.kind, key);
        let request = request.patch(key.name(), &params, &Patch::Merge(patch));
        let request = request.map(|mut request| {
            let json_patch = http::HeaderValue::from_static("application/json-patch+json");
            request
                .headers_mut()
                .insert(http::header::CONTENT_TYPE, json_patch);
            request
        });
        cx.patch(&self.kind, key, request).await
    }
}

/// Whether the object was not as the patch says: a test that fails is "unprocessable" to the API.
fn is_lost(error: &ClientError) -> bool {
    error.is_conflict() || status(&error.source).is_some_and(|status| status.code == 422)
}

#[cfg(test)]
mod tests;
