//! What the controllers of a manager need to be allowed.

use std::process::ExitCode;

use boatswain_supervision::{Clock, Entropy};

use super::{Manager, links::Links};
use crate::{
    error::StartError,
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
    /// [need](crate::Controller::needs) besides; to write Events; and to hold the lease, where a leader is elected.
    ///
    /// Where the manager works in chosen namespaces so do the rights.
    ///
    /// # Errors
    ///
    /// When a controller selects what cannot be selected, or the terms of the lease cannot be kept.
    pub fn rights(&self) -> Result<Rights, StartError> {
        let namespaces = &self.options.namespaces;
        let mut rights = Rights::default();
        for controller in &self.controllers {
            for right in controller.rights()? {
                rights.add(&right, namespaces);
            }
        }
        if let Some(leadership) = self.leadership(&Entropy::from_os())? {
            for right in Right::to_lead(leadership.options()) {
                rights.add(&right, namespaces);
            }
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
            let links = Links::to_cluster(&self.options, None, &clock, [&io, &io]).await?;
            Ok(rights.check(&links.client).await?)
        });
        runtime.shutdown_background();
        checked
    }
}
