//! What the server says of itself.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{answer::Answer, openapi, service::Asked};
use crate::{
    failure::Failure,
    model::{registry::Registry, served::Served},
};

/// Answers a path that is no resource.
pub(super) fn answer(asked: &Asked<'_>, segments: &[String]) -> Result<Answer, Failure> {
    if !matches!(*asked.method, ::http::Method::GET | ::http::Method::HEAD) {
        return Err(Failure::method_not_allowed());
    }
    let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
    let missing = || Ok(Answer::text(404, "404 page not found\n"));
    let aggregated = ["v2", "v2beta1"].into_iter().find(|version| {
        let wanted = |media: &str| {
            media.contains("as=APIGroupDiscoveryList") && media.contains(&format!("v={version};"))
        };
        asked
            .accept
            .split(',')
            .any(|media| wanted(&format!("{};", media.trim())))
    });
    let read =
        |act: &dyn Fn(&Registry) -> Option<Value>| asked.inner.with(|state| act(&state.registry));
    let found = match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => return Ok(Answer::text(200, "ok")),
        ["version"] => Some(version(&asked.inner.options.version)),
        ["openapi", "v2"] => return Ok(openapi::v2(asked)),
        ["openapi", "v3"] => read(&|registry| Some(openapi::root(registry))),
        ["openapi", "v3", "api", version] => {
            read(&|registry| openapi::document(registry, "", version))
        }
        ["openapi", "v3", "apis", group, version] => {
            read(&|registry| openapi::document(registry, group, version))
        }
        ["api"] if aggregated.is_some() => {
            return Ok(self::aggregated(
                asked,
                true,
                aggregated.unwrap_or_default(),
            ));
        }
        ["apis"] if aggregated.is_some() => {
            return Ok(self::aggregated(
                asked,
                false,
                aggregated.unwrap_or_default(),
            ));
        }
        ["api"] => Some(
            json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ),
        ["api", version] => read(&|registry| resources(registry, "", version)),
        ["apis"] => read(&|registry| {
            let groups: Vec<Value> = groups(registry)
                .map(|(name, versions)| group_of(&name, &versions))
                .collect();
            Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
        }),
        ["apis", group] => read(&|registry| {
            let versions = groups(registry).find(|(name, _)| name == group)?.1;
            let mut found = group_of(group, &versions);
            found["kind"] = "APIGroup".into();
            found["apiVersion"] = "v1".into();
            Some(found)
        }),
        ["apis", group, version] => read(&|registry| resources(registry, group, version)),
        [] => read(&|registry| {
            let mut paths = vec!["/api".to_owned(), "/api/v1".into(), "/apis".into()];
            for (group, versions) in groups(registry) {
                paths.extend(
                    versions
                        .iter()
                        .map(|version| format!("/apis/{group}/{version}")),
                );
            }
            paths.extend(
                [
                    "/healthz",
                    "/livez",
                    "/openapi/v2",
                    "/openapi/v3",
                    "/readyz",
                    "/version",
                ]
                .map(str::to_owned),
            );
            Some(json!({"paths": paths}))
        }),
        _ => None,
    };
    found.map_or_else(missing, |value| Ok(Answer::value(200, &value)))
}

fn version(git: &str) -> Value {
    let mut parts = git.trim_start_matches('v').split('.');
    let (major, minor) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    json!({
        "major": major, "minor": minor, "gitVersion": git, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "simulated",
    })
}

fn groups(registry: &Registry) -> impl Iterator<Item = (String, Vec<String>)> {
    registry
        .groups()
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
}

fn group_of(name: &str, versions: &[String]) -> Value {
    let of =
        |version: &String| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let all: Vec<Value> = versions.iter().map(of).collect();
    json!({"name": name, "versions": all, "preferredVersion": all.first()})
}

fn subresources(served: &Served) -> Vec<(&'static str, Value, &'static [&'static str])> {
    let own = json!({"group": served.group, "version": served.version, "kind": served.kind});
    let mut all: Vec<(&str, Value, &[&str])> = Vec::new();
    if served.plural == "namespaces" && served.group.is_empty() {
        all.push(("finalize", own.clone(), &["update"]));
    }
    if served.scale.is_some() {
        let scale = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
        all.push(("scale", scale, &["get", "patch", "update"]));
    }
    if served.status {
        all.push(("status", own, &["get", "patch", "update"]));
    }
    all
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for served in registry.of_version(group, version) {
        let mut resource = json!({
            "name": served.plural, "singularName": served.singular, "namespaced": served.namespaced, "kind": served.kind, "verbs": served.verbs,
        });
        if !served.short_names.is_empty() {
            resource["shortNames"] = json!(served.short_names);
        }
        if !served.categories.is_empty() {
            resource["categories"] = json!(served.categories);
        }
        list.push(resource);
        for (name, kind, verbs) in subresources(served) {
            let mut resource = json!({
                "name": format!("{}/{name}", served.plural), "singularName": "", "namespaced": served.namespaced,
                "kind": kind["kind"], "verbs": verbs,
            });
            if kind["group"] != served.group {
                resource["group"] = kind["group"].clone();
                resource["version"] = kind["version"].clone();
            }
            list.push(resource);
        }
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    (!list.is_empty()).then(|| json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": list}))
}

fn aggregated(asked: &Asked<'_>, core: bool, discovery: &'static str) -> Answer {
    let list = asked.inner.with(|state| {
        let registry = &state.registry;
        let wanted = registry.groups().into_iter().filter(|(name, _)| name.is_empty() == core);
        let group = |(name, versions): (String, Vec<String>)| {
            let version = |version: &String| {
                let resources: Vec<Value> = registry.of_version(&name, version).map(|served| aggregated_resource(served)).collect();
                json!({"version": version, "freshness": "Current", "resources": resources})
            };
            let meta = if core { json!({"creationTimestamp": null}) } else { json!({"name": name, "creationTimestamp": null}) };
            json!({"metadata": meta, "versions": versions.iter().map(version).collect::<Vec<_>>()})
        };
        let items: Vec<Value> = wanted.map(group).collect();
        json!({
            "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{discovery}"), "metadata": {}, "items": items,
        })
    });
    let content_type = match discovery {
        "v2" => "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        _ => "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
    };
    Answer::bytes(content_type, Bytes::from(list.to_string()))
}

fn aggregated_resource(served: &Served) -> Value {
    let subs = subresources(served).into_iter();
    let subs: Vec<Value> = subs.map(|(name, kind, verbs)| json!({"subresource": name, "responseKind": kind, "verbs": verbs})).collect();
    let mut resource = json!({
        "resource": served.plural,
        "responseKind": {"group": served.group, "version": served.version, "kind": served.kind},
        "scope": if served.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": served.singular,
        "verbs": served.verbs,
    });
    for (name, list) in [
        ("shortNames", &served.short_names),
        ("categories", &served.categories),
    ] {
        if !list.is_empty() {
            resource[name] = json!(list);
        }
    }
    if !subs.is_empty() {
        resource["subresources"] = subs.into();
    }
    resource
}
