//! Who else sets the replicas of a Deployment; pure.

use k8s_openapi::{
    api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry,
};

/// The manager of the newest managedFields entry that owns the replicas, is not `us` and can have undone our write. Servers since 1.22 track the writes of
/// `scale` and tell them by the subresource; before, whoever created or edited the Deployment goes on owning what others have written since, so that only who
/// came after our write is to blame.
pub(crate) fn rival_of(
    us: &str,
    deployment: &Deployment,
    since: Option<jiff::Timestamp>,
) -> Option<String> {
    // entries have whole seconds
    let since = since.map_or(i64::MIN, jiff::Timestamp::as_second);
    let created = deployment.metadata.creation_timestamp.as_ref();
    let entries = deployment.metadata.managed_fields.iter().flatten();
    entries
        .filter(|entry| entry.manager.as_deref() != Some(us))
        .filter(|entry| owns(entry, "/f:spec/f:replicas"))
        .filter(|entry| {
            let time = entry.time.as_ref();
            let came_after = time.is_some_and(|time| time.0.as_second() >= since);
            // nobody sets the selector later
            let creates = time == created && owns(entry, "/f:spec/f:selector");
            entry.subresource.as_deref() == Some("scale") || came_after && !creates
        })
        .max_by_key(|entry| entry.time.as_ref().map(|time| time.0))
        .and_then(|entry| entry.manager.clone())
}

fn owns(entry: &ManagedFieldsEntry, field: &str) -> bool {
    let fields = entry.fields_v1.as_ref();
    fields.is_some_and(|fields| fields.0.pointer(field).is_some())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, Time};

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

    #[test]
    fn within_one_second_a_rival_is_told_from_the_creator() {
        let at = |second| jiff::Timestamp::from_second(second).ok();
        let mut deployment = Deployment::default();
        deployment.metadata.creation_timestamp = at(10).map(Time);
        let mut creator = entry("creator", 10, "f:replicas");
        creator.fields_v1 = Some(FieldsV1(serde_json::json!({
            "f:spec": { "f:replicas": {}, "f:selector": {} },
        })));
        deployment.metadata.managed_fields = Some(vec![creator]);
        assert_eq!(rival_of("us", &deployment, at(10)), None);
        deployment.metadata.managed_fields = Some(vec![entry("hpa", 10, "f:replicas")]);
        assert_eq!(rival_of("us", &deployment, at(10)).as_deref(), Some("hpa"));
        let mut scale = entry("hpa", 10, "f:replicas");
        scale.subresource = Some("scale".into());
        deployment.metadata.managed_fields = Some(vec![scale]);
        assert_eq!(rival_of("us", &deployment, at(10)).as_deref(), Some("hpa"));
        // entries may keep the time of the first of equal writes
        assert_eq!(rival_of("us", &deployment, at(12)).as_deref(), Some("hpa"));
    }
}
