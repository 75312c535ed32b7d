//! What an operator sees: metrics, liveness, readiness.

mod actor;
mod checks;
mod metrics;

pub(crate) use actor::{Telemetry, TelemetryActor, bind};
pub(crate) use checks::Checks;
pub(crate) use metrics::{
    ControllerMetrics, Roster, register_controllers, register_informers, register_leadership,
    register_recorder, register_requests,
};
