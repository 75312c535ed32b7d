//! Where the dashboard of a manager stands.

use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

use boatswain_dashboard::{Dashboard, DashboardActor, Guard};
use boatswain_supervision::Clock;

use crate::{error::StartError, options::DashboardOptions, telemetry::bind};

/// A dashboard and its listener; both outlive the actor.
#[derive(Clone)]
pub(super) struct Bridge {
    pub(super) dashboard: Dashboard,
    listener: Arc<TcpListener>,
    address: SocketAddr,
}

impl Bridge {
    /// Opens the address; `None` if it is the one nobody chose, and taken.
    ///
    /// # Errors
    ///
    /// When the address cannot be bound, or the token cannot be used.
    pub(super) fn open(options: &DashboardOptions) -> Result<Option<Self>, StartError> {
        let DashboardOptions {
            listen: address,
            required,
            hosts,
            token_file,
        } = options.clone();
        let guard = Guard { hosts, token_file };
        guard.check()?;
        let complaint = |source| StartError::Dashboard { address, source };
        let listener = match bind(address) {
            Ok(listener) => listener,
            Err(error) if address == DashboardOptions::ADDRESS && !required => {
                tracing::warn!(%address, %error, "there is no dashboard: choose another address with --dashboard-listen");
                return Ok(None);
            }
            Err(error) => return Err(complaint(error)),
        };
        Ok(Some(Self {
            dashboard: Dashboard::new(Clock::system(), guard),
            address: listener.local_addr().map_err(complaint)?,
            listener: Arc::new(listener),
        }))
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn actor(&self) -> DashboardActor {
        DashboardActor::new(self.dashboard.clone(), self.listener.clone())
    }
}
