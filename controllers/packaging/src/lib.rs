//! What installs a program of controllers: YAML documents, a Kustomize base, a Helm chart, all from one source.

mod helm;
mod objects;

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use boatswain::{Runnable, StartError};
use clap::{Args, ValueEnum};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use objects::Site;
use serde_json::{Value, json};

/// A program to install: it has the commands `run` and `manifests`.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name, and by default that of its image and its namespace.
    pub name: &'static str,
    /// Its version, and by default that of its image.
    pub version: &'static str,
    /// What it does, in a sentence.
    pub description: &'static str,
    /// The controllers that it runs: what they declare to need is what it may do.
    pub controllers: fn() -> Vec<Runnable>,
    /// Whether each of them has a lease of its own, so that replicas share the work.
    pub lease_per_controller: bool,
    /// The kinds that it brings along.
    pub crds: fn() -> Vec<CustomResourceDefinition>,
}

/// The newest server that is tested, and its minor version.
const NEWEST: (&str, u32) = ("1.36", 36);

/// What can be chosen about an installation.
#[derive(Clone, Debug, Args)]
pub struct Install {
    /// Namespace the controller runs in [default: called as the program]
    #[arg(long, value_name = "NS", value_parser = boatswain::namespace)]
    pub namespace: Option<String>,
    /// Namespaces the controller works in, by Roles instead of a ClusterRole; may be repeated [default: all]
    #[arg(long = "work-in", value_name = "NS", value_delimiter = ',', value_parser = boatswain::namespace)]
    pub work_in: Vec<String>,
    /// Container image [default: the program's name and version]
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub image: Option<String>,
    /// Kubernetes version of the cluster, as 1.36 or v1.36.2; before 1.21 the PodDisruptionBudget is of policy/v1beta1
    #[arg(long, value_name = "VERSION", value_parser = minor, default_value = NEWEST.0)]
    pub kubernetes_version: u32,
    /// One stream of YAML, or a folder as a Kustomize base or a Helm chart
    #[arg(
        long,
        value_enum,
        default_value = "yaml",
        requires_if("kustomize", "into"),
        requires_if("helm", "into")
    )]
    pub format: Format,
    /// Folder to write a Kustomize base or a Helm chart to; of a chart, namespaces, image and version are values
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
}

impl Default for Install {
    /// As the command line without flags.
    fn default() -> Self {
        Self {
            namespace: None,
            work_in: Vec::new(),
            image: None,
            kubernetes_version: NEWEST.1,
            format: Format::Yaml,
            into: None,
        }
    }
}

impl Install {
    /// Whether all that is said has a meaning beside the rest: what would be dropped silently is missed where it hurts, in a cluster.
    ///
    /// # Errors
    ///
    /// What has none.
    fn validate(&self) -> Result<(), PrintError> {
        let mut seen = HashSet::new();
        if let Some(twice) = self.work_in.iter().find(|&name| !seen.insert(name)) {
            return Err(PrintError::Twice(twice.clone()));
        }
        let useless = match self.format {
            Format::Yaml if self.into.is_some() => Some(
                "YAML is one stream on standard output: leave out --into, or choose --format kustomize or helm",
            ),
            Format::Helm if self.namespace.is_some() => Some(
                "a chart is for any namespace: leave out --namespace, and give it to helm install",
            ),
            Format::Helm if !self.work_in.is_empty() => Some(
                "a chart is for any namespaces: leave out --work-in, and give helm install --set 'namespaces={a,b}'",
            ),
            Format::Helm if self.image.is_some() => Some(
                "a chart is for any image: leave out --image, and give helm install --set image.repository=NAME,image.tag=TAG",
            ),
            Format::Helm if self.kubernetes_version != NEWEST.1 => {
                Some("a chart finds out the version of its cluster: leave out --kubernetes-version")
            }
            _ => None,
        };
        useless.map_or(Ok(()), |why| Err(PrintError::Useless(why)))
    }
}

/// How an installation is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// YAML documents on standard output.
    Yaml,
    /// A folder for `kubectl apply -k`.
    Kustomize,
    /// A chart for `helm install`.
    Helm,
}

/// The minor version of `1.36`, `v1.36.2` or `36`.
///
/// # Errors
///
/// When it is none, or older than 1.20.
pub fn minor(text: &str) -> Result<u32, String> {
    let number = |part: &str| part.parse::<u32>().ok();
    let parts: Vec<_> = text.strip_prefix('v').unwrap_or(text).split('.').collect();
    let minor = match parts[..] {
        // clouds add their own to the last, as 1.30.4-gke.1129000
        ["1", minor] | ["1", minor, _, ..] => number(minor.trim_end_matches('+')),
        [minor] => number(minor),
        _ => None,
    };
    // a typing error is likelier than a server that is so far from today's
    minor
        .filter(|minor| (20..100).contains(minor))
        .ok_or_else(|| "expected a version from 1.20 on, such as 1.36".into())
}

/// What is no image in any spelling: that there is one, and that the name is right, only a registry knows.
fn image(text: &str) -> Result<String, String> {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) {
        Ok(text.to_owned())
    } else {
        Err("expected an image such as registry.example.com/team/name:1.0, without spaces".into())
    }
}

/// An installation could not be written.
#[derive(Debug, thiserror::Error)]
pub enum PrintError {
    /// An object could not be written as YAML.
    #[error("an object cannot be written as YAML: {0}")]
    Yaml(String),
    /// The controller's rights are not known.
    #[error(transparent)]
    Rights(#[from] StartError),
    /// A namespace is named twice.
    #[error("the namespace {0} is given twice: name it once in --work-in")]
    Twice(String),
    /// Something is said that the format has no use for.
    #[error("{0}")]
    Useless(&'static str),
    /// A file could not be written.
    #[error("cannot write {path}: {source}; check --into")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Files of a folder by their paths in it.
pub type Files = Vec<(&'static str, String)>;

impl Program {
    /// Its CustomResourceDefinitions as YAML documents.
    ///
    /// # Errors
    ///
    /// When one cannot be serialized.
    pub fn crds(&self) -> Result<String, PrintError> {
        let crds = (self.crds)().into_iter().map(serde_json::to_value);
        let crds: Result<Vec<_>, _> = crds.collect();
        documents(&crds.map_err(|e| PrintError::Yaml(e.to_string()))?)
    }

    /// Everything that installs it, as YAML documents in an order in which they can be applied.
    ///
    /// The rights are those that its controllers declare to need ([`Manager::rights`](boatswain::Manager::rights)), among them to write Events, and in their own
    /// namespace one Lease, or one for each. There are two replicas: one works, the other stands by, for all controllers or for each.
    ///
    /// # Errors
    ///
    /// When an object cannot be serialized, or its controllers contradict each other.
    pub fn manifests(&self, install: &Install) -> Result<String, PrintError> {
        let crds = self.crds()?;
        let objects = documents(&self.site(install).objects()?)?;
        let parts = [crds, objects].into_iter().filter(|part| !part.is_empty());
        Ok(parts.collect::<Vec<_>>().join("---\n"))
    }

    /// A Kustomize base, for overlays to change names, images and replicas.
    ///
    /// # Errors
    ///
    /// As of [`Program::manifests`].
    pub fn kustomize(&self, install: &Install) -> Result<Files, PrintError> {
        let site = self.site(install);
        let resources = [
            ("crd.yaml", self.crds()?),
            ("namespace.yaml", yaml(&site.namespace())?),
            (
                "rbac.yaml",
                documents(&[vec![site.account()], site.roles()?].concat())?,
            ),
            ("poddisruptionbudget.yaml", yaml(&site.budget())?),
            ("deployment.yaml", yaml(&site.deployment())?),
        ];
        let resources: Files = resources
            .into_iter()
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let names: Vec<_> = resources.iter().map(|(name, _)| *name).collect();
        let base = yaml(&json!({
            "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
            "resources": names,
        }))?;
        Ok([vec![("kustomization.yaml", base)], resources].concat())
    }

    /// A Helm chart of the same objects: what can be chosen is left to its values.
    ///
    /// # Errors
    ///
    /// As of [`Program::manifests`].
    pub fn chart(&self) -> Result<Files, PrintError> {
        helm::chart(self)
    }

    /// Does what the command line asks for: prints the installation, or writes its folder. Errors are one line on standard error; the code is not zero then.
    pub fn install(&self, install: &Install) -> ExitCode {
        print(self.write(install))
    }

    fn write(&self, install: &Install) -> Result<String, PrintError> {
        install.validate()?;
        let files = match install.format {
            Format::Yaml => return self.manifests(install),
            Format::Kustomize => self.kustomize(install)?,
            Format::Helm => self.chart()?,
        };
        if let Some(folder) = &install.into {
            for (name, text) in files {
                write(&folder.join(name), &text)?;
            }
        }
        Ok(String::new())
    }

    fn site(&self, install: &Install) -> Site {
        let policy = match install.kubernetes_version {
            ..21 => "policy/v1beta1",
            _ => "policy/v1",
        };
        let image = || format!("{}:{}", self.name, self.version);
        let own = || self.name.to_owned();
        Site {
            program: *self,
            namespace: install.namespace.clone().unwrap_or_else(own),
            namespaces: install.work_in.clone(),
            image: install.image.clone().unwrap_or_else(image),
            policy: policy.into(),
        }
    }
}

/// Prints a text, or why there is none.
pub fn print(text: Result<String, impl std::fmt::Display>) -> ExitCode {
    use std::io::{ErrorKind, Write as _, stdout};
    let written = match text {
        Ok(text) => match stdout().write_all(text.as_bytes()) {
            // a reader that has seen enough, such as head, is no failure
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| format!("cannot print: {error}")),
        },
        Err(error) => Err(error.to_string()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), PrintError> {
    let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = folder.and_then(|()| fs::write(path, text));
    written.map_err(|source| PrintError::Write {
        path: path.to_owned(),
        source,
    })
}

fn documents(objects: &[Value]) -> Result<String, PrintError> {
    let documents: Result<Vec<_>, _> = objects.iter().map(yaml).collect();
    Ok(documents?.join("---\n"))
}

fn yaml(object: &Value) -> Result<String, PrintError> {
    let mut text = serde_saphyr::to_string(object).map_err(|e| PrintError::Yaml(e.to_string()))?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}
