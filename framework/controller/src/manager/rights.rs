//! What the controllers of a manager need to be allowed.

use std::process::ExitCode;

use boatswain_supervision::{Clock, Entropy};

use super::{Manager, links::Links};
use crate::{
    assemble::Runnable,
    error::StartError,
    leader::Election,
    logging,
    rights::{CheckError, Checked, Right, Rights},
};

/// Why it is not known whether everything is allowed, or that it is not.
#[derive(Debug, thiserror::Error)]
enum Unchecked {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Check(#[from] CheckError),
    #[error("cannot print: {0}")]
    Print(#[from] std::io::Error),
    #[error(
        "{missing} of {all} rights are missing: grant them by the roles that the program's manifests contain"
    )]
    Missing { missing: usize, all: usize },
}

impl Manager {
    /// The rights that its controllers need, derived from what they declare: to read what they reconcile, own and watch; what they
    /// [need](crate::Controller::needs) besides; to write Events; and to hold the leases, where leaders are elected. Controllers that are added while it runs
    /// are not known here.
    ///
    /// Where the manager works in chosen namespaces so do the rights.
    ///
    /// # Errors
    ///
    /// When a controller selects what cannot be selected, the terms of the lease cannot be kept, or a controller's own lease cannot be called after it.
    pub fn rights(&self) -> Result<Rights, StartError> {
        let namespaces = &self.options.namespaces;
        let mut rights = Rights::default();
        for controller in &self.controllers {
            for right in controller.rights()? {
                rights.add(&right, namespaces);
            }
        }
        let entropy = Entropy::from_os();
        let leases = match self.election(&entropy)? {
            None => Vec::new(),
            Some(Election::ForAll(lease)) => vec![lease],
            Some(Election::ForEach(own)) => {
                let names = self.controllers.iter().map(Runnable::name);
                let leases = names.map(|name| own.of(name, &entropy));
                leases.collect::<Result<_, _>>()?
            }
        };
        for right in leases.iter().flat_map(Right::to_lead) {
            rights.add(&right, namespaces);
        }
        Ok(rights)
    }

    /// Asks the API server, as whom the manager would run, whether it has the rights it needs ([`Manager::rights`]), and prints a table of yes and no.
    ///
    /// Returns success if nothing is missing. Otherwise one line on standard error says why not, and the code is not zero. Creates its own runtime: call
    /// it from a plain `main`.
    pub fn check(self) -> ExitCode {
        match self.checked() {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                logging::complain(&error);
                ExitCode::FAILURE
            }
        }
    }

    fn checked(self) -> Result<(), Unchecked> {
        use std::io::Write as _;
        let checked = self.ask()?;
        let mut out = std::io::stdout();
        write!(out, "{checked}")?;
        out.flush()?;
        match checked.missing().count() {
            0 => Ok(()),
            missing => Err(Unchecked::Missing {
                missing,
                all: checked.0.len(),
            }),
        }
    }

    fn ask(self) -> Result<Checked, Unchecked> {
        let rights = self.rights()?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let io = runtime.handle().clone();
        let checked = runtime.block_on(async {
            let clock = Clock::system();
            let runtimes = [io.clone(), io];
            let links = Links::to_cluster(&self.options, clock, runtimes).await?;
            Ok(rights.check(&links.client(None).await?).await?)
        });
        runtime.shutdown_background();
        checked
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::Arc};

    use k8s_openapi::api::core::v1::ConfigMap;

    use crate::{Context, Controller, LeaderOptions, Manager, Options, Outcome, Reconciler, Verb};

    struct Idler;

    impl Reconciler<ConfigMap> for Idler {
        type Error = Infallible;

        async fn reconcile(&self, _: Arc<ConfigMap>, _: &Context) -> Result<Outcome, Infallible> {
            Ok(Outcome::Done)
        }
    }

    fn manager(per_controller: bool, names: [&str; 2]) -> Manager {
        let options = Options {
            leader: Some(LeaderOptions {
                namespace: Some("ops".into()),
                per_controller,
                ..LeaderOptions::default()
            }),
            ..Options::default()
        };
        names
            .into_iter()
            .fold(Manager::new(options), |manager, name| {
                manager.with(Controller::<ConfigMap>::named(name).reconciler(|_| Idler))
            })
    }

    #[test]
    fn the_leases_of_all_controllers_are_named_and_no_other() {
        for (per_controller, names) in [
            (false, vec!["a-leader"]),
            (true, vec!["a-leader-a", "a-leader-b"]),
        ] {
            let rights = manager(per_controller, ["a", "b"])
                .rights()
                .expect("rights");
            let rules = rights.rules().into_iter();
            let leases = rules.filter(|rule| rule.resource == "leases");
            let (named, all): (Vec<_>, Vec<_>) = leases.partition(|rule| rule.name.is_some());
            assert!(all.iter().all(|rule| rule.verbs == [Verb::Create].into()));
            assert!(
                named
                    .iter()
                    .all(|rule| rule.verbs == [Verb::Get, Verb::Update].into())
            );
            let named: Vec<_> = named.iter().filter_map(|rule| rule.name.clone()).collect();
            assert_eq!(named, names);
        }
    }

    #[test]
    fn a_controller_that_no_lease_can_be_called_after_has_no_rights() {
        assert!(manager(false, ["a", "The Fixer"]).rights().is_ok());
        let error = manager(true, ["a", "The Fixer"])
            .rights()
            .expect_err("refused");
        assert!(error.to_string().contains("a-leader-The Fixer"), "{error}");
    }
}
