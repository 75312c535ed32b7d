//! The page and what belongs to it, embedded in the program.

use axum::{
    Router,
    http::header::CONTENT_TYPE,
    routing::{MethodRouter, get},
};

use crate::core::Dashboard;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const YAML: &str = "application/yaml";

/// Paths, types and texts.
pub(super) const FILES: &[(&str, &str, &str)] = &[
    ("/", HTML, include_str!("../../assets/index.html")),
    ("/style.css", CSS, include_str!("../../assets/style.css")),
    ("/icon.svg", SVG, include_str!("../../assets/icon.svg")),
    ("/app.js", JS, include_str!("../../assets/app.js")),
    ("/dom.js", JS, include_str!("../../assets/dom.js")),
    ("/tree.js", JS, include_str!("../../assets/tree.js")),
    (
        "/controllers.js",
        JS,
        include_str!("../../assets/controllers.js"),
    ),
    ("/keys.js", JS, include_str!("../../assets/keys.js")),
    ("/actions.js", JS, include_str!("../../assets/actions.js")),
    ("/chart.js", JS, include_str!("../../assets/chart.js")),
    ("/openapi.yaml", YAML, super::OPENAPI),
];

pub(super) fn routes() -> Router<Dashboard> {
    FILES.iter().fold(Router::new(), |router, file| {
        let (path, kind, text) = *file;
        router.route(path, page(kind, text))
    })
}

fn page(kind: &'static str, text: &'static str) -> MethodRouter<Dashboard> {
    get(move || async move { ([(CONTENT_TYPE, kind)], text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_under_150_kb_and_loads_nothing_from_elsewhere() {
        let page = FILES.iter().filter(|(_, kind, _)| *kind != YAML);
        let bytes: usize = page.clone().map(|(_, _, text)| text.len()).sum();
        assert!(bytes < 150 * 1024, "{bytes}");
        for (path, _, text) in page {
            let text = text.replace("http://www.w3.org/2000/svg", "");
            assert!(
                !text.contains("http://") && !text.contains("https://"),
                "{path}"
            );
            // what comes from objects is put in as text
            for means in [
                "innerHTML",
                "outerHTML",
                "insertAdjacentHTML",
                "document.write",
                "eval(",
            ] {
                assert!(!text.contains(means), "{path} uses {means}");
            }
        }
    }
}
