//! The actor that takes the pictures and serves the page.

use std::{net::TcpListener, sync::Arc};

use actix::{Actor, AsyncContext as _, WrapFuture as _};
use boatswain_supervision::{Context, supervised};

use crate::{
    core::{Dashboard, PERIOD},
    server::serve,
};

/// Serves a [`Dashboard`] on a listener. Give it a thread that no code of users runs on.
pub struct DashboardActor {
    dashboard: Dashboard,
    listener: Arc<TcpListener>,
}

impl DashboardActor {
    /// Serves `dashboard` on `listener`, which must not block.
    #[must_use]
    pub fn new(dashboard: Dashboard, listener: Arc<TcpListener>) -> Self {
        Self {
            dashboard,
            listener,
        }
    }
}

supervised!(DashboardActor);

impl Actor for DashboardActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let dashboard = self.dashboard.clone();
        let served = serve(dashboard.clone(), self.listener.clone());
        ctx.spawn(served.into_actor(self));
        let pictures = async move {
            // the source comes when the tree has started
            while dashboard.source().is_none() {
                dashboard.clock().sleep(PERIOD / 10).await;
            }
            let Some(source) = dashboard.source() else {
                return;
            };
            let pictures = dashboard.keep_looking();
            futures::join!(dashboard.listen(source.events()), pictures);
        };
        ctx.spawn(pictures.into_actor(self));
    }
}
