use std::{collections::BTreeSet, fs, path::Path};

use boatswain::Right;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::Node};
use packaging::{Install, minor};
use serde_json::{Value, json};

use super::*;

fn install() -> Install {
    Install {
        namespace: Some("ops".into()),
        image: Some("podautoscaler:test".into()),
        ..Install::default()
    }
}

fn parsed(text: &str) -> Vec<Value> {
    text.split("---\n")
        .map(|doc| serde_saphyr::from_str(doc).expect("a YAML document"))
        .collect()
}

fn documents_of(install: &Install) -> Vec<Value> {
    parsed(&PROGRAM.manifests(install).expect("manifests"))
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    documents.iter().filter(|d| d["kind"] == kind).collect()
}

/// `group/resource name: verbs` of each rule of a role.
fn rules(role: &Value) -> Vec<String> {
    let text = |value: &Value| {
        let words = value.as_array().into_iter().flatten();
        words
            .filter_map(Value::as_str)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let rules = role["rules"].as_array().expect("rules").iter();
    rules
        .map(|rule| {
            let [groups, resources, names, verbs] =
                ["apiGroups", "resources", "resourceNames", "verbs"].map(|part| text(&rule[part]));
            format!("{groups} {resources} {names}: {verbs}")
        })
        .collect()
}

#[test]
fn the_schema_bounds_what_every_server_since_1_20_honours() {
    let crd = &documents_of(&install())[0];
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let replicas = &spec["properties"]["replicas"];
    assert_eq!(replicas["format"], "int32");
    let bounds = (replicas["minimum"].as_f64(), replicas["maximum"].as_f64());
    assert_eq!(bounds, (Some(0.0), Some(10000.0)));
    let target = &spec["properties"]["targetDeployment"];
    assert_eq!(target["maxLength"], 253);
    let pattern = target["pattern"].as_str();
    assert!(pattern.is_some_and(|p| p.starts_with("^[a-z0-9]")));
    assert!(
        !crd.to_string().contains("x-kubernetes-validations"),
        "older servers drop rules in CEL"
    );
    assert_eq!(
        crd["spec"]["versions"][0]["subresources"]["status"],
        json!({})
    );
}

#[test]
fn the_rights_are_exactly_what_the_controller_does() {
    let documents = documents_of(&install());
    let cluster = of_kind(&documents, "ClusterRole");
    assert_eq!(cluster.len(), 1);
    assert_eq!(
        rules(cluster[0]),
        [
            "apps deployments : get list watch",
            "apps deployments/scale : update",
            "autoscaling.example.com podautoscalers : get list watch",
            "autoscaling.example.com podautoscalers/status : patch",
            "events.k8s.io events : create patch",
        ]
    );
    let own = of_kind(&documents, "Role");
    assert_eq!(own.len(), 1);
    assert_eq!(own[0]["metadata"]["namespace"], "ops");
    assert_eq!(
        rules(own[0]),
        [
            "coordination.k8s.io leases : create",
            "coordination.k8s.io leases podautoscaler-leader: get update",
        ]
    );
}

#[test]
fn in_chosen_namespaces_there_are_roles_and_no_right_beyond_them() {
    let install = Install {
        work_in: vec!["front".into(), "ops".into()],
        ..install()
    };
    let documents = documents_of(&install);
    assert!(of_kind(&documents, "ClusterRole").is_empty());
    let roles = of_kind(&documents, "Role");
    let count = |role: &&Value| {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        (namespace.to_owned(), rules(role).len())
    };
    let counts: Vec<_> = roles.iter().map(count).collect();
    // in its own namespace the lease, too
    assert_eq!(counts, [("front".to_owned(), 5), ("ops".to_owned(), 7)]);
    let deployment = of_kind(&documents, "Deployment")[0];
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(args.to_string().contains("--namespace=front,ops"), "{args}");
}

#[test]
fn everything_namespaced_goes_into_the_chosen_namespace() {
    for document in documents_of(&install()) {
        let kind = document["kind"].as_str().unwrap_or_default();
        let cluster_wide = ["Namespace", "CustomResourceDefinition"].contains(&kind)
            || kind.starts_with("ClusterRole");
        let namespace = &document["metadata"]["namespace"];
        assert_eq!(*namespace == "ops", !cluster_wide, "{kind}");
    }
}

#[test]
fn the_container_has_nothing_that_it_does_not_need_and_its_probes() {
    let documents = documents_of(&install());
    let pod = &of_kind(&documents, "Deployment")[0]["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(
        pod["securityContext"]["seccompProfile"]["type"],
        "RuntimeDefault"
    );
    let container = &pod["containers"][0];
    assert_eq!(
        container["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        })
    );
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert!(container["resources"]["limits"]["memory"].is_string());
    // nobody kills what is still within its time
    let longest = boatswain::Options::default().longest_stop(1).as_secs();
    let patience = pod["terminationGracePeriodSeconds"].as_u64();
    assert!(
        patience.is_some_and(|patience| patience > longest),
        "{patience:?}"
    );
}

#[test]
fn the_disruption_budget_is_of_a_version_that_the_server_has() {
    for (version, api) in [
        ("1.20", "policy/v1beta1"),
        ("v1.21.3", "policy/v1"),
        ("36", "policy/v1"),
    ] {
        let install = Install {
            kubernetes_version: minor(version).expect("a version"),
            ..install()
        };
        let documents = documents_of(&install);
        let budget = of_kind(&documents, "PodDisruptionBudget")[0];
        assert_eq!(budget["apiVersion"], api, "{version}");
        let deployment = of_kind(&documents, "Deployment")[0];
        assert_eq!(budget["spec"]["selector"], deployment["spec"]["selector"]);
    }
    assert_eq!(minor("v1.30.4-gke.1129000"), Ok(30));
    assert_eq!(minor("1.30+"), Ok(30));
    for other in [
        "1.19",
        "new",
        "2.30",
        "1.",
        "",
        "vv1.30",
        "1.999",
        "30.4",
        "1.30banana",
    ] {
        assert!(minor(other).is_err(), "{other}");
    }
}

#[test]
fn a_kustomize_base_holds_what_the_stream_holds() {
    let files = PROGRAM.kustomize(&install()).expect("files");
    let base: Value = serde_saphyr::from_str(&files[0].1).expect("YAML");
    let listed: Vec<_> = base["resources"]
        .as_array()
        .expect("resources")
        .iter()
        .collect();
    let names: Vec<_> = files[1..].iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, names);
    let objects = |documents: Vec<Value>| -> BTreeSet<String> {
        documents.iter().map(ToString::to_string).collect()
    };
    let written = files[1..].iter().flat_map(|(_, text)| parsed(text));
    assert_eq!(
        objects(written.collect()),
        objects(documents_of(&install()))
    );
}

/// The folders in the repository that `manifests` has written, and the command for each.
#[test]
fn the_folders_for_kustomize_and_helm_are_current() {
    let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
    let folders = [
        (
            "kustomize",
            PROGRAM.kustomize(&Install::default()).expect("files"),
        ),
        ("helm/podautoscaler", PROGRAM.chart().expect("files")),
    ];
    for (folder, files) in folders {
        for (name, text) in files {
            let path = deploy.join(folder).join(name);
            let kept = fs::read_to_string(&path).unwrap_or_default();
            let (format, _) = folder.split_once('/').unwrap_or((folder, ""));
            assert!(
                kept == text,
                "{} is not current: run `cargo run -p podautoscaler -- manifests --format {format} --into deploy/{folder}`",
                path.display()
            );
        }
    }
}

#[test]
fn the_image_has_the_user_and_the_entry_point_that_the_manifests_count_on() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let recipe = fs::read_to_string(root.join("Dockerfile")).expect("a recipe");
    let documents = documents_of(&install());
    let pod = &of_kind(&documents, "Deployment")[0]["spec"]["template"]["spec"];
    let [user, group] = ["runAsUser", "runAsGroup"].map(|part| &pod["securityContext"][part]);
    let lines: Vec<_> = recipe.lines().collect();
    assert!(
        lines.contains(&format!("USER {user}:{group}").as_str()),
        "{recipe}"
    );
    // it brings arguments only
    assert_eq!(pod["containers"][0].get("command"), None);
    let copied = lines
        .iter()
        .rfind(|line| line.starts_with("COPY --from=build "));
    let place = copied
        .and_then(|line| line.split(' ').next_back())
        .expect("a copy");
    let entry = format!("ENTRYPOINT [\"{place}\"]");
    assert!(lines.contains(&entry.as_str()), "{recipe}");
    for program in lines
        .iter()
        .filter_map(|line| line.strip_prefix("ARG PROGRAM="))
    {
        let folder = root.join("controllers").join(program);
        assert!(
            folder.join("src/main.rs").is_file(),
            "there is no {program}"
        );
    }
    // the compiler is the image's
    let ignored = fs::read_to_string(root.join(".dockerignore")).expect("a list");
    assert!(ignored.lines().any(|line| line == "rust-toolchain.toml"));
}

/// YAML takes many words for something else than text.
#[test]
fn namespaces_that_look_like_numbers_or_truth_stay_names() {
    for name in ["123", "1e3", "true", "null", "0x1f", "on", "y", "1-2"] {
        let install = Install {
            namespace: Some(name.into()),
            work_in: vec![name.into()],
            ..install()
        };
        for document in documents_of(&install) {
            let kind = document["kind"].as_str().unwrap_or_default();
            let place = match kind {
                "CustomResourceDefinition" => continue,
                "Namespace" => &document["metadata"]["name"],
                _ => &document["metadata"]["namespace"],
            };
            assert_eq!(place, name, "{kind}");
        }
    }
}

#[test]
fn a_program_whose_controllers_have_a_lease_each_may_hold_each_and_is_told_to() {
    let fleet = Program {
        lease_per_controller: true,
        controllers: || vec![controller(), other().reconciler(|_| Idler)],
        ..PROGRAM
    };
    let documents = parsed(&fleet.manifests(&install()).expect("manifests"));
    let roles = of_kind(&documents, "Role");
    let rules: Vec<_> = roles.iter().flat_map(|role| rules(role)).collect();
    for lease in [
        "podautoscaler-leader-podautoscaler",
        "podautoscaler-leader-other",
    ] {
        let rule = format!("coordination.k8s.io leases {lease}: get update");
        assert!(rules.contains(&rule), "{rules:?}");
    }
    let deployment = of_kind(&documents, "Deployment")[0];
    let args = &deployment["spec"]["template"]["spec"]["containers"][0]["args"];
    let args: Vec<_> = args.as_array().into_iter().flatten().collect();
    assert!(args.contains(&&json!("--lease-per-controller")), "{args:?}");
    // each lease may take its time to be given back
    let patience = |documents: &[Value]| {
        let pod = &of_kind(documents, "Deployment")[0]["spec"]["template"]["spec"];
        pod["terminationGracePeriodSeconds"].as_u64()
    };
    assert_eq!(patience(&documents), Some(50));
    assert_eq!(patience(&documents_of(&install())), Some(40));
}

#[test]
fn a_program_that_tells_of_nodes_may_do_so_where_servers_want_it_by_roles_that_meet_no_others() {
    let warden = Program {
        controllers: || {
            vec![
                other()
                    .needs(Right::to_tell_of::<Node>())
                    .reconciler(|_| Idler),
            ]
        },
        ..PROGRAM
    };
    let install = Install {
        work_in: vec!["default".into(), "front".into()],
        ..install()
    };
    let documents = parsed(&warden.manifests(&install).expect("manifests"));
    let roles = of_kind(&documents, "Role");
    let tells =
        |role: &&&Value| rules(role).contains(&"events.k8s.io events : create patch".into());
    let places: Vec<_> = roles.iter().filter(tells).collect();
    let places: Vec<_> = places
        .iter()
        .map(|role| &role["metadata"]["namespace"])
        .collect();
    assert_eq!(places, ["default", "front", "kube-system", "ops"]);

    // of a chart the namespaces are chosen later, and may be these
    let chart = warden.chart().expect("a chart");
    let templates = chart.iter().find(|(name, _)| name.ends_with("rbac.yaml"));
    let (_, template) = templates.expect("a template");
    let (fixed, ranged) = template.split_once("{{- range").expect("a loop");
    let named = |name: &str| format!("  name: podautoscaler-{name}\n  namespace: default");
    assert!(
        fixed.contains(&named("extra")) && !fixed.contains("-objects"),
        "{fixed}"
    );
    assert!(
        ranged.contains("-objects") && !ranged.contains("-extra"),
        "{ranged}"
    );
}

struct Idler;

impl boatswain::Reconciler<Deployment> for Idler {
    type Error = std::convert::Infallible;

    async fn reconcile(
        &self,
        _: std::sync::Arc<Deployment>,
        _: &boatswain::Context,
    ) -> Result<boatswain::Outcome, Self::Error> {
        Ok(boatswain::Outcome::Done)
    }
}

/// Another controller.
fn other() -> boatswain::Controller<Deployment> {
    boatswain::Controller::<Deployment>::named("other")
}
