//! What controllers may do, in the words of RBAC: derived from what they declare, merged and sorted. Pure.

mod check;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use boatswain_cache::{Kind, Scope, Selection};
pub use check::{Answered, CheckError, Checked};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;

use crate::{leader::LeaseOptions, recorder};

/// What is done to an object, as RBAC spells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads all of them.
    List,
    /// Follows their changes.
    Watch,
    /// Creates one.
    Create,
    /// Replaces one.
    Update,
    /// Changes a part of one; server-side apply, too, which needs [`Verb::Create`] besides where the object may be missing.
    Patch,
    /// Deletes one.
    Delete,
    /// Deletes all that are selected.
    DeleteCollection,
}

impl Verb {
    /// What everybody needs who watches a kind: an informer lists and watches, and looks at single objects to learn what became of a write.
    pub const READ: [Self; 3] = [Self::Get, Self::List, Self::Watch];

    /// The verb as RBAC spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What a controller does beside watching, for [`Controller::needs`](crate::Controller::needs).
///
/// ```
/// # use boatswain::{Right, Verb};
/// # use k8s_openapi::api::{apps::v1::Deployment, core::v1::{ConfigMap, Node}};
/// let scale = Right::on::<Deployment>([Verb::Update]).subresource("scale");
/// let apply = Right::on::<ConfigMap>([Verb::Create, Verb::Patch]);
/// let look_up = Right::on::<Node>(Verb::READ);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    kind: Kind,
    subresource: Option<String>,
    reach: Reach,
    name: Option<String>,
    verbs: Vec<Verb>,
}

/// In which namespaces a right is needed, of a kind that has any.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    /// Those that the manager works in.
    Work,
    /// This one, whatever the manager works in.
    Namespace(String),
    /// Those in which Events about objects outside of namespaces are: which one is up to the server.
    Outside,
}

impl From<&Scope> for Reach {
    fn from(scope: &Scope) -> Self {
        match scope {
            Scope::All => Self::Work,
            Scope::Namespace(namespace) => Self::Namespace(namespace.clone()),
        }
    }
}

impl Right {
    /// To do `verbs` to objects of kind `K`, in the namespaces that the manager works in.
    pub fn on<K: Resource<DynamicType = ()> + 'static>(
        verbs: impl IntoIterator<Item = Verb>,
    ) -> Self {
        Self::on_kind(Kind::of::<K>(), verbs)
    }

    /// As [`Right::on`], for a kind that is known at run time only.
    pub fn on_kind(kind: Kind, verbs: impl IntoIterator<Item = Verb>) -> Self {
        Self {
            kind,
            subresource: None,
            reach: Reach::Work,
            name: None,
            verbs: verbs.into_iter().collect(),
        }
    }

    /// To tell Events of objects of kind `K`, where it is not the kind that the controller reconciles: of those this need not be said. Events about objects
    /// outside of namespaces are in `default` or `kube-system`, as the server wants it; the right is for both, wherever the manager works.
    pub fn to_tell_of<K: Resource<DynamicType = ()> + 'static>() -> Self {
        Self::to_tell_of_kind(&Kind::of::<K>())
    }

    /// As [`Right::to_tell_of`], for a kind that is known at run time only.
    pub fn to_tell_of_kind(kind: &Kind) -> Self {
        let reach = match kind.namespaced {
            true => Reach::Work,
            false => Reach::Outside,
        };
        Self {
            reach,
            ..Self::on_kind(events(), [Verb::Create, Verb::Patch])
        }
    }

    /// On a subresource, such as `status` or `scale`, instead of the object itself.
    #[must_use]
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresource = Some(name.into());
        self
    }

    /// In this namespace only, whatever namespaces the manager works in.
    #[must_use]
    pub fn within(mut self, namespace: impl Into<String>) -> Self {
        self.reach = Reach::Namespace(namespace.into());
        self
    }

    /// On the object of this name only. RBAC knows no name of what is listed or created.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// To watch what is selected.
    pub(crate) fn to_watch(selection: &Selection) -> Self {
        Self {
            reach: selection.scope().into(),
            ..Self::on_kind(selection.kind().clone(), Verb::READ)
        }
    }

    /// To tell of what happens to what is selected: where the objects are, or where there is nowhere.
    pub(crate) fn to_tell_of_selected(selection: &Selection) -> Self {
        let right = Self::to_tell_of_kind(selection.kind());
        match (&right.reach, selection.scope()) {
            (Reach::Work, Scope::Namespace(namespace)) => right.within(namespace),
            _ => right,
        }
    }

    /// To campaign for a lease, and to tell of it.
    pub(crate) fn to_lead(lease: &LeaseOptions) -> [Self; 3] {
        let leases = Kind::new("coordination.k8s.io", "v1", "Lease", "leases");
        let told = Self::on_kind(events(), [Verb::Create, Verb::Patch]);
        [
            Self::on_kind(leases.clone(), [Verb::Create]),
            Self::on_kind(leases, [Verb::Get, Verb::Update]).named(&lease.name),
            told,
        ]
        .map(|right| right.within(&lease.namespace))
    }
}

fn events() -> Kind {
    Kind::new("events.k8s.io", "v1", "Event", "events")
}

/// What may be done to some objects: one rule of a Role or, without a namespace, of a ClusterRole.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Where: everywhere if absent.
    pub namespace: Option<String>,
    /// API group, empty for the core group.
    pub group: String,
    /// The resource as RBAC spells it, with its subresource: `deployments/scale`.
    pub resource: String,
    /// The only object that is meant; all of them if absent.
    pub name: Option<String>,
    /// What is done.
    pub verbs: BTreeSet<Verb>,
}

impl Rule {
    /// The rule as a Role has it.
    pub fn policy(&self) -> PolicyRule {
        PolicyRule {
            api_groups: Some(vec![self.group.clone()]),
            resources: Some(vec![self.resource.clone()]),
            resource_names: self.name.clone().map(|name| vec![name]),
            verbs: self.verbs.iter().map(ToString::to_string).collect(),
            ..PolicyRule::default()
        }
    }

    /// The resource as people name it: `deployments.apps/scale`.
    pub fn full_resource(&self) -> String {
        let (plural, subresource) = match self.resource.split_once('/') {
            Some((plural, subresource)) => (plural, format!("/{subresource}")),
            None => (self.resource.as_str(), String::new()),
        };
        let dot = if self.group.is_empty() { "" } else { "." };
        format!("{plural}{dot}{}{subresource}", self.group)
    }
}

type Place = (Option<String>, String, String, Option<String>);

/// The least rights that suffice for the controllers of a manager: no wildcard, nothing twice, always in the same order. See
/// [`Manager::rights`](crate::Manager::rights).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights(BTreeMap<Place, BTreeSet<Verb>>);

impl Rights {
    /// Adds a right for a manager that works in `namespaces`, everywhere if there are none.
    pub(crate) fn add(&mut self, right: &Right, namespaces: &[String]) {
        let resource = match &right.subresource {
            Some(subresource) => format!("{}/{subresource}", right.kind.plural),
            None => right.kind.plural.clone(),
        };
        let places = match &right.reach {
            _ if !right.kind.namespaced => vec![None],
            Reach::Namespace(namespace) => vec![Some(namespace.clone())],
            Reach::Outside => recorder::OUTSIDE.map(|n| Some(n.to_owned())).to_vec(),
            Reach::Work if namespaces.is_empty() => vec![None],
            Reach::Work => namespaces.iter().cloned().map(Some).collect(),
        };
        for namespace in places {
            let group = right.kind.group.clone();
            let place = (namespace, group, resource.clone(), right.name.clone());
            self.0.entry(place).or_default().extend(&right.verbs);
        }
    }

    /// The rules, those of everywhere first. What is allowed everywhere is not allowed again in a namespace, nor what is allowed for all objects for one.
    pub fn rules(&self) -> Vec<Rule> {
        let rules = self.0.iter().filter_map(|(place, verbs)| {
            let verbs: BTreeSet<_> = verbs
                .iter()
                .copied()
                .filter(|verb| !self.has_wider(place, *verb))
                .collect();
            let (namespace, group, resource, name) = place.clone();
            (!verbs.is_empty()).then_some(Rule {
                namespace,
                group,
                resource,
                name,
                verbs,
            })
        });
        rules.collect()
    }

    /// Whether the verb is allowed in a place that contains this one.
    fn has_wider(&self, place: &Place, verb: Verb) -> bool {
        let (namespace, group, resource, name) = place;
        let wider = [
            (None, name.clone()),
            (namespace.clone(), None),
            (None, None),
        ];
        wider
            .into_iter()
            .map(|(namespace, name)| (namespace, group.clone(), resource.clone(), name))
            .filter(|wider| wider != place)
            .any(|wider| {
                self.0
                    .get(&wider)
                    .is_some_and(|verbs| verbs.contains(&verb))
            })
    }

    /// The rules by namespace: one Role each, and a ClusterRole for those without.
    pub fn by_namespace(&self) -> BTreeMap<Option<String>, Vec<Rule>> {
        let mut roles = BTreeMap::<_, Vec<_>>::new();
        for rule in self.rules() {
            roles.entry(rule.namespace.clone()).or_default().push(rule);
        }
        roles
    }
}
