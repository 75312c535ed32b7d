//! What the stored Roles and their bindings allow, as the RBAC authorizer of the real server reads them; pure.

use serde_json::Value;

use crate::{
    attributes::Attributes,
    model::object::{Body, Collection, Key, at, text},
    store::Store,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Whether a binding gives the user of the request a role that allows it.
pub(crate) fn allows(store: &Store, request: &Attributes) -> bool {
    let everywhere = bindings(store, "clusterrolebindings", "");
    let here = (!request.namespace.is_empty())
        .then(|| bindings(store, "rolebindings", &request.namespace))
        .into_iter()
        .flatten();
    everywhere
        .chain(here)
        .filter(|binding| is_about(binding, &request.user))
        .any(|binding| permits(store, binding, request))
}

fn bindings<'a>(
    store: &'a Store,
    plural: &str,
    namespace: &str,
) -> impl Iterator<Item = &'a Body> + use<'a> {
    let objects: Vec<_> = store
        .scan(&Collection::new(GROUP, plural), namespace)
        .collect();
    objects.into_iter().map(|object| &object.body)
}

fn is_about(binding: &Body, user: &str) -> bool {
    let subjects = binding.get("subjects").and_then(Value::as_array);
    subjects.into_iter().flatten().any(|subject| {
        let part = |name: &str| {
            subject
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        match part("kind") {
            "User" => part("name") == user,
            "ServiceAccount" => {
                user == format!(
                    "system:serviceaccount:{}:{}",
                    part("namespace"),
                    part("name")
                )
            }
            "Group" => part("name") == "system:authenticated",
            _ => false,
        }
    })
}

fn permits(store: &Store, binding: &Body, request: &Attributes) -> bool {
    let name = text(binding, &["roleRef", "name"]).unwrap_or_default();
    let (plural, namespace) = match text(binding, &["roleRef", "kind"]) {
        Some("ClusterRole") => ("clusterroles", ""),
        _ => (
            "roles",
            text(binding, &["metadata", "namespace"]).unwrap_or_default(),
        ),
    };
    let role = store.get(&Collection::new(GROUP, plural), &Key::new(namespace, name));
    let rules = role.and_then(|role| at(&role.body, &["rules"])?.as_array());
    rules
        .into_iter()
        .flatten()
        .any(|rule| matches(rule, request))
}

fn matches(rule: &Value, request: &Attributes) -> bool {
    let has = |name: &str, wanted: &str| {
        let values = rule.get(name).and_then(Value::as_array);
        values
            .into_iter()
            .flatten()
            .any(|value| value == "*" || value == wanted)
    };
    let resource = match request.subresource.as_str() {
        "" => request.resource.clone(),
        subresource => format!("{}/{subresource}", request.resource),
    };
    let names = rule.get("resourceNames").and_then(Value::as_array);
    let named = names.is_none_or(|names| {
        // the name of what is created is not known when rights are looked at
        names.is_empty() || request.verb != "create" && names.iter().any(|n| *n == request.name)
    });
    named
        && has("verbs", request.verb)
        && has("apiGroups", &request.group)
        && has("resources", &resource)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{ApiSim, Attributes};

    fn asks(user: &str, verb: &'static str, namespace: &str, name: &str) -> Attributes {
        Attributes {
            user: user.into(),
            verb,
            version: "v1".into(),
            resource: "configmaps".into(),
            namespace: namespace.into(),
            name: name.into(),
            ..Attributes::default()
        }
    }

    #[test]
    fn a_role_binds_in_its_namespace_and_a_cluster_role_everywhere() {
        let sim = ApiSim::default();
        let group = "rbac.authorization.k8s.io";
        let version = format!("{group}/v1");
        let role = |kind: &str, name: &str, namespace: Option<&str>, rule: serde_json::Value| {
            json!({
                "apiVersion": version, "kind": kind, "metadata": { "name": name, "namespace": namespace }, "rules": [rule],
            })
        };
        let bind = |kind: &str, role: &str, namespace: Option<&str>, subject: serde_json::Value| {
            json!({
                "apiVersion": version, "kind": format!("{kind}Binding"), "metadata": { "name": role, "namespace": namespace },
                "roleRef": { "apiGroup": group, "kind": kind, "name": role }, "subjects": [subject],
            })
        };
        let rule = |verb: &str, names: &[&str]| json!({ "apiGroups": [""], "resources": ["configmaps"], "verbs": [verb], "resourceNames": names });
        let anna = json!({ "apiGroup": group, "kind": "User", "name": "anna" });
        let account = json!({ "kind": "ServiceAccount", "name": "a", "namespace": "kube-system" });
        for object in [
            role("Role", "one", Some("default"), rule("get", &["x"])),
            bind("Role", "one", Some("default"), anna),
            role("ClusterRole", "all", None, rule("list", &[])),
            bind("ClusterRole", "all", None, account),
        ] {
            sim.create(object).expect("created");
        }
        let may = |request: Attributes| sim.inner.may(&request);
        assert!(may(asks("anna", "get", "default", "x")));
        assert!(!may(asks("anna", "get", "default", "y")));
        assert!(!may(asks("anna", "get", "kube-system", "x")));
        assert!(!may(asks("anna", "list", "default", "")));
        let account = "system:serviceaccount:kube-system:a";
        assert!(may(asks(account, "list", "default", "")));
        assert!(may(asks(account, "list", "", "")));
        assert!(!may(asks(account, "get", "default", "x")));
    }
}
