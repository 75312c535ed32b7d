//! The actor that takes the pictures and serves the page.

use std::{net::TcpListener, sync::Arc};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_supervision::{Context, supervised};

use crate::{
    core::{Dashboard, PERIOD},
    server::{Guard, serve},
};

/// Serves a [`Dashboard`] on a listener. Give it a thread that no code of users runs on.
pub struct DashboardActor {
    dashboard: Dashboard,
    listener: Arc<TcpListener>,
    guard: Arc<Guard>,
}

impl DashboardActor {
    /// Serves `dashboard` on `listener`, which must not block, behind `guard`.
    #[must_use]
    pub fn new(dashboard: Dashboard, listener: Arc<TcpListener>, guard: Arc<Guard>) -> Self {
        Self {
            dashboard,
            listener,
            guard,
        }
    }
}

supervised!(DashboardActor);

impl Actor for DashboardActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let (dashboard, guard) = (self.dashboard.clone(), self.guard.clone());
        let served = serve(dashboard.clone(), self.listener.clone(), guard.clone());
        ctx.spawn(served.into_actor(self));
        let pictures = async move {
            // the source comes when the tree has started
            while dashboard.source().is_none() {
                dashboard.clock().sleep(PERIOD / 10).await;
            }
            let Some(source) = dashboard.source() else {
                return;
            };
            let pictures = dashboard.keep_looking(guard.acts());
            futures::join!(dashboard.listen(source.events()), pictures);
        };
        ctx.spawn(pictures.into_actor(self));
    }
}
