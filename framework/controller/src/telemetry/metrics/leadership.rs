//! Who leads, under client-go's names and some of our own.

use prometheus::Registry;

use super::families::{Families, Scraped};
use crate::{controllers::Leases, leader::LeaseStatus};

/// Registers what is known of the leases that there are.
pub(crate) fn register_leadership(
    leases: &Leases,
    registry: &Registry,
) -> Result<(), prometheus::Error> {
    let leases = leases.clone();
    registry.register(Box::new(Scraped::new(families, move || leases.status())?))
}

fn families(families: &mut Families, read: Option<&Vec<LeaseStatus>>) {
    fn each<T>(
        read: Option<&Vec<LeaseStatus>>,
        value: fn(&LeaseStatus) -> T,
    ) -> impl Iterator<Item = (Vec<String>, T)> {
        let leases = read.into_iter().flatten();
        leases.map(move |lease| (vec![lease.name.clone()], value(lease)))
    }
    let gauge = |value: fn(&LeaseStatus) -> f64| each(read, value);
    let count = |value: fn(&LeaseStatus) -> u64| each(read, value);
    families.gauge(
        "leader_election_master_status",
        "1 where this process leads, 0 where it stands by.",
        &["name"],
        gauge(|status| f64::from(u8::from(status.leads))),
    );
    families.counter(
        "leader_election_slowpath_total",
        "Renewals that had to read the lease first.",
        &["name"],
        count(|status| status.slow_renewals),
    );
    families.counter(
        "leader_election_terms_total",
        "How often this process has come to lead.",
        &["name"],
        count(|status| status.term),
    );
    families.gauge(
        "leader_election_transitions",
        "How often the lease has changed hands, as it says itself.",
        &["name"],
        gauge(|status| status.transitions.into()),
    );
    families.gauge(
        "leader_election_renewal_seconds",
        "How long the last successful renewal took; 0 before the first.",
        &["name"],
        gauge(|status| status.renewal.map_or(0.0, |took| took.as_secs_f64())),
    );
}
