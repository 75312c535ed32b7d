//! Where the dashboard's data comes from, and who carries out what people ask for.

use boatswain_supervision::{Events, TreeSnapshot};
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::view::{
    ControllerView, InformerView, KeyRow, KeyView, Keys, LeaseView, Parked, Process,
};

/// What is looked at. No call may wait for an actor: what is stuck must be shown, too.
pub trait Source: Send + Sync + 'static {
    /// The process.
    fn process(&self) -> Process;

    /// The supervision tree.
    fn tree(&self) -> TreeSnapshot;

    /// What happens in the tree from now on.
    fn events(&self) -> Events;

    /// The controllers; [`ControllerView::point`] is made by the dashboard.
    fn controllers(&self) -> Vec<ControllerView>;

    /// The informers.
    fn informers(&self) -> Vec<InformerView>;

    /// The leases, where replicas are elected.
    fn leases(&self) -> Vec<LeaseView>;

    /// What is not ready, by name, with why. What informers say of themselves need not be repeated.
    fn unready(&self) -> Vec<(String, String)>;

    /// The keys that `query` asks for, or why there can be none.
    fn keys(&self, query: &KeyQuery) -> Result<Keys, Refused>;

    /// The keys that stand out, of the controller called so or of all.
    fn top(&self, top: Top, controller: Option<&str>, limit: usize)
    -> Result<Vec<KeyRow>, Refused>;

    /// All about one key, or why there is nothing to say.
    fn explain(&self, controller: &str, key: &str) -> Result<KeyView, Refused>;

    /// The keys that are parked, at most `limit` of them; `q` is part of their names.
    fn parked(&self, controller: Option<&str>, q: &str, limit: usize) -> Result<Parked, Refused>;

    /// Does what somebody asks for, and says what was done. It is done even if the future is dropped.
    fn act(&self, action: Action) -> BoxFuture<'static, Result<String, Refused>>;
}

/// Which keys are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyQuery {
    /// Of the controller called so; of all where absent.
    pub controller: Option<String>,
    /// Part of the key.
    pub q: String,
    /// What they are doing, in the words of [`KeyRow::state`]; anything where empty.
    pub state: String,
    /// How many at most.
    pub limit: usize,
}

/// Which keys stand out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Top {
    /// Those that failed most often in a row.
    Failing,
    /// Those whose last runs took longest.
    Slowest,
}

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
// a filter that is misspelt must not mean everything
#[serde(tag = "action", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Action {
    /// Run a key now, whatever it waits for.
    Requeue {
        /// Of which controller.
        controller: String,
        /// Which.
        key: String,
    },
    /// Let a parked key, or all whose names hold `q`, run again. Of neither: all.
    Unpark {
        /// Of which controller.
        controller: String,
        /// Which one.
        #[serde(default)]
        key: Option<String>,
        /// Part of the names of those that are meant.
        #[serde(default)]
        q: Option<String>,
    },
    /// Let no run of a controller begin.
    Pause {
        /// Which.
        controller: String,
        /// Why, for whoever wonders.
        #[serde(default)]
        reason: String,
    },
    /// End a pause.
    Resume {
        /// Of which controller.
        controller: String,
    },
    /// Stop an actor in good order and start it again.
    Restart {
        /// Where it is in the tree.
        path: String,
    },
    /// Say what is logged from now on.
    LogLevel {
        /// A level, or directives as in `RUST_LOG`.
        filter: String,
    },
}

impl Action {
    /// Its name in paths and in the audit log.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Action::Requeue { .. } => "requeue",
            Action::Unpark { .. } => "unpark",
            Action::Pause { .. } => "pause",
            Action::Resume { .. } => "resume",
            Action::Restart { .. } => "restart",
            Action::LogLevel { .. } => "log-level",
        }
    }

    /// What the body of the action called so looks like.
    #[must_use]
    pub fn example(name: &str) -> &'static str {
        match name {
            "requeue" => r#"{"controller": "podautoscaler", "key": "default/web"}"#,
            "unpark" => r#"{"controller": "podautoscaler", "key": "default/web"}"#,
            "pause" => r#"{"controller": "podautoscaler", "reason": "migration"}"#,
            "resume" => r#"{"controller": "podautoscaler"}"#,
            "restart" => r#"{"path": "root/events"}"#,
            "log-level" => r#"{"filter": "info"}"#,
            _ => "{}",
        }
    }

    /// The names there are.
    pub const NAMES: [&'static str; 6] = [
        "requeue",
        "unpark",
        "pause",
        "resume",
        "restart",
        "log-level",
    ];
}

/// An action that was not carried out: why, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not understood, whatever there is.
    #[error("{0}")]
    Invalid(String),
    /// There is nothing by that name.
    #[error("{0}")]
    Unknown(String),
    /// It cannot be done now.
    #[error("{0}")]
    Impossible(String),
}
