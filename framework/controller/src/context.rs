//! What one run of a reconciler is handed: who it is, the client, and the writes that are remembered for its next run.

mod update;

use std::{fmt::Debug, sync::Arc, time::Instant};

use boatswain_cache::{Key, Kind, Live, Scope};
use boatswain_supervision::Clock;
use k8s_openapi::{
    NamespaceResourceScope,
    api::{autoscaling::v1::Scale, core::v1::ObjectReference},
};
use kube::{
    Resource, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions},
    core::{DynamicObject, Request},
};
use serde::{
    Serialize,
    de::{DeserializeOwned, IgnoredAny},
};
use serde_json::json;

use update::would_change;

use crate::{
    builder::{Readable, Watchable},
    client::{ClientError, recording},
    dispatch::{Echoes, Writes},
    explain::{ReconcileId, Trail},
    identity::Identified,
    reconcile::Causes,
    recorder::{Note, Recorder, Severity},
};

/// What a kind must be for the typed helpers of [`Context`]: a type known at compile time, in namespaces or not.
pub trait Writable:
    Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Writable for K where
    K: Resource<DynamicType = ()>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// A [`Writable`] kind with objects in namespaces.
pub trait Namespaced: Writable + Resource<Scope = NamespaceResourceScope> {}

impl<K> Namespaced for K where K: Writable + Resource<Scope = NamespaceResourceScope> {}

/// What all runs of one controller share.
#[derive(Clone)]
pub(crate) struct Surroundings {
    pub(crate) controller: String,
    pub(crate) client: kube::Client,
    pub(crate) clock: Clock,
    pub(crate) recorder: Recorder,
    pub(crate) writes: Arc<Writes>,
    pub(crate) echoes: Arc<Echoes>,
}

impl Surroundings {
    /// Tells of trouble on an object.
    pub(crate) fn warn(&self, regarding: ObjectReference, reason: &'static str, note: String) {
        let note = Note::on(regarding, Severity::Warning, reason, note);
        self.recorder.publish(&self.controller, &note);
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
    id: ReconcileId,
    trail: Arc<Trail>,
}

impl Context {
    pub(crate) fn new(
        surroundings: Arc<Surroundings>,
        key: Key,
        attempt: u32,
        last: bool,
        causes: Causes,
        id: ReconcileId,
    ) -> Self {
        Self {
            surroundings,
            key,
            attempt,
            last,
            causes,
            id,
            trail: Arc::default(),
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

    /// The name of this run: that of its span in logs, and in [explanations](crate::ControllerHandle::explain). No two runs of a process have the same.
    pub fn id(&self) -> ReconcileId {
        self.id
    }

    pub(crate) fn trail(&self) -> &Arc<Trail> {
        &self.trail
    }

    /// The monotonic time of the manager's clock.
    pub fn now(&self) -> Instant {
        self.surroundings.clock.now()
    }

    /// The wall-clock time, for what is written into objects.
    pub fn wall(&self) -> jiff::Timestamp {
        self.surroundings.wall()
    }

    /// A client for requests that have no helper here. It remembers whatever is written through it, by any verb and subresource, also by a clone and after
    /// the run: the next run of this key does not start before the caches show it.
    ///
    /// # Guarantees
    ///
    /// - Kinds that the controller does not read are not waited for, and a run waits for the caches 5 s at most, whoever goes on writing meanwhile.
    /// - A write whose answer is lost, because it timed out or its future was dropped, is asked about before the next run, within 10 s; the key backs off while
    ///   the server cannot say.
    /// - Writes made through other clients, such as that of [`Wiring`](crate::Wiring), are not remembered.
    ///
    /// Away from every tokio runtime it is an ordinary client, which remembers nothing.
    pub fn client(&self) -> &kube::Client {
        let make = || recording(&self.surroundings, &self.key, &self.trail);
        self.trail.client.get_or_init(make)
    }

    /// Reads objects of kind `K` from the server itself, with a timeout and with errors told apart.
    pub fn live<K: Resource<DynamicType = ()> + 'static>(&self) -> Live<K> {
        self.live_of(Kind::of::<K>())
    }

    /// As [`Context::live`], for a kind that is known at run time only.
    pub fn live_of_kind(&self, kind: Kind) -> Live<DynamicObject> {
        self.live_of(kind)
    }

    fn live_of<K>(&self, kind: Kind) -> Live<K> {
        let Surroundings { client, clock, .. } = &*self.surroundings;
        Live::new(client.clone(), kind, clock.clone())
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
        self.get_live_of(Kind::of::<K>(), key).await
    }

    pub(crate) async fn get_live_of<K: Readable>(
        &self,
        kind: Kind,
        key: &Key,
    ) -> Result<Option<Arc<K>>, ClientError> {
        let answer = self.live_of::<K>(kind).get_live(key).await;
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
    pub async fn scale<K: Writable>(&self, target: &K, replicas: i32) -> Result<(), ClientError> {
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
        let request = Self::path::<K>(&key).replace_subresource(
            "scale",
            key.name(),
            &self.post(),
            scale.to_string().into_bytes(),
        );
        let scaled: Result<Scale, _> = self.send::<K, _>("update", "/scale", &key, request).await;
        scaled.map(drop)
    }

    /// Merges `status` into the status of `object`, on condition that it is still the version at hand. If that would change nothing, nothing is sent, and the
    /// object is returned as it is.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when the object changed since it was read.
    pub async fn patch_status<K: Writable>(
        &self,
        object: &K,
        status: &impl Serialize,
    ) -> Result<K, ClientError> {
        let key = key_of(object);
        let unsendable = |e| failed::<K>("patch", "/status", &key, kube::Error::SerdeError(e));
        let status = serde_json::to_value(status).map_err(unsendable)?;
        let now = serde_json::to_value(object).map_err(unsendable)?;
        if !would_change(&now["status"], &status) {
            return Ok(object.clone());
        }
        let patch = json!({
            // it names the incarnation, too: a recreated object has another
            "metadata": { "resourceVersion": object.meta().resource_version },
            "status": status,
        });
        let (params, patch) = (PatchParams::default(), Patch::Merge(&patch));
        let request =
            Self::path::<K>(&key).patch_subresource("status", key.name(), &params, &patch);
        self.send::<K, _>("patch", "/status", &key, request).await
    }

    /// Creates `object` or changes it to what is given, by server-side apply with the controller's name as field manager.
    /// Fields that another manager owns are taken over. An object as it was read can be given: what the server alone writes of its metadata is left out.
    ///
    /// # Errors
    ///
    /// When the request fails.
    pub async fn apply<K: Writable>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let mut body = serde_json::to_value(object)
            .map_err(|e| failed::<K>("patch", "", &key, kube::Error::SerdeError(e)))?;
        // typed objects of k8s-openapi carry these already, custom resources too; a hand-written type may not
        body["apiVersion"] = json!(K::api_version(&()));
        body["kind"] = json!(K::kind(&()));
        if let Some(metadata) = body["metadata"].as_object_mut() {
            // the API refuses it
            metadata.remove("managedFields");
        }
        let params = PatchParams::apply(&self.surroundings.controller).force();
        let request = Self::path::<K>(&key).patch(key.name(), &params, &Patch::Apply(&body));
        self.send::<K, _>("patch", "", &key, request).await
    }

    /// Creates `object`; the server makes up its name where it has none but a `generateName`.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_already_exists`] when one of that name is there.
    pub async fn create<K: Writable>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let request =
            Self::body(object).and_then(|body| Self::path::<K>(&key).create(&self.post(), body));
        self.send::<K, _>("create", "", &key, request).await
    }

    /// Replaces `object`, on condition that it is still the version it carries.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when it changed since it was read.
    pub async fn replace<K: Writable>(&self, object: &K) -> Result<K, ClientError> {
        let key = key_of(object);
        let request = Self::body(object)
            .and_then(|body| Self::path::<K>(&key).replace(key.name(), &self.post(), body));
        self.send::<K, _>("update", "", &key, request).await
    }

    /// Deletes exactly the incarnation `object` is (its uid); one that is gone already is no error.
    ///
    /// # Errors
    ///
    /// [`ClientError::is_conflict`] when another object has taken the name.
    pub async fn delete<K: Writable>(&self, object: &K) -> Result<(), ClientError> {
        let key = key_of(object);
        let preconditions = Preconditions {
            uid: object.uid(),
            resource_version: None,
        };
        let params = DeleteParams {
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        let request = Self::path::<K>(&key).delete(key.name(), &params);
        let answer: Result<IgnoredAny, _> = self.send::<K, _>("delete", "", &key, request).await;
        match answer {
            Err(error) if !error.is_not_found() => Err(error),
            _ => Ok(()),
        }
    }

    /// Tells the story on `object`: a Normal Event. Short for [`Context::tell`].
    pub fn event<K: Identified>(&self, object: &K, reason: &'static str, note: impl Into<String>) {
        self.tell(&Note::normal(object, reason, note));
    }

    /// As [`Context::event`], for what a person should look at: a Warning Event.
    pub fn warning<K: Identified>(
        &self,
        object: &K,
        reason: &'static str,
        note: impl Into<String>,
    ) {
        self.tell(&Note::warning(object, reason, note));
    }

    /// Tells `note` as an Event. Never waits and never fails a run: what cannot be delivered is dropped and counted (`event_recorder_dropped_total`).
    ///
    /// What is told again of the same object, in the same words, raises the count of its Event until it has been quiet for six minutes. Of one object a
    /// controller tells 25 different things at once, and then one in five minutes.
    pub fn tell(&self, note: &Note) {
        let Surroundings {
            recorder,
            controller,
            ..
        } = &*self.surroundings;
        recorder.publish(controller, note);
    }

    /// Says what this run decided, in words for whoever asks [why a key does or does not run](crate::ControllerHandle::explain), in a terminal or on the
    /// dashboard: `Contended: hpa keeps setting Deployment web to 5 replicas`. Of several the last counts; a quarter of a kilobyte is kept.
    ///
    /// An [`Outcome`](crate::Outcome) only says when the key runs next. What users of the object are to know belongs into its status or an Event.
    pub fn decided(&self, words: impl Into<String>) {
        self.trail.decided(words.into());
    }

    /// Where objects of this kind are, next to `key`.
    fn path<K: Resource<DynamicType = ()> + 'static>(key: &Key) -> Request {
        Self::path_of(&Kind::of::<K>(), key)
    }

    pub(crate) fn path_of(kind: &Kind, key: &Key) -> Request {
        let scope = Scope::namespace(key.namespace().unwrap_or("default"));
        Request::new(kind.path(&scope))
    }

    fn body(object: &impl Serialize) -> Result<Vec<u8>, kube::core::request::Error> {
        serde_json::to_vec(object).map_err(kube::core::request::Error::SerializeBody)
    }

    /// Who writes: the controller.
    pub(crate) fn manager(&self) -> &str {
        &self.surroundings.controller
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.surroundings.clock
    }

    fn post(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.surroundings.controller.clone()),
            ..PostParams::default()
        }
    }

    async fn send<K: Resource<DynamicType = ()>, T: DeserializeOwned>(
        &self,
        verb: &'static str,
        subresource: &str,
        key: &Key,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ClientError> {
        let answer = self.answer(verb, request).await;
        answer.map_err(|error| failed::<K>(verb, subresource, key, error))
    }

    async fn answer<T: DeserializeOwned>(
        &self,
        verb: &'static str,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> kube::Result<T> {
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        // metrics and limits of the client go by it
        request.extensions_mut().insert(verb);
        self.client().request(request).await
    }

    /// Patches an object of any kind.
    pub(crate) async fn patch<T: DeserializeOwned>(
        &self,
        kind: &Kind,
        key: &Key,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<T, ClientError> {
        let answer = self.answer("patch", request).await;
        answer.map_err(|error| failed_on(&kind.plural, "patch", "", key, error))
    }
}

/// The key of an object.
pub fn key_of<K: Resource>(object: &K) -> Key {
    Key::of(object)
}

fn failed<K: Resource<DynamicType = ()>>(
    verb: &'static str,
    subresource: &str,
    key: &Key,
    source: kube::Error,
) -> ClientError {
    failed_on(&K::plural(&()), verb, subresource, key, source)
}

fn failed_on(
    plural: &str,
    verb: &'static str,
    subresource: &str,
    key: &Key,
    source: kube::Error,
) -> ClientError {
    ClientError {
        verb,
        resource: format!("{plural}{subresource}"),
        key: key.clone(),
        source: Box::new(source),
    }
}
