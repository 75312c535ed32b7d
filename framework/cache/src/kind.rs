//! Which resource is mirrored, and how much of it.

use std::any::TypeId;
use std::fmt;

#[cfg(test)]
mod tests;

/// A resource of the API server: what it is called in objects and in URLs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    /// API group, empty for the core group.
    pub group: String,
    /// API version within the group, such as `v1`.
    pub version: String,
    /// Kind as written in objects, such as `Deployment`.
    pub kind: String,
    /// Name of the resource in URLs, such as `deployments`.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Kind {
    /// A kind that is known at run time only, with objects in namespaces; see [`Kind::cluster_wide`]. Its objects are read as
    /// [`DynamicObject`](kube::core::DynamicObject).
    #[must_use]
    pub fn new(
        group: impl Into<String>,
        version: impl Into<String>,
        kind: impl Into<String>,
        plural: impl Into<String>,
    ) -> Self {
        Self {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
        }
    }

    /// The same with objects outside of namespaces.
    #[must_use]
    pub fn cluster_wide(self) -> Self {
        Self {
            namespaced: false,
            ..self
        }
    }

    /// A kind that discovery found, such as by `kube::discovery::pinned_kind`, which knows whether its objects live in namespaces.
    ///
    /// ```no_run
    /// # use boatswain_cache::Kind;
    /// # async fn example(client: &kube::Client) -> kube::Result<()> {
    /// let cranes = kube::core::GroupVersionKind::gvk("harbour.example.com", "v1", "Crane");
    /// let (resource, capabilities) = kube::discovery::pinned_kind(client, &cranes).await?;
    /// let cranes = Kind::discovered(&resource, &capabilities);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn discovered(
        resource: &kube::core::ApiResource,
        capabilities: &kube::discovery::ApiCapabilities,
    ) -> Self {
        Self {
            namespaced: capabilities.scope == kube::discovery::Scope::Namespaced,
            ..Self::from(resource)
        }
    }

    /// The kind of a type known at compile time, from `k8s-openapi` or `#[derive(CustomResource)]`.
    #[must_use]
    pub fn of<K: kube::Resource<DynamicType = ()> + 'static>() -> Self {
        Self {
            group: K::group(&()).into_owned(),
            version: K::version(&()).into_owned(),
            kind: K::kind(&()).into_owned(),
            plural: K::plural(&()).into_owned(),
            namespaced: TypeId::of::<K::Scope>()
                == TypeId::of::<kube::core::NamespaceResourceScope>(),
        }
    }

    /// The kind as kube takes it, such as for `Api::<DynamicObject>::namespaced_with`.
    #[must_use]
    pub fn api_resource(&self) -> kube::core::ApiResource {
        kube::core::ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// `apiVersion` as written in objects, such as `apps/v1` or `v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The resource as people and RBAC name it, such as `deployments.apps` or `pods`.
    #[must_use]
    pub fn resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }

    /// Whether its objects are Secrets, which nobody has to say.
    pub(crate) fn holds_secrets(&self) -> bool {
        self.group.is_empty() && self.plural == "secrets"
    }

    /// The URL path of the collection within `scope`, without host and query.
    #[must_use]
    pub fn path(&self, scope: &Scope) -> String {
        let root = if self.group.is_empty() { "api" } else { "apis" };
        let group = if self.group.is_empty() {
            String::new()
        } else {
            format!("/{}", self.group)
        };
        let namespace = match scope {
            Scope::Namespace(namespace) if self.namespaced => format!("/namespaces/{namespace}"),
            _ => String::new(),
        };
        format!("/{root}{group}/{}{namespace}/{}", self.version, self.plural)
    }
}

/// With objects in namespaces, which an `ApiResource` does not say; see [`Kind::cluster_wide`].
impl From<&kube::core::ApiResource> for Kind {
    fn from(resource: &kube::core::ApiResource) -> Self {
        let kube::core::ApiResource {
            group,
            version,
            kind,
            plural,
            ..
        } = resource;
        Self::new(group, version, kind, plural)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.resource())
    }
}

/// How much of a kind is mirrored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Every object the server has.
    All,
    /// The objects of one namespace.
    Namespace(String),
}

impl Scope {
    /// The objects of one namespace: short for [`Scope::Namespace`].
    pub fn namespace(name: impl Into<String>) -> Self {
        Self::Namespace(name.into())
    }

    /// Whether objects in `namespace` belong to this scope.
    #[must_use]
    pub fn contains(&self, namespace: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Namespace(mine) => namespace == Some(mine),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "*",
            Self::Namespace(namespace) => namespace,
        })
    }
}
