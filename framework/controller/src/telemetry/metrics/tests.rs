use std::sync::{Arc, Mutex};

use boatswain_cache::{InformerCore, Kind, Scope};
use boatswain_supervision::Clock;
use k8s_openapi::api::core::v1::ConfigMap;
use prometheus::{
    Registry,
    proto::{MetricFamily, MetricType},
};

use super::{informers::last_digits_of, register_informers};

fn core(namespace: &str) -> Arc<InformerCore> {
    InformerCore::new(
        Kind::of::<ConfigMap>(),
        Scope::Namespace(namespace.to_owned()),
    )
}

fn registered(cores: Vec<Arc<InformerCore>>) -> (Registry, Arc<Mutex<Vec<Arc<InformerCore>>>>) {
    let (registry, cores) = (Registry::new(), Arc::new(Mutex::new(cores)));
    let read = cores.clone();
    let read = move || read.lock().expect("no one panicked").clone();
    register_informers(read, &Clock::system(), &registry).expect("registered");
    (registry, cores)
}

fn family(registry: &Registry, name: &str) -> MetricFamily {
    let families = registry.gather();
    let found = families.into_iter().find(|family| family.name() == name);
    found.unwrap_or_else(|| panic!("no family {name}"))
}

#[test]
fn informers_of_any_namespaces_have_their_series_side_by_side() {
    let names: Vec<String> = (1..=9)
        .map(|n| format!("team{n}"))
        .chain(["x2".into(), "x3".into()])
        .collect();
    let (registry, _) = registered(names.iter().map(|name| core(name)).collect());
    assert_eq!(
        family(&registry, "cache_objects").get_metric().len(),
        names.len()
    );
}

#[test]
fn the_series_of_an_informer_end_with_it() {
    let (left, stays) = (core("left"), core("stays"));
    let (registry, cores) = registered(vec![left.clone(), stays]);
    let subscription = left.subscribe("me", || {});
    let scopes = |name: &str| {
        let family = family(&registry, name);
        let scope = |metric: &prometheus::proto::Metric| {
            let labels = metric.get_label();
            let scope = labels.iter().find(|label| label.name() == "scope");
            scope.map(|label| label.value().to_owned())
        };
        family
            .get_metric()
            .iter()
            .filter_map(scope)
            .collect::<Vec<_>>()
    };
    assert_eq!(scopes("cache_objects"), ["left", "stays"]);
    assert_eq!(scopes("informer_backlog_keys"), ["left"]);
    left.retire();
    assert_eq!(scopes("reflector_lists_total"), ["stays"], "it has ended");
    cores
        .lock()
        .expect("no one panicked")
        .retain(|core| !core.retired());
    drop((left, subscription));
    assert_eq!(scopes("cache_objects"), ["stays"]);
    let all = registry.gather();
    let ended = all.iter().find(|f| f.name() == "informer_backlog_keys");
    assert!(ended.is_none_or(|family| family.get_metric().is_empty()));
}

#[test]
fn what_only_grows_is_a_counter_and_what_is_not_known_has_no_series() {
    let (registry, _) = registered(vec![core("a")]);
    for family in registry.gather() {
        let total = family.name().ends_with("_total");
        assert_eq!(
            total,
            family.get_field_type() == MetricType::COUNTER,
            "{}",
            family.name()
        );
        assert!(family.help().len() > 10 && family.help().ends_with('.'));
    }
    let names: Vec<_> = registry
        .gather()
        .iter()
        .map(|family| family.name().to_owned())
        .collect();
    assert!(!names.contains(&"watch_last_contact_age_seconds".to_owned()));
    assert!(!names.contains(&"informer_store_resource_version".to_owned()));
}

#[test]
fn client_gos_names_are_there() {
    let (registry, _) = registered(vec![core("a")]);
    for name in [
        "informer_queued_items",
        "informer_processing_latency_seconds",
        "reflector_lists_total",
        "reflector_list_duration_seconds",
        "reflector_items_per_list",
        "reflector_watches_total",
        "reflector_short_watches_total",
        "reflector_watch_duration_seconds",
        "reflector_items_per_watch",
    ] {
        assert_eq!(family(&registry, name).get_metric().len(), 1, "{name}");
    }
}

#[test]
fn a_version_is_told_by_its_last_digits() {
    assert_eq!(last_digits_of("42"), Some(42.0));
    assert_eq!(
        last_digits_of("98765123456789012345"),
        Some(123_456_789_012_345.0)
    );
    assert_eq!(last_digits_of("opaque"), None);
    assert_eq!(last_digits_of("é-opaque-version-1"), None);
}
