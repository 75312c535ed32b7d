//! The dashboard in a terminal: the same API, read by `explain` and `top`.

mod client;
mod draw;
mod panel;
mod screen;
mod top;

use std::net::SocketAddr;

pub use client::ClientError;
use client::{Client, escaped};
pub use top::top;

use crate::{
    plain::plain_line,
    view::{ControllerView, Controllers, KeyView, Keys},
};

/// What is known of the key `key` (`namespace/name`, or a name alone) of objects of the kind `kind`, in words: of every controller that reconciles that kind,
/// or is called so. `address` is where a manager serves its dashboard.
///
/// # Errors
///
/// When the dashboard does not answer, no controller knows the kind, or none of those that do knows the object.
pub fn explain(address: SocketAddr, kind: &str, key: &str) -> Result<String, ClientError> {
    if key.split('/').any(str::is_empty) || key.split('/').count() > 2 {
        let key = plain_line(key);
        return Err(ClientError::Crooked { key });
    }
    let client = Client::new(address);
    client.block_on(async {
        let all: Controllers = client.get("controllers").await?;
        let meant = all.controllers.iter().filter(|one| means(one, kind));
        let meant: Vec<_> = meant.collect();
        let Some(first) = meant.first() else {
            let known = all.controllers.iter();
            let known: Vec<_> = known
                .map(|one| format!("{} ({})", one.name, one.kind))
                .collect();
            return Err(ClientError::Kind {
                kind: plain_line(kind),
                known: known.join(", "),
            });
        };
        let mut told = Vec::new();
        for one in &meant {
            let parts: Vec<_> = key.split('/').map(escaped).collect();
            let path = format!("keys/{}/{}", escaped(&one.name), parts.join("/"));
            let view: Option<KeyView> = client.find(&path).await?;
            // of an object that is gone its last runs are worth telling
            let worth = |view: &KeyView| view.row.state != "unknown" || !view.runs.is_empty();
            told.extend(view.filter(worth).map(|view| view.text));
        }
        match told.is_empty() {
            true => {
                let shut = meant.iter().find_map(|one| one.shut.as_ref());
                let shut = shut.map(|shut| shut.why.as_str());
                Err(unknown(&client, &first.name, key, shut).await?)
            }
            false => Ok(told.join("\n\n")),
        }
    })
}

/// Names that are offered to whoever asks for one that there is not.
const OFFERED: usize = 3;

/// That the controller does not know the key, and which it knows that are called much like it.
async fn unknown(
    client: &Client,
    controller: &str,
    key: &str,
    shut: Option<&str>,
) -> Result<ClientError, ClientError> {
    let name = key.rsplit('/').next().unwrap_or(key);
    let query = format!(
        "keys?controller={}&q={}&limit=100",
        escaped(controller),
        escaped(name)
    );
    let found: Keys = client.get(&query).await?;
    let known = found.keys.iter().map(|row| row.key.as_str());
    let mut hint = hint(key, known);
    // a cache that is not synced knows no object yet
    if let (true, Some(why)) = (found.keys.is_empty(), shut) {
        hint.push_str(&format!("; no run begins: {why}"));
    }
    Ok(ClientError::Key {
        key: plain_line(key),
        controller: controller.to_owned(),
        hint,
    })
}

/// What may have been meant by `key`, of `known` ones that have its name in theirs.
fn hint<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    let name = |key: &'a str| key.rsplit('/').next().unwrap_or(key);
    let asked = key.rsplit('/').next().unwrap_or(key);
    let mut known: Vec<_> = known.collect();
    // the same name in another namespace is the likeliest
    known.sort_by_key(|known| name(known) != asked);
    known.truncate(OFFERED);
    let how = match key.contains('/') || known.iter().any(|known| !known.contains('/')) {
        true => "",
        false => "; names are NAMESPACE/NAME",
    };
    match known[..] {
        [] => how.to_owned(),
        _ if how.is_empty() => format!("; did you mean {}?", known.join(" or ")),
        _ => format!("{how}, did you mean {}?", known.join(" or ")),
    }
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
    fn who_leaves_the_namespace_out_or_takes_another_is_told_which_there_are() {
        for (key, known, hint) in [
            (
                "web",
                &["shop/web-2", "default/web"][..],
                "; names are NAMESPACE/NAME, did you mean default/web or shop/web-2?",
            ),
            ("web", &[], "; names are NAMESPACE/NAME"),
            ("shop/web", &["default/web"], "; did you mean default/web?"),
            ("shop/web", &[], ""),
            ("node", &["node-1"], "; did you mean node-1?"),
            (
                "a",
                &["n/a1", "n/a2", "n/a3", "n/a4"],
                "; names are NAMESPACE/NAME, did you mean n/a1 or n/a2 or n/a3?",
            ),
        ] {
            assert_eq!(super::hint(key, known.iter().copied()), hint, "{key}");
        }
    }

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
