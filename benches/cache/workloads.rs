//! What the pods of a workload have in common: texts as different from each other as those of three hundred teams.

use std::fmt::Write as _;

use crate::pods::{Hole, mark};

mod words;

use words::{Dice, REGISTRIES, SETTINGS, TEAMS, WORDS};

/// The pods of one workload, before each gets what is its own.
pub(crate) struct Plan {
    pub(crate) namespace: String,
    /// Name of its pods up to the suffix.
    pub(crate) prefix: String,
    /// A pod without the outer braces and without `kind`, with holes.
    pub(crate) text: String,
}

/// The workload of this number.
pub(crate) fn make(seed: u64, number: u64) -> Plan {
    let mut dice = Dice(seed ^ number.wrapping_mul(0xD6E8_FEB8_6659_FD93));
    let team = dice.one_of(TEAMS).to_owned();
    let namespace = if dice.chance(60) {
        format!("{team}-prod")
    } else {
        format!(
            "{team}-{}",
            dice.one_of(&["staging", "canary", "jobs", "eu"])
        )
    };
    // the number keeps two teams from choosing one name
    let app = format!("{}-{}-{number}", dice.one_of(WORDS), dice.one_of(WORDS));
    let hash = dice.hex(10);
    let prefix = format!("{app}-{hash}-");
    let containers = containers(&mut dice, &app, &team);
    let metadata = metadata(
        &mut dice,
        &app,
        &team,
        &namespace,
        &hash,
        &prefix,
        &containers,
    );
    let spec = spec(&mut dice, &app, &hash, &containers);
    let status = status(&containers);
    Plan {
        text: format!("\"metadata\":{metadata},\"spec\":{spec},\"status\":{status}"),
        namespace,
        prefix,
    }
}

struct Container {
    name: String,
    image: String,
    digest: String,
    text: String,
}

fn containers(dice: &mut Dice, app: &str, team: &str) -> Vec<Container> {
    let mut made = vec![container(dice, app, team)];
    for (sidecar, percent) in [
        ("istio-proxy", 30),
        ("log-shipper", 20),
        ("cloud-sql-proxy", 10),
    ] {
        if dice.chance(percent) {
            made.push(self::sidecar(dice, sidecar));
        }
    }
    made
}

fn container(dice: &mut Dice, app: &str, team: &str) -> Container {
    let digest = dice.hex(64);
    let image = format!(
        "{}/{team}/{app}:v{}.{}.{}-{}",
        dice.one_of(REGISTRIES),
        dice.below(4),
        dice.below(60),
        dice.below(20),
        dice.hex(7)
    );
    let mut env = String::new();
    for _ in 0..4 + dice.below(6) {
        let setting = dice.one_of(SETTINGS);
        let value = match dice.below(6) {
            0 => format!(
                "\"valueFrom\":{{\"secretKeyRef\":{{\"name\":\"{app}-{}\",\"key\":\"{}\"}}}}",
                dice.one_of(&["credentials", "tls", "api-keys"]),
                setting.to_lowercase()
            ),
            1 => format!(
                "\"valueFrom\":{{\"configMapKeyRef\":{{\"name\":\"{app}-config\",\"key\":\"{}\"}}}}",
                setting.to_lowercase().replace('_', ".")
            ),
            2 => format!(
                "\"valueFrom\":{{\"fieldRef\":{{\"apiVersion\":\"v1\",\"fieldPath\":\"{}\"}}}}",
                dice.one_of(&[
                    "metadata.name",
                    "metadata.namespace",
                    "status.podIP",
                    "spec.nodeName"
                ])
            ),
            3 => format!("\"value\":\"{}\"", dice.below(100_000)),
            4 => format!(
                "\"value\":\"https://{}-{}.{team}.svc.cluster.local:{}/v{}\"",
                dice.one_of(WORDS),
                dice.one_of(WORDS),
                8000 + dice.below(2000),
                1 + dice.below(3)
            ),
            _ => format!(
                "\"value\":\"{}={},{}={}\"",
                dice.one_of(WORDS),
                dice.below(1000),
                dice.one_of(WORDS),
                dice.hex(12)
            ),
        };
        let _ = write!(env, "{}{{\"name\":\"{setting}\",{value}}}", comma(&env));
    }
    let port = 8000 + dice.below(1000);
    let cpu = 50 * (1 + dice.below(40));
    let memory = 64 * (1 + dice.below(60));
    let probe = |path: &str, delay: usize, period: usize| {
        format!(
            "{{\"httpGet\":{{\"path\":\"{path}\",\"port\":{port},\"scheme\":\"HTTP\"}},\"initialDelaySeconds\":{delay},\"timeoutSeconds\":{},\"periodSeconds\":{period},\"successThreshold\":1,\"failureThreshold\":{}}}",
            1 + period / 3,
            2 + delay % 5
        )
    };
    let live = probe(
        dice.one_of(&["/healthz", "/live", "/-/healthy"]),
        dice.below(60),
        10 + dice.below(20),
    );
    let ready = probe(
        dice.one_of(&["/readyz", "/ready", "/-/ready"]),
        dice.below(20),
        5 + dice.below(10),
    );
    let mut mounts = format!(
        "{{\"name\":\"config\",\"mountPath\":\"/etc/{app}\",\"readOnly\":true}},{{\"name\":\"kube-api-access-{}\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}}",
        mark(Hole::Suffix)
    );
    if dice.chance(50) {
        mounts.push_str(",{\"name\":\"scratch\",\"mountPath\":\"/tmp\"}");
    }
    let args = if dice.chance(40) {
        format!(
            "\"args\":[\"serve\",\"--config=/etc/{app}/config.yaml\",\"--shards={}\",\"--{}={}\"],",
            dice.below(64),
            dice.one_of(WORDS),
            dice.hex(6)
        )
    } else {
        String::new()
    };
    let text = format!(
        "{{\"name\":\"{app}\",\"image\":\"{image}\",{args}\"ports\":[{{\"name\":\"http\",\"containerPort\":{port},\"protocol\":\"TCP\"}},{{\"name\":\"metrics\",\"containerPort\":{},\"protocol\":\"TCP\"}}],\"env\":[{env}],\"resources\":{{\"limits\":{{\"cpu\":\"{}m\",\"memory\":\"{}Mi\"}},\"requests\":{{\"cpu\":\"{cpu}m\",\"memory\":\"{memory}Mi\"}}}},\"volumeMounts\":[{mounts}],\"livenessProbe\":{live},\"readinessProbe\":{ready},\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\",\"securityContext\":{{\"capabilities\":{{\"drop\":[\"ALL\"]}},\"runAsNonRoot\":true,\"readOnlyRootFilesystem\":true,\"allowPrivilegeEscalation\":false}}}}",
        port + 1000,
        2 * cpu,
        2 * memory
    );
    Container {
        name: app.to_owned(),
        image,
        digest,
        text,
    }
}

fn sidecar(dice: &mut Dice, name: &str) -> Container {
    let digest = dice.hex(64);
    let image = format!(
        "{}/{name}:1.{}.{}",
        dice.one_of(REGISTRIES),
        dice.below(30),
        dice.below(9)
    );
    let text = format!(
        "{{\"name\":\"{name}\",\"image\":\"{image}\",\"args\":[\"--{}={}\",\"--port={}\"],\"env\":[{{\"name\":\"POD_NAME\",\"valueFrom\":{{\"fieldRef\":{{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.name\"}}}}}}],\"resources\":{{\"requests\":{{\"cpu\":\"{}m\",\"memory\":\"{}Mi\"}}}},\"volumeMounts\":[{{\"name\":\"kube-api-access-{}\",\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}}],\"terminationMessagePath\":\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":\"IfNotPresent\"}}",
        dice.one_of(WORDS),
        dice.one_of(WORDS),
        15_000 + dice.below(100),
        10 * (1 + dice.below(10)),
        32 * (1 + dice.below(4)),
        mark(Hole::Suffix)
    );
    Container {
        name: name.to_owned(),
        image,
        digest,
        text,
    }
}

fn metadata(
    dice: &mut Dice,
    app: &str,
    team: &str,
    namespace: &str,
    hash: &str,
    prefix: &str,
    containers: &[Container],
) -> String {
    let (version, minute) = (mark(Hole::Version), mark(Hole::Minute));
    let mut labels = format!(
        "\"app.kubernetes.io/instance\":\"{app}\",\"app.kubernetes.io/managed-by\":\"Helm\",\"app.kubernetes.io/name\":\"{app}\",\"app.kubernetes.io/version\":\"{}.{}.{}\",\"pod-template-hash\":\"{hash}\",\"team\":\"{team}\",\"tier\":\"{}\"",
        dice.below(4),
        dice.below(60),
        dice.below(20),
        dice.one_of(&["frontend", "backend", "worker", "cron", "storage"]),
    );
    if dice.chance(40) {
        let _ = write!(labels, ",\"topology.example.com/cell\":\"{}\"", dice.hex(4));
    }
    let mut annotations = format!(
        "\"checksum/config\":\"{}\",\"cni.example.org/containerID\":\"{}\",\"cni.example.org/podIP\":\"{ip}/32\",\"k8s.example.org/network-status\":\"[{{\\n    \\\"name\\\": \\\"default\\\",\\n    \\\"interface\\\": \\\"eth0\\\",\\n    \\\"ips\\\": [\\n        \\\"{ip}\\\"\\n    ],\\n    \\\"mac\\\": \\\"{}\\\",\\n    \\\"default\\\": true,\\n    \\\"dns\\\": {{}}\\n}}]\",\"prometheus.io/port\":\"{}\",\"prometheus.io/scrape\":\"true\"",
        dice.hex(64),
        mark(Hole::Digest),
        mark(Hole::Mac),
        9000 + dice.below(1000),
        ip = mark(Hole::PodIp),
    );
    if dice.chance(30) {
        let _ = write!(
            annotations,
            ",\"kubectl.kubernetes.io/restartedAt\":\"2026-0{}-1{}T0{}:12:33+02:00\"",
            1 + dice.below(9),
            dice.below(10),
            dice.below(10)
        );
    }
    let uid = format!(
        "{}-{}-4{}-8{}-{}",
        dice.hex(8),
        dice.hex(4),
        dice.hex(3),
        dice.hex(3),
        dice.hex(12)
    );
    let fields = managed(&labels, &annotations, containers, &uid);
    format!(
        "{{\"name\":\"{prefix}{suffix}\",\"generateName\":\"{prefix}\",\"namespace\":\"{namespace}\",\"uid\":\"{}\",\"resourceVersion\":\"{version}\",\"generation\":1,\"creationTimestamp\":\"{minute}{second}Z\",\"labels\":{{{labels}}},\"annotations\":{{{annotations}}},\"ownerReferences\":[{{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":\"{}\",\"uid\":\"{uid}\",\"controller\":true,\"blockOwnerDeletion\":true}}],\"managedFields\":{fields}}}",
        mark(Hole::Uid),
        prefix.trim_end_matches('-'),
        suffix = mark(Hole::Suffix),
        second = mark(Hole::Second(0)),
    )
}

/// Names of the members of a flat JSON object.
fn names(members: &str) -> impl Iterator<Item = &str> {
    members
        .split(",\"")
        .filter_map(|member| member.split("\":").next())
        .map(|name| name.trim_start_matches('"'))
        .filter(|name| !name.contains(['\\', ' ']))
}

fn managed(labels: &str, annotations: &str, containers: &[Container], owner: &str) -> String {
    let (minute, version) = (mark(Hole::Minute), mark(Hole::Changed));
    let listed = |members| {
        names(members).fold(String::new(), |text, name| {
            format!("{text},\"f:{name}\":{{}}")
        })
    };
    let of_containers = containers.iter().fold(String::new(), |text, container| {
        format!(
            "{text}{}\"k:{{\\\"name\\\":\\\"{}\\\"}}\":{{\".\":{{}},\"f:env\":{{\".\":{{}}}},\"f:image\":{{}},\"f:imagePullPolicy\":{{}},\"f:name\":{{}},\"f:ports\":{{\".\":{{}}}},\"f:resources\":{{\".\":{{}},\"f:limits\":{{\".\":{{}},\"f:cpu\":{{}},\"f:memory\":{{}}}},\"f:requests\":{{\".\":{{}},\"f:cpu\":{{}},\"f:memory\":{{}}}}}},\"f:terminationMessagePath\":{{}},\"f:terminationMessagePolicy\":{{}},\"f:volumeMounts\":{{\".\":{{}}}}}}",
            comma(&text),
            container.name
        )
    });
    format!(
        "[{{\"manager\":\"kube-controller-manager\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"{minute}{second}Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{{\"f:metadata\":{{\"f:annotations\":{{\".\":{{}}{}}},\"f:generateName\":{{}},\"f:labels\":{{\".\":{{}}{}}},\"f:ownerReferences\":{{\".\":{{}},\"k:{{\\\"uid\\\":\\\"{owner}\\\"}}\":{{}}}}}},\"f:spec\":{{\"f:containers\":{{{of_containers}}},\"f:dnsPolicy\":{{}},\"f:enableServiceLinks\":{{}},\"f:restartPolicy\":{{}},\"f:schedulerName\":{{}},\"f:securityContext\":{{}},\"f:serviceAccount\":{{}},\"f:serviceAccountName\":{{}},\"f:terminationGracePeriodSeconds\":{{}},\"f:tolerations\":{{}},\"f:volumes\":{{\".\":{{}}}}}}}}}},{{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"{minute}{version}Z\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{{\"f:status\":{{\"f:conditions\":{{\"k:{{\\\"type\\\":\\\"ContainersReady\\\"}}\":{{\".\":{{}},\"f:lastProbeTime\":{{}},\"f:lastTransitionTime\":{{}},\"f:status\":{{}},\"f:type\":{{}}}},\"k:{{\\\"type\\\":\\\"Initialized\\\"}}\":{{\".\":{{}},\"f:lastProbeTime\":{{}},\"f:lastTransitionTime\":{{}},\"f:status\":{{}},\"f:type\":{{}}}},\"k:{{\\\"type\\\":\\\"Ready\\\"}}\":{{\".\":{{}},\"f:lastProbeTime\":{{}},\"f:lastTransitionTime\":{{}},\"f:status\":{{}},\"f:type\":{{}}}}}},\"f:containerStatuses\":{{}},\"f:hostIP\":{{}},\"f:hostIPs\":{{}},\"f:phase\":{{}},\"f:podIP\":{{}},\"f:podIPs\":{{\".\":{{}}}},\"f:startTime\":{{}}}}}},\"subresource\":\"status\"}}]",
        listed(annotations),
        listed(labels),
        second = mark(Hole::Second(0)),
    )
}

fn spec(dice: &mut Dice, app: &str, hash: &str, containers: &[Container]) -> String {
    let mut volumes = format!(
        "{{\"name\":\"config\",\"configMap\":{{\"name\":\"{app}-config-{}\",\"defaultMode\":420}}}},{{\"name\":\"scratch\",\"emptyDir\":{{}}}}",
        dice.hex(8)
    );
    if dice.chance(40) {
        let _ = write!(
            volumes,
            ",{{\"name\":\"tls\",\"secret\":{{\"secretName\":\"{app}-tls\",\"defaultMode\":{}}}}}",
            256 + dice.below(200)
        );
    }
    let _ = write!(
        volumes,
        ",{{\"name\":\"kube-api-access-{}\",\"projected\":{{\"sources\":[{{\"serviceAccountToken\":{{\"expirationSeconds\":3607,\"path\":\"token\"}}}},{{\"configMap\":{{\"name\":\"kube-root-ca.crt\",\"items\":[{{\"key\":\"ca.crt\",\"path\":\"ca.crt\"}}]}}}},{{\"downwardAPI\":{{\"items\":[{{\"path\":\"namespace\",\"fieldRef\":{{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}}}]}}}}],\"defaultMode\":420}}}}",
        mark(Hole::Suffix)
    );
    let mut tolerations = "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\",\"effect\":\"NoExecute\",\"tolerationSeconds\":300}".to_owned();
    if dice.chance(30) {
        let _ = write!(
            tolerations,
            ",{{\"key\":\"dedicated\",\"operator\":\"Equal\",\"value\":\"{}\",\"effect\":\"NoSchedule\"}}",
            dice.one_of(WORDS)
        );
    }
    let spread = if dice.chance(40) {
        format!(
            ",\"topologySpreadConstraints\":[{{\"maxSkew\":{},\"topologyKey\":\"topology.kubernetes.io/zone\",\"whenUnsatisfiable\":\"ScheduleAnyway\",\"labelSelector\":{{\"matchLabels\":{{\"app.kubernetes.io/name\":\"{app}\",\"pod-template-hash\":\"{hash}\"}}}}}}]",
            1 + dice.below(3)
        )
    } else {
        String::new()
    };
    let selector = if dice.chance(40) {
        format!(
            "\"nodeSelector\":{{\"node.example.com/class\":\"{}\"}},",
            dice.one_of(WORDS)
        )
    } else {
        String::new()
    };
    let text = containers.iter().fold(String::new(), |text, container| {
        format!("{text}{}{}", comma(&text), container.text)
    });
    format!(
        "{{\"volumes\":[{volumes}],\"containers\":[{text}],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":{},\"dnsPolicy\":\"ClusterFirst\",{selector}\"serviceAccountName\":\"{app}\",\"serviceAccount\":\"{app}\",\"nodeName\":\"{}\",\"securityContext\":{{\"runAsUser\":{user},\"runAsGroup\":{user},\"fsGroup\":{user},\"seccompProfile\":{{\"type\":\"RuntimeDefault\"}}}},\"imagePullSecrets\":[{{\"name\":\"registry-{}\"}}],\"schedulerName\":\"default-scheduler\",\"tolerations\":[{tolerations}],\"priority\":{},\"enableServiceLinks\":true,\"preemptionPolicy\":\"PreemptLowerPriority\"{spread}}}",
        30 + 5 * dice.below(20),
        mark(Hole::Node),
        dice.one_of(TEAMS),
        1000 * dice.below(10),
        user = 1000 + dice.below(60_000),
    )
}

fn status(containers: &[Container]) -> String {
    let (minute, changed) = (mark(Hole::Minute), mark(Hole::Changed));
    let at = |after| format!("{minute}{}Z", mark(Hole::Second(after)));
    let mut conditions = String::new();
    for (kind, time) in [
        ("PodReadyToStartContainers", at(2)),
        ("Initialized", at(0)),
        ("Ready", format!("{minute}{changed}Z")),
        ("ContainersReady", format!("{minute}{changed}Z")),
        ("PodScheduled", at(0)),
    ] {
        let _ = write!(
            conditions,
            "{}{{\"type\":\"{kind}\",\"status\":\"True\",\"lastProbeTime\":null,\"lastTransitionTime\":\"{time}\"}}",
            comma(&conditions)
        );
    }
    let statuses = containers.iter().fold(String::new(), |text, container| {
        let Container {
            name,
            image,
            digest,
            ..
        } = container;
        let repository = image.rsplit_once(':').map_or(image.as_str(), |(name, _)| name);
        format!(
            "{text}{}{{\"name\":\"{name}\",\"state\":{{\"running\":{{\"startedAt\":\"{}\"}}}},\"lastState\":{{}},\"ready\":true,\"restartCount\":{},\"image\":\"{image}\",\"imageID\":\"{repository}@sha256:{digest}\",\"containerID\":\"containerd://{}\",\"started\":true}}",
            comma(&text),
            at(3),
            mark(Hole::Restarts),
            mark(Hole::Digest)
        )
    });
    format!(
        "{{\"phase\":\"Running\",\"conditions\":[{conditions}],\"hostIP\":\"{host}\",\"hostIPs\":[{{\"ip\":\"{host}\"}}],\"podIP\":\"{ip}\",\"podIPs\":[{{\"ip\":\"{ip}\"}}],\"startTime\":\"{}\",\"containerStatuses\":[{statuses}],\"qosClass\":\"Burstable\"}}",
        at(0),
        host = mark(Hole::HostIp),
        ip = mark(Hole::PodIp),
    )
}

fn comma(text: &str) -> &'static str {
    if text.is_empty() { "" } else { "," }
}
