use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

#[test]
fn a_resync_of_zero_is_none() {
    let plan = Controller::<ConfigMap>::named("c").plan;
    assert_eq!(plan.resync, None, "the manager's options say");
    let plan = Controller::<ConfigMap>::named("c")
        .resync(Duration::ZERO)
        .plan;
    assert_eq!(plan.resync, Some(None));
}

#[test]
fn the_rights_of_a_kind_named_at_run_time_are_derived_like_those_of_any_other() {
    let maps = Kind::of::<ConfigMap>();
    let named = Controller::of_kind(maps, "c").finalizer("example.com/c");
    let named = named.reconcile_with(Arc::new(()), async |_, _| done());
    let known = Controller::<ConfigMap>::named("c").finalizer("example.com/c");
    let known = known.reconcile_with(Arc::new(()), async |_, _| done());
    let rights = named.rights().expect("rights");
    assert_eq!(rights, known.rights().expect("rights"));
    assert!(rights.contains(&Right::on::<ConfigMap>([Verb::Patch])));
}

fn done() -> Result<Outcome, std::convert::Infallible> {
    Ok(Outcome::Done)
}
