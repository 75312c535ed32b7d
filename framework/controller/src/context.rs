//! What one run of a reconciler is handed: who it is, the client, and the writes that are remembered for its next run.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc, time::Instant};

use boatswain_cache::{Key, Kind, Live, Version};
use boatswain_supervision::Clock;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{autoscaling::v1::Scale, core::v1::ObjectReference},
};
use kube::{
    Api, Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::json;

use crate::{
    builder::Watchable,
    client::ClientError,
    dispatch::Writes,
    reconcile::Causes,
    recorder::{Note, Recorder, Severity},
};

/// What a kind must be for the typed helpers of [`Context`]: a namespaced type known at compile time.
pub trait Namespaced:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Namespaced for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// What all runs of one controller share.
pub(crate) struct Surroundings {
    pub(crate) controller: String,
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) writes: Writes,
}

impl Surroundings {
    /// Tells of trouble on an object.
    pub(crate) fn warn(&self, regarding: ObjectReference, reason: &'static str, note: String) {
        self.publish(regarding, Severity::Warning, reason, note);
    }

    fn publish(
        &self,
        regarding: ObjectReference,
        severity: Severity,
        reason: &'static str,
        note: String,
    ) {
        self.recorder.publish(Note {
            regarding,
            severity,
            reason,
            note,
            controller: self.controller.clone(),
            at: self.wall(),
        });
    }

    pub(crate) fn wall(&self) -> jiff::Timestamp {
        jiff::Timestamp::try_from(self.clock.wall()).unwrap_or(jiff::Timestamp::MAX)
    }
}

/// One run of one key.
#[derive(Clone)]
pub struct Context {
    surroundings: Arc<Surroundings>,
    key: Key,
    attempt: u32,
    last: bool,
    causes: Causes,
}

impl Context {
    pub(crate) fn new(
        surroundings: Arc<Surroundings>,
        key: Key,
        attempt: u32,
        last: bool,
        causes: Causes,
    ) -> Self {
        Self {
            surroundings,
            key,
            attempt,
            last,
            causes,
        }
    }

    /// The key this run is for.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// How often this key failed in a row before this run: 0 for a first attempt.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Whether this is the last retry: the key is parked if this run, too, fails by its object's fault. For saying so in a status or an Event.
    pub fn last_attempt(&self) -> bool {
        self.last
    }

    /// Why the key runs. For logs: a reconciler that decides by it is edge-triggered and loses changes.
    pub fn causes(&self) -> Causes {
        self.causes
    }

    /// The monotonic time of the manager's clock.
    pub fn now(&self) -> Instant {
        self.surroundings.clock.now()
    }

    /// The wall-clock time, for what is written into objects.
    pub fn wall(&self) -> jiff::Timestamp {
        self.surroundings.wall()
    }

    /// The client itself, for requests that have no helper here. Writes made through it are not remembered: the key's next run
    /// may start before the cache shows them.
    pub fn client(&self) -> &kube::Client {
        &self.surroundings.client
    }

    /// Reads objects of kind `K` from the server itself, with a timeout and with errors told apart.
    pub fn live<K: Resource<DynamicType = ()> + 'static>(&self) -> Live<K> {
        Live::new(
            self.surroundings.client.clone(),
            Kind::of::<K>(),
            self.surroundings.clock.clone(),
        )
    }

    /// Reads an object from the server instead of the cache, within 10 s; `None` when it does not exist. [`Context::live`] tells its failures further apart.
    ///
    /// # Errors
    ///
    /// When the request fails. A resource that the server does not know is a failure ([`ClientError::is_not_found`]), not an object that is missing.
    ///
    /// # Cancellation safety
    ///
    /// It only reads.
    pub async fn get_live<K: Watchable>(&self, key: &Key) -> Result<Option<Arc<K>>, ClientError> {
        let answer = self.live::<K>().get_live(key).await;
        answer.map_err(ClientError::from)
    }

    /// Sets the replicas of `target` through its `scale` subresource, on condition that it is still the version at hand.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when the object changed, or was recreated, since it was read.
    ///
    /// # Cancellation safety
    ///
    /// When dropped the write may have happened or not; a later attempt with the same version then conflicts.
    pub async fn scale<K: Namespaced>(&self, target: &K, replicas: i32) -> Result<(), ClientError> {
        let key = key_of(target);
        let scale = json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {
                "name": key.name(),
                "namespace": key.namespace(),
                "uid": target.meta().uid,
                "resourceVersion": target.meta().resource_version,
            },
            "spec": { "replicas": replicas },
        });
        let error = |e| failed::<K>("update", "/scale", &key, e);
        let scale: Scale =
            serde_json::from_value(scale).map_err(|e| error(kube::Error::SerdeError(e)))?;
        let written = self
            .api::<K>(&key)
            .replace_scale(key.name(), &self.post(), &scale)
            .await
            .map_err(error)?;
        // the answer is of another kind: the labels are those of the target
        let labels = target.meta().labels.as_ref();
        self.wrote::<K>(&key, labels, written.metadata.resource_version.as_deref());
        Ok(())
    }

    /// Merges `status` into the status of `object`, on condition that it is still the version at hand.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when the object changed since it was read.
    pub async fn patch_status<K: Namespaced>(
        &self,
        object: &K,
        status: &impl Serialize,
    ) -> Result<K, ClientError> {
        let key = key_of(object);
        let patch = json!({
            // it names the incarnation, too: a recreated object has another
            "metadata": { "resourceVersion": object.meta().resource_version },
            "status": status,
        });
        let answer = self
            .api::<K>(&key)
            .patch_status(key.name(), &PatchParams::default(), &Patch::Merge(&patch))
            .await;
        self.written("patch", "/status", &key, answer)
    }

    /// Creates `object` or changes it to what is given, by server-side apply with the controller's name as field manager.
    /// Fields that another manager owns are taken over.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn apply<K: Namespaced>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let mut body = serde_json::to_value(object)
            .map_err(|e| failed::<K>("patch", "", &key, kube::Error::SerdeError(e)))?;
        // typed objects of k8s-openapi carry these already, custom resources too; a hand-written type may not
        body["apiVersion"] = json!(K::api_version(&()));
        body["kind"] = json!(K::kind(&()));
        let params = PatchParams::apply(&self.surroundings.controller).force();
        let answer = self
            .api::<K>(&key)
            .patch(key.name(), &params, &Patch::Apply(&body))
            .await;
        self.written("patch", "", &key, answer)
    }

    /// Creates `object`.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_already_exists`] when one of that name is there.
    pub async fn create<K: Namespaced>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let answer = self.api::<K>(&key).create(&self.post(), object).await;
        self.written("create", "", &key, answer)
    }

    /// Replaces `object`, on condition that it is still the version it carries.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when it changed since it was read.
    pub async fn replace<K: Namespaced>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let answer = self
            .api::<K>(&key)
            .replace(key.name(), &self.post(), object)
            .await;
        self.written("update", "", &key, answer)
    }

    /// Deletes exactly the incarnation `object` is (its uid); one that is gone already is no error.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when another object has taken the name.
    pub async fn delete<K: Namespaced>(&self, object: &K) -> Result<(), ClientError> {
        let key = key_of(object);
        let preconditions = Preconditions {
            uid: object.uid(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        match self.api::<K>(&key).delete(key.name(), &params).await {
            Ok(_) => Ok(()),
            Err(error) => {
                let error = failed::<K>("delete", "", &key, error);
                if error.is_not_found() {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Tells the story on `object`: a Normal Event. Never blocks and never fails a run; what cannot be delivered is counted.
    pub fn event<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &'static str,
        note: impl Into<String>,
    ) {
        self.publish(object, Severity::Normal, reason, note.into());
    }

    /// As [`Context::event`], for what a person should look at: a Warning Event.
    pub fn warning<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        reason: &'static str,
        note: impl Into<String>,
    ) {
        self.publish(object, Severity::Warning, reason, note.into());
    }

    fn publish<K: Resource<DynamicType = ()>>(
        &self,
        object: &K,
        severity: Severity,
        reason: &'static str,
        note: String,
    ) {
        let regarding = ObjectReference {
            resource_version: None,
            ..object.object_ref(&())
        };
        self.surroundings.publish(regarding, severity, reason, note);
    }

    fn api<K: Namespaced>(&self, key: &Key) -> Api<K> {
        let client = self.surroundings.client.clone();
        Api::namespaced(client, key.namespace().unwrap_or("default"))
    }

    fn post(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.surroundings.controller.clone()),
            ..PostParams::default()
        }
    }

    /// The answer to a write: what was written is remembered for the key's next run.
    fn written<K: Namespaced>(
        &self,
        verb: &'static str,
        subresource: &str,
        key: &Key,
        answer: Result<K, kube::Error>,
    ) -> Result<K, ClientError> {
        let written = answer.map_err(|e| failed::<K>(verb, subresource, key, e))?;
        // the server's key: it may have made up the name
        self.wrote::<K>(
            &key_of(&written),
            written.meta().labels.as_ref(),
            written.meta().resource_version.as_deref(),
        );
        Ok(written)
    }

    fn wrote<K: Namespaced>(
        &self,
        object: &Key,
        labels: Option<&BTreeMap<String, String>>,
        version: Option<&str>,
    ) {
        if let Some(version) = version {
            let none = BTreeMap::new();
            self.surroundings.writes.record(
                &self.key,
                &Kind::of::<K>(),
                object,
                labels.unwrap_or(&none),
                &Version::new(version),
            );
        }
    }
}

/// The key of an object.
pub fn key_of<K: Resource>(object: &K) -> Key {
    Key::of(object)
}

fn failed<K: Namespaced>(
    verb: &'static str,
    subresource: &str,
    key: &Key,
    source: kube::Error,
) -> ClientError {
    ClientError {
        verb,
        resource: format!("{}{subresource}", K::plural(&())),
        key: key.clone(),
        source: Box::new(source),
    }
}
