//! Reading and writing without HTTP, for setting a scene and for looking at it.

use serde_json::Value;
use std::sync::Arc;

use crate::{
    ApiSim,
    api::{
        State,
        delete::{Deletion, Propagation},
        patch::Dialect,
        place,
        read::ListOptions,
    },
    failure::Failure,
    model::served::Served,
};

const MANAGER: &str = "apisim";

fn served_as(state: &State, api_version: &str, kind: &str) -> Result<Arc<Served>, Failure> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let found = state.registry.find_kind(group, version, kind).cloned();
    found.ok_or_else(|| {
        Failure::new(
            404,
            "NotFound",
            format!("no matches for kind \"{kind}\" in version \"{api_version}\""),
        )
    })
}

fn part<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object
        .pointer(pointer)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn namespace_of(served: &Served, namespace: &str) -> String {
    match (served.namespaced, namespace) {
        (true, "") => "default".into(),
        (true, namespace) => namespace.into(),
        (false, _) => String::new(),
    }
}

/// These calls are not requests: no rights are asked, no fault applies, nothing is logged. Otherwise they behave as
/// the same requests do. An empty namespace means `default` for kinds that live in namespaces.
impl ApiSim {
    /// Creates an object, told by its `apiVersion` and `kind`.
    ///
    /// # Errors
    /// What a client would be answered.
    pub fn create(&self, object: Value) -> Result<Value, Failure> {
        let mut write = self.inner.own_write(MANAGER, "");
        self.inner.with(|state| {
            let served = served_as(state, part(&object, "/apiVersion"), part(&object, "/kind"))?;
            let namespace = namespace_of(&served, part(&object, "/metadata/namespace"));
            let stored = state.create(&served, &namespace, object, &mut write)?;
            Ok(served.render(&stored.body))
        })
    }

    /// Creates every document of a YAML stream, such as a file of manifests.
    ///
    /// # Errors
    /// A document that is no YAML, or what a client would be answered.
    pub fn create_yaml(&self, text: &str) -> Result<Vec<Value>, Failure> {
        let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
            Failure::bad_request(format!("error parsing the YAML documents: {error}"))
        })?;
        documents
            .into_iter()
            .filter(|document| !document.is_null())
            .map(|document| self.create(document))
            .collect()
    }

    /// An object; `None` if there is none of that name.
    ///
    /// # Errors
    /// A kind that is not served.
    pub fn get(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, Failure> {
        self.inner.with(|state| {
            let served = served_as(state, api_version, kind)?;
            let key = place(&served, &namespace_of(&served, namespace), name);
            Ok(state
                .store
                .get(&served.collection, &key)
                .map(|object| served.render(&object.body)))
        })
    }

    /// All objects of a kind; of all namespaces when `namespace` is empty.
    ///
    /// # Errors
    /// A kind that is not served.
    pub fn list(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
    ) -> Result<Vec<Value>, Failure> {
        self.inner.with(|state| {
            let served = served_as(state, api_version, kind)?;
            let page = state.list(&served, namespace, &ListOptions::default())?;
            Ok(page
                .objects
                .iter()
                .map(|object| served.render(&object.body))
                .collect())
        })
    }

    /// Merges a JSON merge patch into an object.
    ///
    /// # Errors
    /// What a client would be answered.
    pub fn patch(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        patch: &Value,
    ) -> Result<Value, Failure> {
        self.patched(api_version, kind, namespace, name, "", patch)
    }

    /// Merges a JSON merge patch into the status of an object.
    ///
    /// # Errors
    /// What a client would be answered.
    pub fn patch_status(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        status: &Value,
    ) -> Result<Value, Failure> {
        self.patched(
            api_version,
            kind,
            namespace,
            name,
            "status",
            &serde_json::json!({"status": status}),
        )
    }

    fn patched(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
        subresource: &'static str,
        patch: &Value,
    ) -> Result<Value, Failure> {
        let mut write = self.inner.own_write(MANAGER, subresource);
        self.inner.with(|state| {
            let served = served_as(state, api_version, kind)?;
            let namespace = namespace_of(&served, namespace);
            let (stored, _) =
                state.patch(&served, &namespace, name, Dialect::Merge, patch, &mut write)?;
            Ok(served.render(&stored.body))
        })
    }

    /// Deletes an object; its dependents are left to the garbage collector of the [`World`](crate::World).
    ///
    /// # Errors
    /// What a client would be answered.
    pub fn delete(
        &self,
        api_version: &str,
        kind: &str,
        namespace: &str,
        name: &str,
    ) -> Result<(), Failure> {
        let write = self.inner.own_write(MANAGER, "");
        self.inner.with(|state| {
            let served = served_as(state, api_version, kind)?;
            let deletion = Deletion {
                propagation: Propagation::Background,
                ..Deletion::default()
            };
            state
                .delete(
                    &served,
                    &namespace_of(&served, namespace),
                    name,
                    &deletion,
                    &write,
                )
                .map(drop)
        })
    }
}
