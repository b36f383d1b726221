use super::*;

#[test]
fn kind_that_is_nearly_one_that_is_checked_is_an_error_with_what_is_meant() {
    const BATCH: &str = "did you mean CronJob of batch/v1?";
    const JOB: &str = "did you mean Job of batch/v1?";
    let tutorial = "batch.tutorial.kubebuilder.io/v1";
    let rows = [
        ("other letters", "batch/v1", "Cronjob", Some(("kind", BATCH))),
        ("all small", "batch/v1", "cronjob", Some(("kind", BATCH))),
        ("a letter that nobody sees", "batch/v1", "CronJob\u{200b}", Some(("kind", BATCH))),
        ("a plural", "batch/v1", "CronJobs", Some(("kind", BATCH))),
        ("a plural in small letters", "batch/v1", "cronjobs", Some(("kind", BATCH))),
        ("a letter too few", "batch/v1", "CroJob", Some(("kind", BATCH))),
        ("two letters in each other's place", "batch/v1", "CornJob", Some(("kind", BATCH))),
        ("another group of Kubernetes", "apps/v1", "CronJob", Some(("apiVersion", BATCH))),
        ("no group", "v1", "CronJob", Some(("apiVersion", BATCH))),
        ("a typing error in the group", "bacth/v1", "CronJob", Some(("apiVersion", BATCH))),
        ("a group that sounds right", "batch.k8s.io/v1", "CronJob", Some(("apiVersion", BATCH))),
        ("both wrong", "apps/v1", "Cronjob", Some(("kind", BATCH))),
        ("a Job in small letters", "batch/v1", "job", Some(("kind", JOB))),
        ("a Job in another group", "apps/v1", "Job", Some(("apiVersion", JOB))),
        (
            "a custom kind",
            "myapp.my.domain/v1alpha1",
            "ApiExmple",
            Some(("kind", "did you mean ApiExample of myapp.my.domain/v1alpha1?")),
        ),
        (
            "the tutorial's",
            tutorial,
            "cronJob",
            Some(("kind", "did you mean CronJob of batch.tutorial.kubebuilder.io/v1?")),
        ),
        ("a version that there is not", "batch/v2", "CronJob", Some(("apiVersion", BATCH))),
        ("of a Job", "batch/v1beta1", "Job", Some(("apiVersion", JOB))),
        ("of another kind", "apps/v1beta1", "Deployment", Some(("apiVersion", "did you mean Deployment of apps/v1?"))),
        ("a second version", "autoscaling/v1", "HorizontalPodAutoscaler", None),
        ("a version of a group with a dot", "networking.k8s.io/v1beta1", "Ingress", None),
        ("a Job is a Job", "batch/v1", "Job", None),
        ("a Pod is no Job", "v1", "Pod", None),
        ("another version of the tutorial's", "batch.tutorial.kubebuilder.io/v2", "CronJob", None),
        ("the group of another project", "batch.volcano.sh/v1alpha1", "Job", None),
        ("which may have its own CronJob", "batch.volcano.sh/v1alpha1", "CronJob", None),
        ("a list", "batch/v1", "CronJobList", None),
        ("another kind that is served", "apps/v1", "Deployment", None),
        ("one that is not", "v1", "ReplicationController", None),
        ("its typing error", "apps/v1", "Deploymet", Some(("kind", "did you mean Deployment of apps/v1?"))),
        ("in the group of another", "v1", "Deployment", Some(("apiVersion", "did you mean Deployment of apps/v1?"))),
        ("in small letters", "v1", "namespace", Some(("kind", "did you mean Namespace of v1?"))),
        ("a small letter", "v1", "Configmap", Some(("kind", "did you mean ConfigMap of v1?"))),
        ("a custom resource of a project of Kubernetes", "gateway.networking.k8s.io/v1", "Ingres", None),
    ];
    for (sentence, api_version, kind, want) in rows {
        let want = want
            .map(|(field, meant)| (field, format!("there is no {} in {api_version}; {meant}", kind.escape_debug())));
        assert_eq!(judge(api_version, kind), want, "{sentence}");
    }
}

#[test]
fn every_other_kind_of_the_group_of_cron_jobs_is_an_error() {
    let rows = [
        ("kubectl's short name", "batch/v1", "cj", true),
        ("another kind", "batch/v1", "Workflow", true),
        ("a list of another", "batch/v1", "WorkflowList", false),
        ("another group", "v1", "cj", false),
    ];
    for (sentence, api_version, kind, is_error) in rows {
        let want = is_error.then(|| ("kind", format!("there is no {kind} in batch/v1, which has CronJob and Job")));
        assert_eq!(judge(api_version, kind), want, "{sentence}");
    }
}
