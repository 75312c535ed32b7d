//! Who led when, and who wrote although another led: told by the versions the server gave to writes, which are in the order it carried them out.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::audit::Request;

/// Who held a lease from which version on, by the users that replicas work as. Taken away by hand it is held by whoever is written in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reigns(BTreeMap<u64, String>);

impl Reigns {
    /// From the writes of `lease` in `namespace`. What is deleted stays with who held it, until another takes it.
    pub fn of(requests: &[Request], namespace: &str, lease: &str) -> Self {
        let writes = requests.iter().filter(|r| {
            r.resource == "leases" && r.namespace == namespace && r.changed && answers(r, lease)
        });
        let mut reigns = BTreeMap::new();
        for (version, holder) in writes.filter_map(|r| Some((r.version()?, holder(r)?))) {
            reigns.insert(version, holder);
        }
        // renewals are no reigns of their own
        let mut last = None;
        reigns.retain(|_, holder| last.replace(holder.clone()) != Some(holder.clone()));
        Self(reigns)
    }

    /// Who held it at `version`; nobody before the first claim.
    pub fn at(&self, version: u64) -> &str {
        let last = self.0.range(..=version).next_back();
        last.map_or("", |(_, holder)| holder)
    }

    /// From which version on who held it, in order. An empty name stands for nobody.
    pub fn list(&self) -> Vec<(u64, String)> {
        self.0
            .iter()
            .map(|(v, holder)| (*v, holder.clone()))
            .collect()
    }

    /// How often somebody took it over, be it a successor of the same name.
    pub fn takeovers(&self) -> usize {
        let holders = self.0.values().filter(|holder| !holder.is_empty());
        holders.count().saturating_sub(1)
    }
}

/// Accepted writes that changed something, of anything but leases, by a replica that did not hold the lease when the server carried them out.
pub fn trespasses(requests: &[Request], namespace: &str, lease: &str) -> Vec<String> {
    trespasses_among(requests, namespace, lease, |_| true)
}

/// As [`trespasses`], among the writes that are made under this lease and no other.
pub fn trespasses_among(
    requests: &[Request],
    namespace: &str,
    lease: &str,
    is_under: impl Fn(&Request) -> bool,
) -> Vec<String> {
    let reigns = Reigns::of(requests, namespace, lease);
    let mut found = Vec::new();
    for request in work(requests, namespace).filter(|request| is_under(request)) {
        // every answer to an accepted write bears a version
        let version = request.version().unwrap_or_default();
        let holder = reigns.at(version);
        if holder != request.user {
            let Request {
                user,
                verb,
                resource,
                subresource,
                name,
                ..
            } = request;
            found.push(format!(
                "{user}: {verb} {resource}/{subresource} {name} as version {version}, while {holder:?} held the lease; reigns: {:?}",
                reigns.0
            ));
        }
    }
    found
}

/// The accepted, changing writes of replicas, but for those of leases.
pub fn work<'a>(requests: &'a [Request], namespace: &'a str) -> impl Iterator<Item = &'a Request> {
    requests.iter().filter(move |r| {
        r.user.starts_with("replica-")
            && r.namespace == namespace
            && r.resource != "leases"
            && r.changed
            && r.verb != "delete"
    })
}

fn answers(request: &Request, lease: &str) -> bool {
    let name = request
        .answer
        .as_ref()
        .and_then(|a| a.pointer("/metadata/name"));
    name.and_then(Value::as_str) == Some(lease)
}

/// The user, which a replica's identity begins with.
fn holder(request: &Request) -> Option<String> {
    let holder = request.answer.as_ref()?.pointer("/spec/holderIdentity");
    let identity = holder.and_then(Value::as_str).unwrap_or_default();
    Some(identity.split('_').next().unwrap_or_default().to_owned())
}
