//! Who else sets the replicas of a Deployment; pure.

use k8s_openapi::api::apps::v1::Deployment;

/// The manager of the newest managedFields entry that owns the replicas, is not `us` and wrote after we did: servers before 1.22 track no writes of `scale`,
/// and whoever created the Deployment is not to blame for them.
pub(crate) fn rival_of(
    us: &str,
    deployment: &Deployment,
    since: Option<jiff::Timestamp>,
) -> Option<String> {
    // entries have whole seconds
    let since = since.map_or(i64::MIN, jiff::Timestamp::as_second);
    let entries = deployment.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() != Some(us))
        .filter(|entry| {
            entry
                .time
                .as_ref()
                .is_some_and(|time| time.0.as_second() >= since)
        })
        .filter(|entry| {
            let fields = entry.fields_v1.as_ref().map(|fields| &fields.0);
            fields.is_some_and(|fields| fields.pointer("/f:spec/f:replicas").is_some())
        })
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
        .and_then(|entry| entry.manager.clone())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, Time};

    use super::*;

    fn entry(manager: &str, second: i64, field: &str) -> ManagedFieldsEntry {
        let mut fields = serde_json::Map::new();
        fields.insert(field.into(), serde_json::json!({}));
        let spec = serde_json::json!({ "f:spec": fields });
        ManagedFieldsEntry {
            manager: Some(manager.into()),
            time: Some(Time(
                jiff::Timestamp::from_second(second).expect("in range"),
            )),
            fields_v1: Some(FieldsV1(spec)),
            ..ManagedFieldsEntry::default()
        }
    }

    #[test]
    fn the_rival_is_who_last_set_the_replicas_since_we_did() {
        let mut deployment = Deployment::default();
        deployment.metadata.managed_fields = Some(vec![
            entry("kubectl-create", 10, "f:replicas"),
            entry("hpa", 31, "f:replicas"),
            entry("another-hpa", 30, "f:replicas"),
            entry("us", 33, "f:replicas"),
            entry("deployment-controller", 34, "f:paused"),
        ]);
        let since = |second| jiff::Timestamp::from_second(second).ok();
        let rival = |second| rival_of("us", &deployment, since(second));
        assert_eq!(rival(20).as_deref(), Some("hpa"));
        assert_eq!(
            rival(31).as_deref(),
            Some("hpa"),
            "entries have no fractions"
        );
        assert_eq!(rival(32), None, "older ones are not to blame");
        assert_eq!(rival_of("us", &Deployment::default(), None), None);
    }
}
