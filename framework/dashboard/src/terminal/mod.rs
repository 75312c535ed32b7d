//! The dashboard in a terminal: the same API, read by `explain` and `top`.

mod client;
mod draw;
mod panel;
mod screen;
mod top;

use std::net::SocketAddr;

pub use client::ClientError;
use client::{Client, escaped, plain};
pub use top::top;

use crate::view::{ControllerView, Controllers, KeyView};

/// What is known of the key `key` (`namespace/name`, or a name alone) of objects of the kind `kind`, in words: of every controller that reconciles that kind,
/// or is called so. `address` is where a manager serves its dashboard.
///
/// # Errors
///
/// When the dashboard does not answer, or no controller knows the kind.
pub fn explain(address: SocketAddr, kind: &str, key: &str) -> Result<String, ClientError> {
    let client = Client::new(address);
    client.block_on(async {
        let all: Controllers = client.get("controllers").await?;
        let meant = all.controllers.iter().filter(|one| means(one, kind));
        let names: Vec<_> = meant.map(|one| one.name.as_str()).collect();
        if names.is_empty() {
            let known = all.controllers.iter();
            let known: Vec<_> = known
                .map(|one| format!("{} ({})", one.name, one.kind))
                .collect();
            return Err(ClientError::Kind {
                kind: kind.to_owned(),
                known: known.join(", "),
            });
        }
        let mut told = Vec::new();
        for name in names {
            let parts: Vec<_> = key.split('/').map(escaped).collect();
            let path = format!("keys/{}/{}", escaped(name), parts.join("/"));
            let view: KeyView = client.get(&path).await?;
            told.push(plain(&view.text));
        }
        Ok(told.join("\n\n"))
    })
}

/// Whether somebody who says `kind` means what the controller reconciles: its kind, its resource in singular or plural, with or without the group, or itself.
fn means(controller: &ControllerView, kind: &str) -> bool {
    let plural = controller.resource.split('.').next().unwrap_or_default();
    [
        controller.name.as_str(),
        &controller.kind,
        &controller.resource,
        plural,
    ]
    .iter()
    .any(|name| name.eq_ignore_ascii_case(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_meant_by_each_of_its_names() {
        let scaler = ControllerView {
            name: "scaler".into(),
            kind: "PodAutoscaler".into(),
            resource: "podautoscalers.autoscaling.example.com".into(),
            ..ControllerView::default()
        };
        for kind in [
            "scaler",
            "podautoscaler",
            "PodAutoscaler",
            "podautoscalers",
            "podautoscalers.autoscaling.example.com",
        ] {
            assert!(means(&scaler, kind), "{kind}");
        }
        for kind in ["", "pod", "deployments"] {
            assert!(!means(&scaler, kind), "{kind}");
        }
    }
}
