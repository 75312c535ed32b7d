//! What a path and a query ask for.

use std::{collections::BTreeMap, sync::Arc};

use ::http::{Method, Uri};

use crate::{
    attributes::Attributes,
    model::{registry::Registry, served::Served},
};

/// A path that names something.
#[derive(Clone, Debug)]
pub(super) enum Route {
    /// `/version`, `/healthz`, discovery and the like; the segments of the path.
    Meta(Vec<String>),
    Resource(Target),
    /// A well-formed path that nothing answers.
    Nothing,
}

/// A resource, one of its objects, or a part of one.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) served: Arc<Served>,
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) subresource: String,
}

/// The parameters of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        Self(
            pairs
                .map(|(name, value)| (name.into_owned(), value.into_owned()))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .get(name)
            .is_some_and(|value| matches!(value.as_str(), "" | "true" | "1"))
    }
}

fn decode(segment: &str) -> String {
    // a plus sign stands for itself in a path
    let query = segment.replace('+', "%2B");
    form_urlencoded::parse(query.as_bytes())
        .next()
        .map(|(name, _)| name.into_owned())
        .unwrap_or_default()
}

/// Finds what a path names.
pub(super) fn find(path: &str, registry: &Registry) -> Route {
    let segments: Vec<String> = path
        .split('/')
        .filter(|s| !s.is_empty())
        .map(decode)
        .collect();
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match parts.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Route::Meta(segments),
    };
    let (namespace, plural, tail) = match rest {
        ["namespaces", name, "status" | "finalize"] if group.is_empty() => {
            ("", "namespaces", vec![*name, rest[2]])
        }
        ["namespaces", namespace, plural, tail @ ..] => (*namespace, *plural, tail.to_vec()),
        [plural, tail @ ..] => ("", *plural, tail.to_vec()),
        [] => return Route::Nothing,
    };
    let Some(served) = registry.find(group, version, plural) else {
        return Route::Nothing;
    };
    // an object that lives in a namespace is not found without one, nor the other way round
    let across = served.namespaced && tail.is_empty();
    if served.namespaced == namespace.is_empty() && !across {
        return Route::Nothing;
    }
    let part = |index: usize| tail.get(index).copied().unwrap_or_default().to_owned();
    let target = Target {
        served: served.clone(),
        namespace: namespace.into(),
        name: part(0),
        subresource: part(1),
    };
    let known = match target.subresource.as_str() {
        "" => true,
        "status" => served.status,
        "scale" => served.scale.is_some(),
        "finalize" => served.plural == "namespaces" && served.group.is_empty(),
        "log" | "eviction" => served.plural == "pods" && served.group.is_empty(),
        _ => false,
    };
    if known && tail.len() <= 2 {
        Route::Resource(target)
    } else {
        Route::Nothing
    }
}

/// The verb of a request to a resource; `None` for a method that has none.
fn verb(method: &Method, target: &Target, query: &Query) -> Option<&'static str> {
    let named = !target.name.is_empty();
    Some(match *method {
        Method::GET if query.flag("watch") && target.subresource.is_empty() => "watch",
        Method::GET if named => "get",
        Method::GET => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => return None,
    })
}

/// The attributes of a request, for authorization, faults and the audit log.
pub(super) fn attributes(
    method: &Method,
    path: &str,
    route: &Route,
    query: &Query,
    user: &str,
) -> Option<Attributes> {
    let mut attributes = Attributes {
        user: user.into(),
        path: path.into(),
        ..Attributes::default()
    };
    if let Route::Resource(target) = route {
        attributes.verb = verb(method, target, query)?;
        attributes.group = target.served.group.clone();
        attributes.version = target.served.version.clone();
        attributes.resource = target.served.plural.clone();
        attributes.subresource = target.subresource.clone();
        attributes.namespace = target.namespace.clone();
        attributes.name = target.name.clone();
        // rights on a namespace itself are asked inside of it
        if target.served.plural == "namespaces" && target.served.group.is_empty() {
            attributes.namespace = target.name.clone();
        }
    } else {
        attributes.verb = match *method {
            Method::GET => "get",
            Method::POST => "post",
            Method::PUT => "put",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            Method::HEAD => "head",
            Method::OPTIONS => "options",
            _ => return None,
        };
    }
    Some(attributes)
}
