//! Field numbers of Kubernetes' protobuf messages, after the `generated.proto` files of its API modules.

/// How a field is written in JSON.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// Left out when empty.
    Text,
    /// Kept when empty: a pointer in Go.
    GivenText,
    Texts,
    /// Left out when zero.
    Whole,
    /// Kept when zero: a pointer in Go.
    GivenWhole,
    Flag,
    GivenFlag,
    One(Message),
    Many(Message),
    /// A map of strings.
    Texted,
    /// A map of bytes.
    Encoded,
    /// A map of quantities.
    Quantities,
    IntOrText,
    GivenIntOrText,
    Time,
    MicroTime,
}

/// Number, name and kind of each field.
pub(super) type Message = &'static [(u32, &'static str, Kind)];

use Kind::{
    Encoded, Flag, GivenFlag, GivenIntOrText, GivenText, GivenWhole, IntOrText, Many, MicroTime,
    One, Quantities, Text, Texted, Texts, Time, Whole,
};

const META: Message = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (4, "selfLink", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (7, "generation", Whole),
    (8, "creationTimestamp", Time),
    (9, "deletionTimestamp", Time),
    (10, "deletionGracePeriodSeconds", GivenWhole),
    (11, "labels", Texted),
    (12, "annotations", Texted),
    (13, "ownerReferences", Many(OWNER)),
    (14, "finalizers", Texts),
];

const OWNER: Message = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", GivenFlag),
    (7, "blockOwnerDeletion", GivenFlag),
];

const SELECTOR: Message = &[
    (1, "matchLabels", Texted),
    (2, "matchExpressions", Many(EXPRESSION)),
];
const EXPRESSION: Message = &[
    (1, "key", Text),
    (2, "operator", Text),
    (3, "values", Texts),
];
const NAMED: Message = &[(1, "name", Text)];
const REPLICAS: Message = &[(1, "replicas", Whole)];

const CONTAINER: Message = &[
    (1, "name", Text),
    (2, "image", Text),
    (3, "command", Texts),
    (4, "args", Texts),
    (5, "workingDir", Text),
    (6, "ports", Many(CONTAINER_PORT)),
    (7, "env", Many(ENV)),
    (8, "resources", One(RESOURCES)),
    (9, "volumeMounts", Many(MOUNT)),
    (13, "terminationMessagePath", Text),
    (14, "imagePullPolicy", Text),
    (16, "stdin", Flag),
    (17, "stdinOnce", Flag),
    (18, "tty", Flag),
    (20, "terminationMessagePolicy", Text),
];
const CONTAINER_PORT: Message = &[
    (1, "name", Text),
    (2, "hostPort", Whole),
    (3, "containerPort", Whole),
    (4, "protocol", Text),
    (5, "hostIP", Text),
];
const ENV: Message = &[(1, "name", Text), (2, "value", Text)];
const RESOURCES: Message = &[(1, "limits", Quantities), (2, "requests", Quantities)];
const MOUNT: Message = &[
    (1, "name", Text),
    (2, "readOnly", Flag),
    (3, "mountPath", Text),
    (4, "subPath", Text),
];

const POD_SPEC: Message = &[
    (2, "containers", Many(CONTAINER)),
    (3, "restartPolicy", Text),
    (4, "terminationGracePeriodSeconds", GivenWhole),
    (5, "activeDeadlineSeconds", GivenWhole),
    (6, "dnsPolicy", Text),
    (7, "nodeSelector", Texted),
    (8, "serviceAccountName", Text),
    (9, "serviceAccount", Text),
    (10, "nodeName", Text),
    (11, "hostNetwork", Flag),
    (12, "hostPID", Flag),
    (13, "hostIPC", Flag),
    (14, "securityContext", One(&[])),
    (15, "imagePullSecrets", Many(NAMED)),
    (16, "hostname", Text),
    (17, "subdomain", Text),
    (19, "schedulerName", Text),
    (20, "initContainers", Many(CONTAINER)),
    (21, "automountServiceAccountToken", GivenFlag),
];
const TEMPLATE: Message = &[(1, "metadata", One(META)), (2, "spec", One(POD_SPEC))];
const STRATEGY: Message = &[
    (1, "type", Text),
    (
        2,
        "rollingUpdate",
        One(&[
            (1, "maxUnavailable", GivenIntOrText),
            (2, "maxSurge", GivenIntOrText),
        ]),
    ),
];

const DEPLOYMENT: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "spec",
        One(&[
            (1, "replicas", GivenWhole),
            (2, "selector", One(SELECTOR)),
            (3, "template", One(TEMPLATE)),
            (4, "strategy", One(STRATEGY)),
            (5, "minReadySeconds", Whole),
            (6, "revisionHistoryLimit", GivenWhole),
            (7, "paused", Flag),
            (9, "progressDeadlineSeconds", GivenWhole),
        ]),
    ),
    (
        3,
        "status",
        One(&[
            (1, "observedGeneration", Whole),
            (2, "replicas", Whole),
            (3, "updatedReplicas", Whole),
            (4, "availableReplicas", Whole),
            (5, "unavailableReplicas", Whole),
            (7, "readyReplicas", Whole),
        ]),
    ),
];

const POD: Message = &[
    (1, "metadata", One(META)),
    (2, "spec", One(POD_SPEC)),
    (
        3,
        "status",
        One(&[
            (1, "phase", Text),
            (3, "message", Text),
            (4, "reason", Text),
            (5, "hostIP", Text),
            (6, "podIP", Text),
        ]),
    ),
];

const SERVICE: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "spec",
        One(&[
            (1, "ports", Many(SERVICE_PORT)),
            (2, "selector", Texted),
            (3, "clusterIP", Text),
            (4, "type", Text),
            (5, "externalIPs", Texts),
            (7, "sessionAffinity", Text),
            (8, "loadBalancerIP", Text),
            (10, "externalName", Text),
            (11, "externalTrafficPolicy", Text),
            (12, "healthCheckNodePort", Whole),
            (13, "publishNotReadyAddresses", Flag),
            (17, "ipFamilyPolicy", GivenText),
            (18, "clusterIPs", Texts),
            (19, "ipFamilies", Texts),
            (22, "internalTrafficPolicy", GivenText),
        ]),
    ),
    (3, "status", One(&[(1, "loadBalancer", One(&[]))])),
];
const SERVICE_PORT: Message = &[
    (1, "name", Text),
    (2, "protocol", Text),
    (3, "port", Whole),
    (4, "targetPort", IntOrText),
    (5, "nodePort", Whole),
    (6, "appProtocol", GivenText),
];

const NAMESPACE: Message = &[
    (1, "metadata", One(META)),
    (2, "spec", One(&[(1, "finalizers", Texts)])),
    (3, "status", One(&[(1, "phase", Text)])),
];
const CONFIG_MAP: Message = &[
    (1, "metadata", One(META)),
    (2, "data", Texted),
    (3, "binaryData", Encoded),
    (4, "immutable", GivenFlag),
];
const SECRET: Message = &[
    (1, "metadata", One(META)),
    (2, "data", Encoded),
    (3, "type", Text),
    (4, "stringData", Texted),
    (5, "immutable", GivenFlag),
];
const SERVICE_ACCOUNT: Message = &[
    (1, "metadata", One(META)),
    (2, "secrets", Many(REFERENCE)),
    (3, "imagePullSecrets", Many(NAMED)),
    (4, "automountServiceAccountToken", GivenFlag),
];
const REFERENCE: Message = &[
    (1, "kind", Text),
    (2, "namespace", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "resourceVersion", Text),
    (7, "fieldPath", Text),
];

const RULE: Message = &[
    (1, "verbs", Texts),
    (2, "apiGroups", Texts),
    (3, "resources", Texts),
    (4, "resourceNames", Texts),
    (5, "nonResourceURLs", Texts),
];
const ROLE: Message = &[(1, "metadata", One(META)), (2, "rules", Many(RULE))];
const BINDING: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "subjects",
        Many(&[
            (1, "kind", Text),
            (2, "apiGroup", Text),
            (3, "name", Text),
            (4, "namespace", Text),
        ]),
    ),
    (
        3,
        "roleRef",
        One(&[(1, "apiGroup", Text), (2, "kind", Text), (3, "name", Text)]),
    ),
];
const DISRUPTION: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "spec",
        One(&[
            (1, "minAvailable", GivenIntOrText),
            (2, "selector", One(SELECTOR)),
            (3, "maxUnavailable", GivenIntOrText),
        ]),
    ),
    (
        3,
        "status",
        One(&[
            (1, "observedGeneration", Whole),
            (3, "disruptionsAllowed", Whole),
            (4, "currentHealthy", Whole),
            (5, "desiredHealthy", Whole),
            (6, "expectedPods", Whole),
        ]),
    ),
];
const LEASE: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "spec",
        One(&[
            (1, "holderIdentity", GivenText),
            (2, "leaseDurationSeconds", GivenWhole),
            (3, "acquireTime", MicroTime),
            (4, "renewTime", MicroTime),
            (5, "leaseTransitions", GivenWhole),
        ]),
    ),
];

const ACCESS_REVIEW: Message = &[
    (1, "metadata", One(META)),
    (
        2,
        "spec",
        One(&[
            (
                1,
                "resourceAttributes",
                One(&[
                    (1, "namespace", Text),
                    (2, "verb", Text),
                    (3, "group", Text),
                    (4, "version", Text),
                    (5, "resource", Text),
                    (6, "subresource", Text),
                    (7, "name", Text),
                ]),
            ),
            (
                2,
                "nonResourceAttributes",
                One(&[(1, "path", Text), (2, "verb", Text)]),
            ),
        ]),
    ),
    (
        3,
        "status",
        One(&[
            (1, "allowed", Flag),
            (2, "reason", Text),
            (3, "evaluationError", Text),
            (4, "denied", Flag),
        ]),
    ),
];
const SELF_REVIEW: Message = &[
    (1, "metadata", One(META)),
    (2, "status", One(&[(1, "userInfo", One(&[]))])),
];
const SCALE: Message = &[
    (1, "metadata", One(META)),
    (2, "spec", One(REPLICAS)),
    (
        3,
        "status",
        One(&[(1, "replicas", Whole), (2, "selector", Text)]),
    ),
];
const DELETE_OPTIONS: Message = &[
    (1, "gracePeriodSeconds", GivenWhole),
    (
        2,
        "preconditions",
        One(&[(1, "uid", GivenText), (2, "resourceVersion", GivenText)]),
    ),
    (3, "orphanDependents", GivenFlag),
    (4, "propagationPolicy", GivenText),
    (5, "dryRun", Texts),
];

/// The message of a kind.
pub(super) fn root(kind: &str) -> Option<Message> {
    Some(match kind {
        "ClusterRole" | "Role" => ROLE,
        "ClusterRoleBinding" | "RoleBinding" => BINDING,
        "ConfigMap" => CONFIG_MAP,
        "DeleteOptions" => DELETE_OPTIONS,
        "Deployment" => DEPLOYMENT,
        "Lease" => LEASE,
        "Namespace" => NAMESPACE,
        "Pod" => POD,
        "PodDisruptionBudget" => DISRUPTION,
        "Scale" => SCALE,
        "Secret" => SECRET,
        "SelfSubjectAccessReview" => ACCESS_REVIEW,
        "SelfSubjectReview" => SELF_REVIEW,
        "Service" => SERVICE,
        "ServiceAccount" => SERVICE_ACCOUNT,
        _ => return None,
    })
}
