//! The supervisor tree dashboard: one page that says whether a crew of actors is healthy, what is stuck, why, and since when, and the JSON API behind it.
//!
//! It shows plain data that a [`Source`] hands over, and knows neither Kubernetes nor controllers: a manager implements the
//! source, makes a [`Dashboard`], adds a [`DashboardActor`] to its tree and [attaches](Dashboard::attach) the source when the tree has started.
//!
//! # Guarantees
//!
//! - Readers cost the crew nothing: one picture a second is taken from what actors wrote down, by the dashboard's own thread, and shared by all readers;
//!   one in ten seconds while there are none.
//! - Memory is bounded: a reader gets the newest picture, not a queue of them; one that takes nothing for [`PATIENCE`] is cut, and a connection on which nothing happens
//!   for [`IDLE`]; there are at most
//!   [`CONNECTIONS`] connections and [`READERS`] readers of the stream.
//! - Requests are answered only under a [known name](Guard::hosts), and never for the page of another origin. Actions need the token of
//!   [`Guard::token_file`] beside; without one there are none.

mod actor;
mod core;
mod health;
mod history;
mod plain;
mod server;
mod source;
#[cfg(feature = "terminal")]
pub mod terminal;
mod view;

pub use actor::DashboardActor;
pub use core::Dashboard;
pub use server::{CONNECTIONS, Guard, GuardError, IDLE, PATIENCE, READERS};
pub use source::{Action, KeyQuery, Refused, Source, Top};
pub use view::*;
