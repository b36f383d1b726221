# The faults of the first day; sourced by ./run.

# cron_job NAMESPACE NAME SCHEDULE SPEC-OF-THE-JOB MORE
cron_job() {
    cat <<YAML
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: $1, name: $2}
spec:
  schedule: "$3"
  jobTemplate:
    spec: {$4${4:+, }template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/none}]}}}
  ${5:-}
---
YAML
}

# The number of CronJobs that are due together, and the number of running Jobs to replace at once.
CROWD=400
HOARD=30

# The CronJobs, created before a controller runs.
prepare() {
    local namespace number
    for namespace in shop full crowd hoard; do kubectl create namespace "$namespace"; done
    {
        cron_job shop orders '* * * * *' 'completions: 0'
        cron_job shop failing '* * * * *' 'activeDeadlineSeconds: 1'
        cron_job shop stuck '* * * * *' '' 'concurrencyPolicy: Forbid'
        cron_job hoard hoarder '* * * * *' '' $'concurrencyPolicy: Replace\n  suspend: true'
    } | kubectl create -f -
    local uid slot
    uid=$(kubectl -n hoard get cronjob hoarder -o jsonpath='{.metadata.uid}')
    # As if a controller had started them: each has the name and the time of a slot.
    for number in $(seq $HOARD); do
        slot=$(($(date +%s) / 60 - number))
        cat <<YAML
apiVersion: batch/v1
kind: Job
metadata:
  namespace: hoard
  name: hoarder-$slot
  annotations: {batch.kubernetes.io/cronjob-scheduled-timestamp: "$(date -u -d "@$((slot * 60))" +%FT%TZ)"}
  ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: hoarder, uid: $uid, controller: true}]
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/none}]}}}
---
YAML
    done | kubectl create -f - >/dev/null
}

lease_of_another_holder() {
    kubectl create -f - <<YAML
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {namespace: $system, name: cronjob-controller}
spec: {holderIdentity: another-holder, leaseDurationSeconds: 3600}
YAML
}

# No API server accepts this object, so it is written to etcd, as a faulty restore might do: a CronJob without a UID.
unreadable() {
    local object
    object=$(kubectl -n shop get cronjob orders -o json |
        jq -c '.metadata.name = "restored" | del(.status, .metadata.uid, .metadata.resourceVersion, .metadata.managedFields)')
    jq -n --arg key /registry/cronjobs/shop/restored --arg value "$object" \
        '{key: ($key | @base64), value: ($value | @base64)}' |
        curl -sS --fail -o /dev/null --data @- "http://127.0.0.1:$etcd_port/v3/kv/put"
    provoked CronJobControllerMalformedObjects "a CronJob without a UID, put into etcd"
}

full_quota() {
    kubectl -n full create quota none --hard=count/jobs.batch=0
    until kubectl -n full get quota none -o jsonpath='{.status.hard}' | grep -q jobs; do sleep 0.5; done
    cron_job full refused "$(date -u -d '+2 minutes' +%-M) * * * *" 'completions: 0' | kubectl create -f -
    provoked CronJobRefused "an hourly CronJob, due within two minutes, whose Job a quota refuses"
}

mend_the_owners() {
    kubectl -n shop delete cronjob restored
    mended CronJobControllerMalformedObjects "that CronJob deleted"
    kubectl -n shop patch cronjob failing --type=merge \
        -p '{"spec": {"jobTemplate": {"spec": {"activeDeadlineSeconds": null, "completions": 0}}}}'
    mended CronJobFailing "a template whose Jobs succeed"
    kubectl -n shop patch cronjob stuck --type=merge -p '{"spec": {"concurrencyPolicy": "Allow"}}'
    mended CronJobForbidBlocked "concurrencyPolicy: Allow"
    kubectl -n full delete quota none
    mended CronJobRefused "the quota deleted"
}

# The address of a function in a process, from the program's own symbols.
address() {
    local base
    base=$(sed -n '1s/-.*//p' "/proc/$1/maps")
    echo $((0x$base + 0x$(nm -C "$controller" | sed -n "s/^\([0-9a-f]*\) [Tt] $2\$/\1/p")))
}

# A real panic in the unmodified program: a debugger stops the leader where the next sync is about to decide, and
# continues it where the standard library panics because of a too large allocation.
panic() {
    local leader pid decide overflow
    leader=$(curl -s "http://$prometheus/api/v1/query" --data-urlencode 'query=leader_election_master_status == 1' |
        jq -r '.data.result[0].metric.instance')
    pid=$(cat "$dir/replica-${leader#*:}.pid")
    decide=$(address "$pid" cronjob_controller::controller::reconcile::reconcile)
    overflow=$(address "$pid" alloc::raw_vec::capacity_overflow)
    provoked CronJobControllerPanics "a debugger that makes one sync panic"
    gdb --readnever --nx --quiet --batch --pid="$pid" -ex "break *$decide" -ex continue -ex "set \$pc = $overflow" \
        -ex delete -ex detach >"$dir/gdb.log" 2>&1
    mended CronJobControllerPanics "the debugger let go"
    fires CronJobControllerPanics
    grep -h 'a sync panicked' "$dir"/replica-*.log
}

# Many CronJobs that are due together.
crowd() {
    local number
    for number in $(seq $CROWD); do
        cron_job crowd "crowd-$number" '* * * * *' 'completions: 0' 'successfulJobsHistoryLimit: 1'
    done | kubectl create -f - >/dev/null
}

# A user forgets to turn the in-tree controller off. It starts 100 ms late, so it is first only with many CronJobs,
# and only if its request rate is not limited.
two_controllers() {
    local pid
    crowd
    "$controlplane" kube-controller-manager --kubeconfig="$KUBECONFIG" --controllers=cronjob-controller \
        --concurrent-cron-job-syncs=64 --kube-api-qps=1000 --kube-api-burst=1000 \
        --leader-elect=false --secure-port=0 >"$dir/in-tree.log" 2>&1 &
    pid=$!
    provoked CronJobControllerExternalJobs "the in-tree controller beside it, $CROWD CronJobs due at once"
    fires CronJobControllerExternalJobs
    kill "$pid"
    mended CronJobControllerExternalJobs "the in-tree controller turned off"
    kubectl -n crowd delete cronjobs --all >/dev/null
    grep -h 'another controller' "$dir"/replica-*.log
}

# An admission webhook whose server accepts connections and does not answer: kubectl proxy, stopped.
black_hole() {
    kubectl proxy --port=0 >"$dir/black-hole.log" &
    echo $! >"$dir/black-hole.pid"
    until grep -q Starting "$dir/black-hole.log"; do sleep 0.1; done
    kill -STOP "$(cat "$dir/black-hole.pid")"
    black_hole_port=$(sed 's/.*://' "$dir/black-hole.log")
}

# slow NAMESPACE OPERATION [SECONDS]: requests for Jobs there hang; with SECONDS they are allowed after that time.
slow() {
    local allows="timeoutSeconds: 30"
    if [ -n "${3:-}" ]; then
        allows="timeoutSeconds: $3
  failurePolicy: Ignore"
    fi
    kubectl create -f - <<YAML
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: slow-$1}
webhooks:
- name: slow.example.com
  clientConfig: {url: "https://127.0.0.1:$black_hole_port/"}
  rules: [{apiGroups: [batch], apiVersions: [v1], resources: [jobs], operations: [$2]}]
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $1}}
  admissionReviewVersions: [v1]
  sideEffects: None
  $allows
YAML
}

slow_api() {
    black_hole
    slow hoard DELETE 9
    kubectl -n hoard patch cronjob hoarder --type=merge -p '{"spec": {"suspend": false}}'
    provoked CronJobControllerSyncStuck "$HOARD running Jobs to replace, and an admission webhook that takes nine seconds for each"
    crowd
    slow crowd CREATE
    provoked CronJobControllerQueueNotDrained "$CROWD CronJobs due, and an admission webhook that does not answer"
    provoked CronJobControllerLate "the same, once their Jobs can be created"
    fires CronJobControllerQueueNotDrained
    # Jobs created then are for the newest slot, and must be late.
    until [ "$(date +%-S)" -ge 30 ]; do sleep 1; done
    kubectl delete validatingwebhookconfiguration slow-crowd
    mended CronJobControllerQueueNotDrained "the webhook's configuration deleted"
    fires CronJobControllerLate
    mended CronJobControllerLate "the same"
}

# The account loses its rights, and kube-apiserver is restarted, which ends the open watches.
stale_watch() {
    kubectl patch clusterrole cronjob-controller --type=json -p '[{"op": "replace", "path": "/rules/0/verbs", "value": ["get"]}]'
    { kill -KILL "$api_server_pid" && wait "$api_server_pid"; } 2>/dev/null || true
    start_api_server
    provoked CronJobControllerWatchStale "the rights to list and watch CronJobs taken away, and kube-apiserver restarted"
}
