//! A Helm chart of the same objects: what can be chosen is left to its values.

use serde_json::json;

use super::{Files, PrintError, crd, documents, objects::Site, yaml};
use crate::reconciler::NAME;

const OWN_NAMESPACE: &str = "{{ .Release.Namespace }}";
/// One of the namespaces to work in, while the template goes through them.
const EACH_NAMESPACE: &str = "{{ $namespace }}";

/// The chart. It runs in the namespace of its release; without `namespaces` it works in all.
pub(super) fn chart() -> Result<Files, PrintError> {
    let everywhere = site(&[]);
    let chosen = site(&[EACH_NAMESPACE]);
    let version = env!("CARGO_PKG_VERSION");
    let chart = yaml(&json!({
        "apiVersion": "v2", "name": NAME, "type": "application",
        "description": env!("CARGO_PKG_DESCRIPTION"),
        "version": version, "appVersion": version, "kubeVersion": ">=1.20.0-0",
    }))?;
    let values = yaml(&json!({
        "image": { "repository": NAME, "tag": "" },
        "replicas": 2,
        "namespaces": [],
    }))?;
    let values = values
        .replace("tag:", "# the chart's appVersion if empty\n  tag:")
        .replace("replicas:", "# one works, the others stand by\nreplicas:")
        .replace(
            "namespaces:",
            "# where it works, by Roles instead of a ClusterRole; everywhere if empty\nnamespaces:",
        );
    let roles = format!(
        "{{{{- if not .Values.namespaces }}}}\n{}{{{{- else }}}}\n{}{{{{- end }}}}\n",
        documents(&everywhere.roles()?)?,
        ranged(&chosen)?,
    );
    let deployment =
        yaml(&chosen.deployment())?.replace("replicas: 2\n", "replicas: {{ .Values.replicas }}\n");
    let deployment: String = deployment.split_inclusive('\n').map(conditional).collect();
    Ok(vec![
        ("Chart.yaml", chart),
        ("values.yaml", values),
        ("crds/crd.yaml", crd()?),
        (
            "templates/serviceaccount.yaml",
            yaml(&everywhere.account())?,
        ),
        ("templates/rbac.yaml", roles),
        (
            "templates/poddisruptionbudget.yaml",
            yaml(&everywhere.budget())?,
        ),
        ("templates/deployment.yaml", deployment),
    ])
}

fn site(namespaces: &[&str]) -> Site {
    Site {
        namespace: OWN_NAMESPACE.into(),
        namespaces: namespaces.iter().map(|&n| n.to_owned()).collect(),
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
            .into(),
        policy:
            "policy/{{ if semverCompare `<1.21-0` .Capabilities.KubeVersion.Version }}v1beta1{{ else }}v1{{ end }}"
                .into(),
    }
}

/// The roles of the controller's own namespace, and those of each that it works in.
fn ranged(chosen: &Site) -> Result<String, PrintError> {
    let (each, own): (Vec<_>, Vec<_>) = chosen
        .roles()?
        .into_iter()
        .partition(|role| role["metadata"]["namespace"] == EACH_NAMESPACE);
    Ok(format!(
        "{}{{{{- range $namespace := .Values.namespaces }}}}\n---\n{}{{{{- end }}}}\n",
        documents(&own)?,
        // within the loop the dot is the namespace
        documents(&each)?.replace(".Release", "$.Release"),
    ))
}

/// The flag that names the namespaces is there if there are any.
fn conditional(line: &str) -> String {
    if !line.contains(EACH_NAMESPACE) {
        return line.to_owned();
    }
    let indent = &line[..line.len() - line.trim_start().len()];
    format!(
        "{{{{- with .Values.namespaces }}}}\n{indent}- --namespace={{{{ join \",\" . }}}}\n{{{{- end }}}}\n"
    )
}
