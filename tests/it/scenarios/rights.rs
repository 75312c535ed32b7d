//! What one is told when rights are missing.

use std::{collections::BTreeSet, path::PathBuf};

use boatswain::{LeaderOptions, Manager, Options, Rights, Rule, Verb};
use boatswain_tests::{Crew, Space, World, acting_as, client_of, eventually};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::{Api, Client, ResourceExt as _, api::PostParams};
use podautoscaler::Install;
use serde_json::Value;
use tempfile::TempDir;

pub(crate) async fn a_user_without_rights_is_told_which_verb_and_resource_is_forbidden(
    world: &World,
) {
    let space = Space::create(&world.client().await, "viewer").await;
    let crew = Crew::start(
        world.viewer_kubeconfig(),
        Some(&space),
        vec![podautoscaler::controller()],
    )
    .await;
    for resource in ["deployments", "podautoscalers"] {
        eventually("readiness names what is forbidden", async || {
            let (ready, page) = crew.observer().ready();
            assert!(!ready, "{page}");
            let named = page.lines().any(|line| {
                line.starts_with("[-]informer/")
                    && line.contains("forbidden")
                    && line.contains("list")
                    && line.contains(resource)
            });
            if named { Ok(()) } else { Err(page) }
        })
        .await;
    }
    // the manager goes on: nothing has escalated
    assert!(
        crew.observer()
            .snapshot()
            .find("root/informers")
            .is_some_and(|node| node.restarts == 0)
    );
    crew.stop().await;
}

/// The account of an installation in a namespace of its own, where it works, too.
struct Account {
    name: String,
    space: Space,
    kubeconfig: PathBuf,
    client: Client,
    options: Options,
    _dir: TempDir,
}

impl Account {
    /// Installs the roles that the manifests have.
    async fn installed(world: &World) -> Self {
        let space = Space::create(&world.client().await, "rights").await;
        let install = Install {
            namespace: space.name.clone(),
            work_in: vec![space.name.clone()],
            ..Install::default()
        };
        let text = podautoscaler::manifests(&install).expect("manifests");
        let post = PostParams::default();
        for document in text.split("---\n") {
            let object: Value = serde_saphyr::from_str(document).expect("YAML");
            let parsed = "an object of its kind";
            match object["kind"].as_str() {
                Some("Role") => {
                    let role: Role = serde_json::from_value(object).expect(parsed);
                    roles(&space).create(&post, &role).await.expect("created");
                }
                Some("RoleBinding") => {
                    let binding: RoleBinding = serde_json::from_value(object).expect(parsed);
                    let bindings = Api::namespaced(space.client().clone(), &space.name);
                    bindings.create(&post, &binding).await.expect("created");
                }
                kind => assert_ne!(kind, Some("ClusterRole"), "beyond the namespace"),
            }
        }
        let name = format!("system:serviceaccount:{}:podautoscaler", space.name);
        let dir = tempfile::tempdir().expect("a folder");
        let kubeconfig = dir.path().join("kubeconfig");
        acting_as(world.kubeconfig(), &name, &kubeconfig);
        Self {
            client: client_of(&kubeconfig).await,
            options: Options {
                namespaces: vec![space.name.clone()],
                leader: Some(LeaderOptions {
                    namespace: Some(space.name.clone()),
                    ..LeaderOptions::default()
                }),
                ..Options::default()
            },
            name,
            space,
            kubeconfig,
            _dir: dir,
        }
    }

    /// What the check asks about.
    fn rights(&self) -> Rights {
        let manager = Manager::new(self.options.clone()).with(podautoscaler::controller());
        manager.rights().expect("rights")
    }

    /// Waits until the check finds that exactly `missing` is missing: a real server looks at roles through a cache of its own.
    async fn lacks(&self, missing: Option<(&Rule, Verb)>) {
        eventually("the check names what is missing", async || {
            let checked = self.rights().check(&self.client).await;
            let checked = checked.map_err(|error| error.to_string())?;
            let found: Vec<_> = checked.missing().map(|a| (&a.rule, a.verb)).collect();
            if found == missing.into_iter().collect::<Vec<_>>() {
                Ok(())
            } else {
                Err(format!("missing, but for {missing:?}:\n{checked}"))
            }
        })
        .await;
    }
}

fn roles(space: &Space) -> Api<Role> {
    Api::namespaced(space.client().clone(), &space.name)
}

pub(crate) async fn the_roles_of_the_manifests_suffice_and_each_right_that_is_taken_away_is_named(
    world: &World,
) {
    let account = Account::installed(world).await;
    let space = &account.space;
    account.lacks(None).await;

    let crew = Crew::start_with(
        account.options.clone(),
        &account.kubeconfig,
        Some(space),
        vec![podautoscaler::controller()],
    )
    .await;
    crew.ready().await;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    space.has_replicas("web", 3).await;
    space.is_synced("web", 3).await;
    eventually("an Event tells of it", async || {
        match space.notes("Deployment", "web", "Scaled").await.is_empty() {
            true => Err("none yet"),
            false => Ok(()),
        }
    })
    .await;
    crew.stop().await;
    let asked = world.requests().await;
    let asked: Vec<_> = asked.iter().filter(|r| r.user == account.name).collect();
    assert!(asked.iter().any(|r| r.subresource == "scale"), "{asked:?}");
    let refused: Vec<_> = asked.iter().filter(|r| r.code == 403).collect();
    assert!(refused.is_empty(), "{refused:?}");

    let names = roles(space).list(&Default::default()).await.expect("roles");
    let [whole] = &names.items[..] else {
        panic!("one role for one namespace: {names:?}")
    };
    let mut policies = BTreeSet::new();
    for rule in account.rights().rules() {
        for verb in rule.verbs.iter().copied() {
            let mut less = rule.clone();
            less.verbs.remove(&verb);
            let mut role = whole.clone();
            role.metadata.resource_version = None;
            let rules = role.rules.iter_mut().flatten();
            for policy in rules.filter(|policy| **policy == rule.policy()) {
                policies.insert(format!("{policy:?}"));
                *policy = less.policy();
            }
            // RBAC knows no rule without verbs
            if let Some(rules) = &mut role.rules {
                rules.retain(|policy| !policy.verbs.is_empty());
            }
            let name = role.name_any();
            roles(space)
                .replace(&name, &PostParams::default(), &role)
                .await
                .expect("replaced");
            account.lacks(Some((&rule, verb))).await;
        }
    }
    let all = whole.rules.as_ref().map_or(0, Vec::len);
    assert_eq!(
        policies.len(),
        all,
        "every rule of the manifests was taken away"
    );
}
