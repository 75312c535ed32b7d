//! Which Lease, and who we are, where nobody says.

use std::{env, fs};

use boatswain_supervision::Entropy;

use super::{LeaseOptions, TermsError};
use crate::options::LeaderOptions;

/// Where a pod finds the namespace it is in.
const OWN_NAMESPACE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";

impl LeaseOptions {
    /// # Errors
    ///
    /// When the terms contradict each other.
    pub(crate) fn of(
        options: &LeaderOptions,
        first: &str,
        entropy: &Entropy,
    ) -> Result<Self, TermsError> {
        let LeaderOptions {
            name,
            namespace,
            terms,
        } = options;
        let own = || {
            fs::read_to_string(OWN_NAMESPACE)
                .ok()
                .map(|text| text.trim().to_owned())
        };
        let namespace = namespace
            .clone()
            .or_else(own)
            .filter(|namespace| !namespace.is_empty());
        Ok(Self {
            name: name.clone().unwrap_or_else(|| format!("{first}-leader")),
            namespace: namespace.unwrap_or_else(|| "kube-system".into()),
            // a pod that is restarted keeps its name, and must not take its predecessor for itself
            identity: format!("{}_{:016x}", hostname(), entropy.next()),
            terms: terms.validate()?,
        })
    }
}

/// Who we are for people: the pod's name inside a cluster.
pub(crate) fn hostname() -> String {
    let name = env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "boatswain".into())
}
