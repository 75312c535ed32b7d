//! Which resources are served.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use super::{builtin, object::Collection, served::Served};

/// All served resources, the built-in ones and those that CRDs brought.
#[derive(Clone, Debug)]
pub(crate) struct Registry {
    served: BTreeMap<(String, String, String), Arc<Served>>,
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Self {
            served: BTreeMap::new(),
        };
        registry.install(builtin::all());
        registry
    }
}

impl Registry {
    /// Serves these resources, in place of those of the same group, version and plural.
    pub(crate) fn install(&mut self, resources: impl IntoIterator<Item = Served>) {
        for served in resources {
            let path = (
                served.group.clone(),
                served.version.clone(),
                served.plural.clone(),
            );
            self.served.insert(path, Arc::new(served));
        }
    }

    /// Stops serving a collection in all its versions.
    pub(crate) fn uninstall(&mut self, collection: &Collection) {
        self.served
            .retain(|_, served| served.collection != *collection);
    }

    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Served>> {
        self.served
            .get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    pub(crate) fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Served>> {
        self.of_version(group, version)
            .find(|served| served.kind == kind)
    }

    /// The resource through which a collection is best seen.
    pub(crate) fn of_collection(&self, collection: &Collection) -> Option<&Arc<Served>> {
        let mut all = self
            .served
            .values()
            .filter(|served| served.collection == *collection);
        all.clone()
            .find(|served| served.native)
            .or_else(|| all.next())
    }

    pub(crate) fn of_version(
        &self,
        group: &str,
        version: &str,
    ) -> impl Iterator<Item = &Arc<Served>> {
        self.served
            .values()
            .filter(move |served| served.group == group && served.version == version)
    }

    /// Groups with their versions, the preferred version first; the core group is `""`.
    pub(crate) fn groups(&self) -> BTreeMap<String, Vec<String>> {
        let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (group, version, _) in self.served.keys() {
            let versions = groups.entry(group.clone()).or_default();
            if !versions.contains(version) {
                versions.push(version.clone());
            }
        }
        for versions in groups.values_mut() {
            versions.sort_by_key(|version| Reverse(priority(version)));
        }
        groups
    }
}

/// Orders versions as discovery does: GA before beta before alpha, then the higher number, then what is no version.
fn priority(version: &str) -> (u8, u64, u64) {
    let parse = || {
        let rest = version.strip_prefix('v')?;
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let major: u64 = rest[..digits].parse().ok()?;
        match &rest[digits..] {
            "" => Some((3, major, 0)),
            rest => match (rest.strip_prefix("beta"), rest.strip_prefix("alpha")) {
                (Some(minor), _) => Some((2, major, minor.parse().ok()?)),
                (_, Some(minor)) => Some((1, major, minor.parse().ok()?)),
                _ => None,
            },
        }
    };
    parse().unwrap_or((0, 0, 0))
}
