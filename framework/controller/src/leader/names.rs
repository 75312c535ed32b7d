//! Which Leases there are, and who we are, where nobody says.

use std::{env, fs};

use boatswain_supervision::Entropy;

use super::{LeaseOptions, TermsError};
use crate::{names::is_subdomain, options::LeaderOptions};

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
            per_controller: _,
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
            identity: identity(entropy),
            terms: terms.validate()?,
        })
    }
}

/// A pod that is restarted keeps its name, and must not take its predecessor for itself.
fn identity(entropy: &Entropy) -> String {
    format!("{}_{:016x}", hostname(), entropy.next())
}

/// Which leases are campaigned for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Election {
    /// This one, for all controllers.
    ForAll(LeaseOptions),
    /// One for each controller.
    ForEach(OwnLeases),
}

/// A lease for each controller: as this one, which nobody campaigns for, and called after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnLeases(LeaseOptions);

/// A controller whose lease would have a name that no Lease can have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "controller {controller:?} cannot have a lease called {lease:?}: lower-case letters, digits, '-' and '.' make a name, 253 at most; call the controller otherwise, choose another --lease-name, or leave out --lease-per-controller"
)]
pub struct LeaseNameError {
    /// The controller.
    pub controller: String,
    /// What its lease would be called.
    pub lease: String,
}

impl Election {
    /// Where `first` is the first controller.
    ///
    /// # Errors
    ///
    /// When the terms contradict each other.
    pub(crate) fn of(
        options: &LeaderOptions,
        first: &str,
        entropy: &Entropy,
    ) -> Result<Self, TermsError> {
        let lease = LeaseOptions::of(options, first, entropy)?;
        Ok(match options.per_controller {
            true => Self::ForEach(OwnLeases(lease)),
            false => Self::ForAll(lease),
        })
    }
}

impl OwnLeases {
    /// The lease that `controller` is to work under, with an identity that nobody has had for it.
    ///
    /// # Errors
    ///
    /// When no Lease can be called so.
    pub(crate) fn of(
        &self,
        controller: &str,
        entropy: &Entropy,
    ) -> Result<LeaseOptions, LeaseNameError> {
        let name = format!("{}-{controller}", self.0.name);
        if !is_subdomain(&name) {
            return Err(LeaseNameError {
                controller: controller.to_owned(),
                lease: name,
            });
        }
        Ok(LeaseOptions {
            name,
            // the controller may have been here before, and something of it may still run
            identity: identity(entropy),
            ..self.0.clone()
        })
    }
}

/// Who we are for people: the pod's name inside a cluster.
pub(crate) fn hostname() -> String {
    let name = env::var("HOSTNAME").ok().filter(|name| !name.is_empty());
    name.unwrap_or_else(|| "boatswain".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn election(name: Option<&str>, per_controller: bool) -> Election {
        let options = LeaderOptions {
            name: name.map(str::to_owned),
            namespace: Some("ops".into()),
            per_controller,
            ..LeaderOptions::default()
        };
        Election::of(&options, "scaler", &Entropy::seeded(1)).expect("terms")
    }

    fn own(name: Option<&str>) -> OwnLeases {
        match election(name, true) {
            Election::ForEach(own) => own,
            Election::ForAll(lease) => panic!("one for all: {lease:?}"),
        }
    }

    #[test]
    fn one_lease_is_for_all_unless_each_controller_has_one_called_after_it() {
        let Election::ForAll(lease) = election(None, false) else {
            panic!("one for each")
        };
        assert_eq!(lease.name, "scaler-leader");
        let entropy = Entropy::seeded(2);
        let of = |own: &OwnLeases, of: &str| own.of(of, &entropy).expect("a name");
        let scaler = of(&own(None), "scaler");
        assert_eq!(scaler.name, "scaler-leader-scaler");
        assert_eq!(of(&own(None), "fixer").name, "scaler-leader-fixer");
        assert_eq!(of(&own(Some("crew")), "fixer").name, "crew-fixer");
        assert_ne!(
            of(&own(None), "scaler").identity,
            scaler.identity,
            "it came again"
        );
    }

    #[test]
    fn a_name_that_no_lease_can_have_is_refused_and_says_what_to_do() {
        let entropy = Entropy::seeded(3);
        let longest = "x".repeat(253 - "crew-".len());
        let own = own(Some("crew"));
        assert!(own.of(&longest, &entropy).is_ok());
        for controller in ["The Fixer", "a_b", "", "-", &format!("{longest}x")] {
            let error = own.of(controller, &entropy).expect_err(controller);
            assert_eq!(error.controller, controller);
            assert!(error.to_string().contains("--lease-name"), "{error}");
        }
    }
}
