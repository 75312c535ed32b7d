//! How the program is installed.

use packaging::Program;

use crate::reconciler::{NAME, controller};

/// The program, to be installed.
pub const PROGRAM: Program = Program {
    name: NAME,
    version: env!("CARGO_PKG_VERSION"),
    description: env!("CARGO_PKG_DESCRIPTION"),
    controllers: || vec![controller()],
    lease_per_controller: false,
    crds: Vec::new,
};

#[cfg(test)]
mod tests {
    use packaging::Install;

    use super::*;

    #[test]
    fn it_may_read_deployments_write_their_scale_and_tell_of_it_and_needs_no_crd() {
        let text = PROGRAM.manifests(&Install::default()).expect("manifests");
        assert!(
            text.starts_with("apiVersion: v1\nkind: Namespace"),
            "{text}"
        );
        let rights = text
            .split("---\n")
            .find(|d| d.contains("kind: ClusterRole\n"));
        let rights = rights.expect("a ClusterRole");
        for word in ["deployments/scale", "update", "events.k8s.io"] {
            assert!(rights.contains(word), "{rights}");
        }
        assert!(
            !rights.contains("podautoscalers") && !rights.contains('*'),
            "{rights}"
        );
        let chart = PROGRAM.chart().expect("a chart");
        assert!(chart.iter().all(|(name, _)| !name.starts_with("crds/")));
    }
}
