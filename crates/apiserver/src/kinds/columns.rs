//! The columns of tables, as kube-apiserver v1.37.2 describes them.
//!
//! Guarantees: names, types, formats, priorities and descriptions equal the real server's exactly. Matches k8s.io/kubernetes
//! `pkg/printers/internalversion/printers.go`, `AddHandlers`; the descriptions are those of the fields in k8s.io/api
//! (Apache-2.0).

use std::borrow::Cow;

use crate::registry::Column;

const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const CONTAINERS: &str = "Names of each container in the template.";
const IMAGES: &str = "Images referenced by each container in the template.";
const SELECTOR: &str = "A label query over pods that should match the pod count. Normally, the system sets this field for you. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/#label-selectors";

const fn column(name: &'static str, type_: &'static str, priority: i32, description: &'static str) -> Column {
    with_format(name, type_, "", priority, description)
}

const fn with_format(
    name: &'static str,
    type_: &'static str,
    format: &'static str,
    priority: i32,
    description: &'static str,
) -> Column {
    Column {
        name: Cow::Borrowed(name),
        type_: Cow::Borrowed(type_),
        format: Cow::Borrowed(format),
        priority,
        description: Cow::Borrowed(description),
    }
}

pub(super) const fn name_column(priority: i32) -> Column {
    with_format("Name", "string", "name", priority, NAME)
}

/// The column of a custom resource whose definition has no columns.
pub(super) const fn age_column(priority: i32) -> Column {
    column("Age", "date", priority, AGE)
}

pub(super) const CRONJOBS: [Column; 10] = [
    name_column(0),
    column("Schedule", "string", 0, "The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron."),
    column(
        "Timezone",
        "string",
        0,
        "The time zone name for the given schedule, see https://en.wikipedia.org/wiki/List_of_tz_database_time_zones. If not specified, this will default to the time zone of the kube-controller-manager process. The set of valid time zone names and the time zone offset is loaded from the system-wide time zone database by the API server during CronJob validation and the controller manager during execution. If no system-wide time zone database can be found a bundled version of the database is used instead. If the time zone name becomes invalid during the lifetime of a CronJob or due to a change in host configuration, the controller will stop creating new new Jobs and will create a system event with the reason UnknownTimeZone. More information can be found in https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#time-zones",
    ),
    column(
        "Suspend",
        "boolean",
        0,
        "This flag tells the controller to suspend subsequent executions, it does not apply to already started executions.  Defaults to false.",
    ),
    column("Active", "integer", 0, "A list of pointers to currently running jobs."),
    column("Last Schedule", "string", 0, "Information when was the last time the job was successfully scheduled."),
    column("Age", "string", 0, AGE),
    column("Containers", "string", 1, CONTAINERS),
    column("Images", "string", 1, IMAGES),
    column("Selector", "string", 1, SELECTOR),
];

pub(super) const JOBS: [Column; 8] = [
    name_column(0),
    column("Status", "string", 0, "Status of the job."),
    column(
        "Completions",
        "string",
        0,
        "The number of pods which reached phase Succeeded. The value increases monotonically for a given spec. However, it may decrease in reaction to scale down of elastic indexed jobs.",
    ),
    column("Duration", "string", 0, "Time required to complete the job."),
    column("Age", "string", 0, AGE),
    column("Containers", "string", 1, CONTAINERS),
    column("Images", "string", 1, IMAGES),
    column("Selector", "string", 1, SELECTOR),
];

pub(super) const PODS: [Column; 9] = [
    name_column(0),
    column("Ready", "string", 0, "The aggregate readiness state of this pod for accepting traffic."),
    column("Status", "string", 0, "The aggregate status of the containers in this pod."),
    column(
        "Restarts",
        "string",
        0,
        "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
    ),
    column("Age", "string", 0, AGE),
    column(
        "IP",
        "string",
        1,
        "podIP address allocated to the pod. Routable at least within the cluster. Empty if not yet allocated.",
    ),
    column(
        "Node",
        "string",
        1,
        "NodeName indicates in which node this pod is scheduled. If empty, this pod is a candidate for scheduling by the scheduler defined in schedulerName. Once this field is set, the kubelet for this node becomes responsible for the lifecycle of this pod. This field should not be used to express a desire for the pod to be scheduled on a specific node. https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/#nodename",
    ),
    column(
        "Nominated Node",
        "string",
        1,
        "nominatedNodeName is set only when this pod preempts other pods on the node, but it cannot be scheduled right away as preemption victims receive their graceful termination periods. This field does not guarantee that the pod will be scheduled on this node. Scheduler may decide to place the pod elsewhere if other nodes become available sooner. Scheduler may also decide to give the resources on this node to a higher priority pod that is created after preemption. As a result, this field may be different than PodSpec.nodeName when the pod is scheduled.",
    ),
    column(
        "Readiness Gates",
        "string",
        1,
        "If specified, all readiness gates will be evaluated for pod readiness. A pod is ready when all its containers are ready AND all conditions specified in the readiness gates have status equal to \"True\" More info: https://git.k8s.io/enhancements/keps/sig-network/580-pod-readiness-gates",
    ),
];

pub(super) const EVENTS: [Column; 10] = [
    column("Last Seen", "string", 0, "The time at which the most recent occurrence of this event was recorded."),
    column("Type", "string", 0, "Type of this event (Normal, Warning), new types could be added in the future"),
    column(
        "Reason",
        "string",
        0,
        "This should be a short, machine understandable string that gives the reason for the transition into the object's current status.",
    ),
    column("Object", "string", 0, "The object that this event is about."),
    column(
        "Subobject",
        "string",
        1,
        "If referring to a piece of an object instead of an entire object, this string should contain a valid JSON/Go field access statement, such as desiredState.manifest.containers[2]. For example, if the object reference is to a container within a pod, this would take on a value like: \"spec.containers{name}\" (where \"name\" refers to the name of the container that triggered the event) or if no container name is specified \"spec.containers[2]\" (container with index 2 in this pod). This syntax is chosen only to have some well-defined way of referencing a part of an object.",
    ),
    column(
        "Source",
        "string",
        1,
        "The component reporting this event. Should be a short machine understandable string.",
    ),
    column("Message", "string", 0, "A human-readable description of the status of this operation."),
    column(
        "First Seen",
        "string",
        1,
        "The time at which the event was first recorded. (Time of server receipt is in TypeMeta.)",
    ),
    column("Count", "string", 1, "The number of times this event has occurred."),
    name_column(1),
];

pub(super) const NAMESPACES: [Column; 3] =
    [name_column(0), column("Status", "string", 0, "The status of the namespace"), column("Age", "string", 0, AGE)];

pub(super) const LEASES: [Column; 3] = [
    name_column(0),
    column(
        "Holder",
        "string",
        0,
        "holderIdentity contains the identity of the holder of a current lease. If Coordinated Leader Election is used, the holder identity must be equal to the elected LeaseCandidate.metadata.name field.",
    ),
    column("Age", "string", 0, AGE),
];

pub(super) const DEFINITIONS: [Column; 2] = [name_column(0), column("Created At", "date", 0, AGE)];
