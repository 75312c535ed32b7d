//! The YAML that installs the custom resource and the controller.

mod helm;
mod objects;
#[cfg(test)]
mod tests;

use std::{
    fs,
    path::{Path, PathBuf},
};

use boatswain::StartError;
use clap::{Args, ValueEnum};
use kube::CustomResourceExt as _;
use objects::Site;
use serde_json::{Value, json};

use crate::{api::PodAutoscaler, reconciler::NAME};

const IMAGE: &str = concat!("podautoscaler:", env!("CARGO_PKG_VERSION"));

/// The minor version of the newest server that is tested.
const NEWEST: u32 = 36;

/// What can be chosen about an installation.
#[derive(Clone, Debug, Args)]
pub struct Install {
    /// Namespace the controller runs in
    #[arg(long, value_name = "NS", default_value = NAME)]
    pub namespace: String,
    /// Namespaces the controller works in, by Roles instead of a ClusterRole; may be repeated [default: all]
    #[arg(long = "work-in", value_name = "NS", value_delimiter = ',')]
    pub work_in: Vec<String>,
    /// Container image
    #[arg(long, value_name = "IMAGE", default_value = IMAGE)]
    pub image: String,
    /// Kubernetes version of the cluster, as 1.20, v1.20.2 or 20; before 1.21 the PodDisruptionBudget is of policy/v1beta1
    #[arg(long, value_name = "VERSION", value_parser = minor, default_value_t = NEWEST)]
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
            namespace: NAME.into(),
            work_in: Vec::new(),
            image: IMAGE.into(),
            kubernetes_version: NEWEST,
            format: Format::Yaml,
            into: None,
        }
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
fn minor(text: &str) -> Result<u32, String> {
    let text = text.trim_start_matches('v');
    let minor = text.strip_prefix("1.").unwrap_or(text);
    let minor = minor.split('.').next().unwrap_or_default().parse();
    match minor {
        Ok(minor @ 20..) => Ok(minor),
        _ => Err("expected a version from 1.20 on".into()),
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
type Files = Vec<(&'static str, String)>;

/// The CustomResourceDefinition as YAML.
///
/// # Errors
///
/// When it cannot be serialized.
pub fn crd() -> Result<String, PrintError> {
    let crd = serde_json::to_value(PodAutoscaler::crd());
    yaml(&crd.map_err(|e| PrintError::Yaml(e.to_string()))?)
}

/// Everything that installs the controller, as YAML documents in an order in which they can be applied.
///
/// The rights are those that the controller declares to need ([`Manager::rights`](boatswain::Manager::rights)), which `podautoscaler check` asks about: read
/// PodAutoscalers and Deployments, write the `scale` of Deployments and the status of PodAutoscalers, write Events, and in their own namespace one Lease.
/// There are two replicas: one works, the other stands by.
///
/// # Errors
///
/// When an object cannot be serialized.
pub fn manifests(install: &Install) -> Result<String, PrintError> {
    Ok([crd()?, documents(&install.site().objects()?)?].join("---\n"))
}

impl Install {
    /// Prints the installation, or writes its folder; returns what is to be printed.
    pub(crate) fn write(&self) -> Result<String, PrintError> {
        let files = match self.format {
            Format::Yaml => return manifests(self),
            Format::Kustomize => kustomize(&self.site())?,
            Format::Helm => helm::chart()?,
        };
        if let Some(folder) = &self.into {
            for (name, text) in files {
                write(&folder.join(name), &text)?;
            }
        }
        Ok(String::new())
    }

    fn site(&self) -> Site {
        let policy = match self.kubernetes_version {
            ..21 => "policy/v1beta1",
            _ => "policy/v1",
        };
        Site {
            namespace: self.namespace.clone(),
            namespaces: self.work_in.clone(),
            image: self.image.clone(),
            policy: policy.into(),
        }
    }
}

/// A Kustomize base, for overlays to change names, images and replicas.
fn kustomize(site: &Site) -> Result<Files, PrintError> {
    let resources = [
        ("crd.yaml", crd()?),
        ("namespace.yaml", yaml(&site.namespace())?),
        (
            "rbac.yaml",
            documents(&[vec![site.account()], site.roles()?].concat())?,
        ),
        ("poddisruptionbudget.yaml", yaml(&site.budget())?),
        ("deployment.yaml", yaml(&site.deployment())?),
    ];
    let names: Vec<_> = resources.iter().map(|(name, _)| *name).collect();
    let base = yaml(&json!({
        "apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization",
        "resources": names,
    }))?;
    Ok([vec![("kustomization.yaml", base)], resources.into()].concat())
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
