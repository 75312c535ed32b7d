//! Dashboards, alerts and the page about metrics speak of what the binary really exports.

#![allow(clippy::expect_used, reason = "a test that cannot begin has failed")]
#![cfg(feature = "embedded")]

mod process;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use process::{Process, binary, free, get};
use serde_json::Value;

/// The samples of a page of metrics, with the labels of each.
type Exported = BTreeMap<String, BTreeSet<String>>;

/// What a leading PodAutoscaler exports once it has worked.
fn exported() -> Exported {
    let listen = free(5).to_string();
    let process = Process::start(binary().args([
        "run",
        "--embedded",
        "--leader-elect",
        "--lease-namespace=default",
        "--listen",
        &listen,
    ]));
    process.says(&["scaled", "default/web", "from=1", "to=3"]);
    let page = get(&listen, "/metrics").expect("answered");
    let mut exported = Exported::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap_or((line, ""));
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let names = labels.split(',').filter_map(|label| label.split_once('='));
        let known = exported.entry(name.to_owned()).or_default();
        known.extend(names.map(|(label, _)| label.to_owned()));
    }
    exported
}

fn text(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).expect("a file")
}

/// Words of PromQL that can stand where a metric can.
const WORDS: [&str; 9] = [
    "by", "without", "on", "ignoring", "and", "or", "unless", "bool", "offset",
];

/// The metrics that an expression names, each with the labels it selects by.
fn metrics(expression: &str) -> Vec<(String, Vec<String>)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let mut found = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find(|c: char| is_word(c) || "[\"".contains(c)) {
        rest = &rest[start..];
        if let Some(after) = rest.strip_prefix('[') {
            rest = after.split_once(']').map_or("", |(_, after)| after);
            continue;
        }
        if let Some(after) = rest.strip_prefix('"') {
            rest = after.split_once('"').map_or("", |(_, after)| after);
            continue;
        }
        let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
        rest = after.trim_start();
        if WORDS.contains(&word) {
            // the labels in parentheses behind it are none of a metric's
            if let Some(after) = rest.strip_prefix('(') {
                rest = after.split_once(')').map_or("", |(_, after)| after);
            }
            continue;
        }
        let is_number = word.starts_with(|c: char| c.is_ascii_digit());
        if is_number
            || ["(", "by ", "without "]
                .iter()
                .any(|next| rest.starts_with(next))
        {
            continue;
        }
        let mut labels = Vec::new();
        if let Some(after) = rest.strip_prefix('{') {
            let (selectors, after) = after.split_once('}').expect("a closed selector");
            let names = selectors.split(',').map(|selector| {
                let selector = selector.trim();
                let end = selector.find(|c| !is_word(c)).unwrap_or(selector.len());
                selector[..end].to_owned()
            });
            labels.extend(names);
            rest = after;
        }
        found.push((word.to_owned(), labels));
    }
    found
}

/// Every string under a key of that name, wherever it is.
fn strings<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match value.as_str() {
                    Some(text) if key == name => found.push(text),
                    _ => strings(value, name, found),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| strings(value, name, found)),
        _ => {}
    }
}

#[test]
fn every_metric_of_the_alerts_and_dashboards_is_exported_with_its_labels_and_documented() {
    let exported = exported();
    let page = text("docs/metrics.md");
    let rules: Value = serde_saphyr::from_str(&text("deploy/prometheus/rules.yaml")).expect("YAML");
    let dashboard: Value =
        serde_json::from_str(&text("deploy/grafana/dashboard.json")).expect("JSON");
    let mut expressions = Vec::new();
    strings(&rules, "expr", &mut expressions);
    assert!(expressions.len() >= 10, "{expressions:?}");
    let alerts = expressions.len();
    strings(&dashboard, "expr", &mut expressions);
    assert!(expressions.len() >= alerts + 15, "{expressions:?}");
    let variable = dashboard["templating"]["list"][1]["query"].as_str();
    let variable = variable.and_then(|query| query.strip_prefix("label_values("));
    let (metric, _) = variable
        .and_then(|v| v.split_once(','))
        .expect("a variable");
    expressions.push(metric);
    for expression in expressions {
        let named = metrics(expression);
        assert!(!named.is_empty(), "no metric in {expression}");
        for (metric, labels) in named {
            let known = exported.get(&metric);
            let known = known.unwrap_or_else(|| panic!("{metric} is not exported: {expression}"));
            for label in labels {
                assert!(
                    known.contains(&label),
                    "{metric} has no {label}: {expression}"
                );
            }
            assert!(
                is_documented(&metric, &page),
                "{metric} is not in docs/metrics.md"
            );
        }
    }
}

/// Whether a page names the family of a sample, in full or as the end of one that is cut short.
fn is_documented(sample: &str, page: &str) -> bool {
    let family = ["_bucket", "_sum", "_count"]
        .iter()
        .find_map(|suffix| sample.strip_suffix(suffix))
        .unwrap_or(sample);
    let ends = family
        .match_indices('_')
        .map(|(at, _)| format!("`…{}", &family[at..]));
    page.contains(&format!("`{family}")) || ends.into_iter().any(|end| page.contains(&end))
}

#[test]
fn metrics_are_told_from_functions_labels_and_numbers() {
    let found = metrics(
        r#"sum by (a, b) (rate(x_total{c=~"5..|y_total", d="e"}[5m])) / on (f) z > bool 0.5"#,
    );
    let labels = vec!["c".to_owned(), "d".to_owned()];
    assert_eq!(
        found,
        [("x_total".to_owned(), labels), ("z".to_owned(), vec![])]
    );
}
