//! What a request asks for, as authorization, faults and the audit log see it.

/// A request's attributes. Empty strings stand for what it does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// The authenticated user.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`; the HTTP method in lower
    /// case for a path that is no resource.
    pub verb: &'static str,
    /// The API group; empty for the core group and for a path that is no resource.
    pub group: String,
    /// The version within the group.
    pub version: String,
    /// The plural of the resource; empty for a path that is no resource.
    pub resource: String,
    /// `status`, `scale`, or empty for the object itself.
    pub subresource: String,
    /// The namespace in the path; empty for all, or for cluster-scoped resources.
    pub namespace: String,
    /// The name in the path; for a create, the name in the body.
    pub name: String,
    /// The path without the query.
    pub path: String,
}

/// Which requests something applies to. A part that is not set matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    verb: Option<String>,
    group: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    user: Option<String>,
}

impl Matcher {
    /// Matches every request.
    pub fn any() -> Self {
        Self::default()
    }

    /// Only this verb, for example `list`.
    #[must_use]
    pub fn verb(mut self, verb: impl Into<String>) -> Self {
        self.verb = Some(verb.into());
        self
    }

    /// Only this API group; empty for the core group.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Only this resource, by its plural.
    #[must_use]
    pub fn resource(mut self, plural: impl Into<String>) -> Self {
        self.resource = Some(plural.into());
        self
    }

    /// Only this subresource; empty for the object itself.
    #[must_use]
    pub fn subresource(mut self, subresource: impl Into<String>) -> Self {
        self.subresource = Some(subresource.into());
        self
    }

    /// Only in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Only for the object of this name.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Only for this user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Whether a request matches.
    pub fn matches(&self, request: &Attributes) -> bool {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_deref().is_none_or(|wanted| wanted == found)
        };
        same(&self.verb, request.verb)
            && same(&self.group, &request.group)
            && same(&self.resource, &request.resource)
            && same(&self.subresource, &request.subresource)
            && same(&self.namespace, &request.namespace)
            && same(&self.name, &request.name)
            && same(&self.user, &request.user)
    }
}
