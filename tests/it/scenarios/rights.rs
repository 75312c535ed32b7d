//! What one is told when rights are missing.

use std::{collections::BTreeSet, convert::Infallible, path::PathBuf, sync::Arc};

use boatswain::{
    Context, Controller, LeaderOptions, Manager, Note, Options, Outcome, Reconciler, Right, Rights,
    Rule, Runnable, Verb,
};
use boatswain_tests::{Crew, Space, World, acting_as, client_of, eventually};
use k8s_openapi::api::{
    core::v1::{ConfigMap, Namespace},
    events::v1::Event,
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ListParams, PostParams},
};
use packaging::{Install, Program};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::fixing::annotate;

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
    let (_, page) = crew.observer().ready();
    let degraded = page
        .lines()
        .find(|line| line.starts_with("[-]controller/podautoscaler failed"));
    assert!(
        degraded.is_some_and(|line| line.contains("forbidden")),
        "{page}"
    );
    // the manager goes on: nothing has escalated
    assert!(
        crew.observer()
            .snapshot()
            .find("root/informers")
            .is_some_and(|node| node.restarts == 0)
    );
    crew.stop().await;
}

pub(crate) async fn what_is_asked_for_while_rights_are_missing_is_done_when_they_return(
    world: &World,
) {
    let space = Space::create(&world.client().await, "rights").await;
    space.let_work().await;
    space.deploy("web", 1).await;
    space.autoscale("web", 2).await;
    let controllers = vec![podautoscaler::controller()];
    let crew = Crew::start(world.viewer_kubeconfig(), Some(&space), controllers).await;
    space.has_replicas("web", 2).await;
    space.is_synced("web", 2).await;

    space.let_no_more().await;
    let failed = || crew.metric("controller_reconcile_total", &["result=\"error\""]);
    eventually("a run is refused", async || {
        if failed() > 0.0 {
            return Ok(());
        }
        // servers learn of rights a moment late
        let other = if space.replicas("web").await == Some(3) {
            4
        } else {
            3
        };
        space.ask_for("web", other).await;
        Err("everything is allowed still")
    })
    .await;
    space.ask_for("web", 5).await;
    space.let_work().await;
    space.has_replicas("web", 5).await;
    space.is_synced("web", 5).await;
    assert_eq!(crew.observer().parked("podautoscaler").len(), 0);
    crew.ready().await;
    crew.stop().await;
}

/// The account of an installation in a namespace of its own, where it works, too.
struct Account {
    program: Program,
    name: String,
    space: Space,
    kubeconfig: PathBuf,
    client: Client,
    options: Options,
    /// The Roles that the manifests have, as the server keeps them.
    roles: Vec<Role>,
    _dir: TempDir,
}

impl Account {
    /// Installs the roles that the program's manifests have.
    async fn installed(world: &World, program: Program) -> Self {
        let space = Space::create(&world.client().await, "rights").await;
        let install = Install {
            namespace: Some(space.name.clone()),
            work_in: vec![space.name.clone()],
            ..Install::default()
        };
        let text = program.manifests(&install).expect("manifests");
        let post = PostParams::default();
        let mut roles = Vec::new();
        for document in text.split("---\n") {
            let object: Value = serde_saphyr::from_str(document).expect("YAML");
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let namespace = namespace.to_owned();
            let parsed = "an object of its kind";
            match object["kind"].as_str() {
                Some("Role") => {
                    let role: Role = serde_json::from_value(object).expect(parsed);
                    let api = Api::namespaced(space.client().clone(), &namespace);
                    roles.push(api.create(&post, &role).await.expect("created"));
                }
                Some("RoleBinding") => {
                    let binding: RoleBinding = serde_json::from_value(object).expect(parsed);
                    let api = Api::namespaced(space.client().clone(), &namespace);
                    api.create(&post, &binding).await.expect("created");
                }
                kind => assert_ne!(kind, Some("ClusterRole"), "beyond the namespaces"),
            }
        }
        let name = format!("system:serviceaccount:{}:{}", space.name, program.name);
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
            program,
            name,
            space,
            kubeconfig,
            roles,
            _dir: dir,
        }
    }

    /// What the check asks about.
    fn rights(&self) -> Rights {
        let controllers = (self.program.controllers)().into_iter();
        let manager = controllers.fold(Manager::new(self.options.clone()), Manager::with);
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

    /// Runs the program's controllers with these rights while `work` lasts. Says who asked for what was done with them; nothing was refused.
    async fn works(&self, world: &World, work: impl AsyncFnOnce(&Space)) {
        self.lacks(None).await;
        let crew = Crew::start_with(
            self.options.clone(),
            &self.kubeconfig,
            Some(&self.space),
            (self.program.controllers)(),
        )
        .await;
        crew.ready().await;
        work(&self.space).await;
        crew.stop().await;
        let asked = world.requests().await;
        let asked: Vec<_> = asked.iter().filter(|r| r.user == self.name).collect();
        assert!(asked.iter().any(|r| r.resource == "events"), "{asked:?}");
        let refused: Vec<_> = asked.iter().filter(|r| r.code == 403).collect();
        assert!(refused.is_empty(), "{refused:?}");
    }

    /// Writes a role as it is to be.
    async fn put(&self, mut role: Role) {
        let namespace = role.namespace().unwrap_or_default();
        let roles = Api::<Role>::namespaced(self.space.client().clone(), &namespace);
        role.metadata.resource_version = None;
        let name = role.name_any();
        let replaced = roles.replace(&name, &PostParams::default(), &role).await;
        replaced.expect("replaced");
    }

    /// Takes one verb of a rule away from a role. Says which of its policies had it.
    async fn take(&self, whole: &Role, rule: &Rule, verb: Verb) -> Vec<String> {
        let mut less = rule.clone();
        less.verbs.remove(&verb);
        let mut role = whole.clone();
        let namespace = rule.namespace.clone().unwrap_or_default();
        let rules = role.rules.iter_mut().flatten();
        let mut had = Vec::new();
        for policy in rules.filter(|policy| **policy == rule.policy()) {
            had.push(format!("{namespace} {policy:?}"));
            *policy = less.policy();
        }
        // RBAC knows no rule without verbs
        if let Some(rules) = &mut role.rules {
            rules.retain(|policy| !policy.verbs.is_empty());
        }
        self.put(role).await;
        had
    }

    /// Takes each verb of each rule away in turn, and sees that the check names it and nothing else.
    async fn is_told_of_each_that_is_taken_away(&self) {
        let mut policies = BTreeSet::new();
        for rule in self.rights().rules() {
            let within = |role: &&Role| role.namespace() == rule.namespace;
            let whole: Vec<_> = self.roles.iter().filter(within).collect();
            let [whole] = whole[..] else {
                panic!("one role for one namespace: {whole:?}")
            };
            for verb in rule.verbs.iter().copied() {
                policies.extend(self.take(whole, &rule, verb).await);
                self.lacks(Some((&rule, verb))).await;
            }
            self.put(whole.clone()).await;
        }
        let all = self
            .roles
            .iter()
            .flat_map(|role| role.rules.iter().flatten());
        assert_eq!(
            policies.len(),
            all.count(),
            "every rule of the manifests was taken away"
        );
    }
}

/// Waits until an Event tells that the Deployment was scaled.
async fn told(space: &Space) {
    eventually("an Event tells of it", async || {
        match space.notes("Deployment", "web", "Scaled").await.is_empty() {
            true => Err("none yet"),
            false => Ok(()),
        }
    })
    .await;
}

pub(crate) async fn the_roles_of_the_manifests_suffice_and_each_right_that_is_taken_away_is_named(
    world: &World,
) {
    let account = Account::installed(world, podautoscaler::PROGRAM).await;
    let work = async |space: &Space| {
        space.deploy("web", 1).await;
        space.autoscale("web", 3).await;
        space.has_replicas("web", 3).await;
        space.is_synced("web", 3).await;
        told(space).await;
    };
    account.works(world, work).await;
    account.is_told_of_each_that_is_taken_away().await;
}

pub(crate) async fn a_right_to_scale_that_is_missing_is_told_on_the_object_until_it_is_there(
    world: &World,
) {
    let account = Account::installed(world, podautoscaler::PROGRAM).await;
    let rights = account.rights();
    let mut rules = rights.rules().into_iter();
    let scales = rules.find(|rule| rule.resource == "deployments/scale");
    let scales = scales.expect("a rule for the scale");
    let mut roles = account.roles.iter();
    let role = roles.find(|role| role.namespace() == scales.namespace);
    let role = role.expect("a role with it");
    account.take(role, &scales, Verb::Update).await;
    account.lacks(Some((&scales, Verb::Update))).await;
    let crew = Crew::start_with(
        account.options.clone(),
        &account.kubeconfig,
        Some(&account.space),
        (account.program.controllers)(),
    )
    .await;
    crew.ready().await;
    let space = &account.space;
    space.deploy("web", 1).await;
    space.autoscale("web", 3).await;
    let status = space.says("web", "False", "Failing").await;
    let synced = status.conditions.iter().find(|c| c.type_ == "Synced");
    let message = &synced.expect("a condition").message;
    assert!(message.contains("deployments/scale"), "{message}");
    eventually("an Event tells of it", async || {
        match space.notes("PodAutoscaler", "web", "Failing").await.len() {
            0 => Err("none yet"),
            _ => Ok(()),
        }
    })
    .await;
    account.put(role.clone()).await;
    space.has_replicas("web", 3).await;
    space.is_synced("web", 3).await;
    crew.stop().await;
}

pub(crate) async fn the_roles_of_replica_fixer_suffice_and_each_right_that_is_taken_away_is_named(
    world: &World,
) {
    let account = Account::installed(world, replica_fixer::PROGRAM).await;
    let work = async |space: &Space| {
        space.deploy("web", 1).await;
        annotate(space, "web", json!("3")).await;
        space.has_replicas("web", 3).await;
        told(space).await;
    };
    account.works(world, work).await;
    account.is_told_of_each_that_is_taken_away().await;
}

/// Tells of the namespaces of what it reconciles.
struct Crier;

impl Reconciler<ConfigMap> for Crier {
    type Error = Infallible;

    async fn reconcile(&self, map: Arc<ConfigMap>, cx: &Context) -> Result<Outcome, Infallible> {
        if map.name_any() == "news" {
            let mut space = Namespace::default();
            space.metadata.name = map.namespace();
            cx.tell(&Note::normal(&space, "Heard", "there are news").because_of(map.as_ref()));
        }
        Ok(Outcome::Done)
    }
}

fn crier() -> Runnable {
    Controller::<ConfigMap>::named("crier")
        .needs(Right::to_tell_of::<Namespace>())
        .reconciler(|_| Crier)
}

const CRIER: Program = Program {
    name: "crier",
    version: "0.0.0",
    description: "Tells of namespaces.",
    controllers: || vec![crier()],
    lease_per_controller: false,
    crds: Vec::new,
};

pub(crate) async fn roles_suffice_to_tell_of_objects_outside_of_namespaces_wherever_the_server_wants_it(
    world: &World,
) {
    let account = Account::installed(world, CRIER).await;
    let work = async |space: &Space| {
        space.put("news", "x").await;
        eventually("an Event tells of it", async || {
            let mut told = Vec::new();
            for namespace in ["default", "kube-system"] {
                let events = Api::<Event>::namespaced(space.client().clone(), namespace);
                let events = events.list(&ListParams::default()).await;
                told.extend(events.map_err(|error| error.to_string())?.items);
            }
            let of_space = |event: &&Event| {
                let about = event.regarding.as_ref().and_then(|o| o.name.as_deref());
                about == Some(&space.name) && event.reason.as_deref() == Some("Heard")
            };
            match told.iter().filter(of_space).count() {
                1 => Ok(()),
                other => Err(format!("{other} of {told:?}")),
            }
        })
        .await;
    };
    account.works(world, work).await;
    account.is_told_of_each_that_is_taken_away().await;
}
