# Minutely CronJobs, and an account of every Job that was created; for a script that has sourced plane.sh.

# Before start_plane: kube-apiserver then logs every creation of a Job and every update of a Lease, outside of etcd.
audited() {
    cat >"$dir/audit.yaml" <<YAML
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: Metadata, verbs: [create], resources: [{group: batch, resources: [jobs]}]}
- {level: Metadata, verbs: [update], resources: [{group: coordination.k8s.io, resources: [leases]}]}
- level: None
YAML
    API_SERVER_ARGS="--audit-policy-file=$dir/audit.yaml --audit-log-path=$dir/audit.log"
}

# created NAMESPACE: a line for each creation of a Job, oldest first: its CronJob, and its slot in minutes since 1970.
created() {
    jq -r --arg namespace "$1" 'select(.objectRef.namespace == $namespace and .responseStatus.code == 201) | .objectRef.name' \
        "$dir/audit.log" | sed -E 's/-([0-9]+)$/ \1/'
}

# minutely NAMESPACE COUNT: so many CronJobs of each concurrency policy, whose Jobs succeed without a Pod.
minutely() {
    local number policy
    for policy in Allow Forbid Replace; do
        for number in $(seq "$2"); do
            cat <<YAML
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: $1, name: ${policy,,}-$number}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: $policy
  jobTemplate: {spec: {completions: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/none}]}}}}
---
YAML
        done
    done | kubectl create -f - >/dev/null
}

# idle NAMESPACE COUNT: so many CronJobs that are not due before next year.
idle() {
    local part number loads=()
    if [ "$2" -eq 0 ]; then return; fi
    for part in 0 1 2 3; do
        for number in $(seq "$part" 4 $(($2 - 1))); do
            cat <<YAML
apiVersion: batch/v1
kind: CronJob
metadata: {namespace: $1, name: idle-$number}
spec:
  schedule: "0 0 1 1 *"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: example.com/none}]}}}}
---
YAML
        done | kubectl create --validate=false -f - >/dev/null &
        loads+=($!)
    done
    wait "${loads[@]}"
}

# The current slot.
slot() { echo $(($(date +%s) / 60)); }

# until_second SECOND: until that second of the next minute.
until_second() { sleep "$(awk -v now="$EPOCHREALTIME" -v at="$1" 'BEGIN { print (int(now / 60) + 1) * 60 + at - now }')"; }

# until_true SECONDS COMMAND...: until the command succeeds; fails when the time is over.
until_true() {
    local deadline=$((SECONDS + $1))
    until "${@:2}"; do
        [ "$SECONDS" -lt "$deadline" ] || { echo "$(basename "$(dirname "$0")"): not within $1 s: ${*:2}" >&2; return 1; }
        sleep 0.2
    done
}
