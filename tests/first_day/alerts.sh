# Prometheus' view of the alerts, and the table of it; sourced by ./run, which sets $dir and $prometheus.

# The time limit, in seconds, until an alert fires or stops firing.
PATIENCE=900

# Keeps $dir/firing, with one line for each firing alert: its name and its object. $dir/history has all such lines
# with their seconds.
watch_alerts() {
    while sleep 1; do
        curl -s "http://$prometheus/api/v1/alerts" >"$dir/answer" || continue
        jq -r '.data.alerts[] | select(.state == "firing") | "\(.labels.alertname) \(.labels.name // "")"' \
            <"$dir/answer" >"$dir/firing.new" || continue
        sed "s/^/$(date +%s) /" "$dir/firing.new" >>"$dir/history"
        mv "$dir/firing.new" "$dir/firing"
    done
}

# provoked ALERT HOW, mended ALERT HOW: record that the cause begins or ends now.
provoked() { echo "$2" >"$dir/$1.provoked"; echo "$(date +%T) provoked: $1: $2"; }
mended() { echo "$2" >"$dir/$1.mended"; echo "$(date +%T) mended: $1: $2"; }

# seconds ALERT ABOUT FROM WHICH: from that file's time to the first, or the last, second since then in which the
# alert fired.
seconds() {
    local from
    from=$(date +%s -r "$3")
    { echo "$from $1 $2"; grep -x "[0-9]* $1 $2" "$dir/history"; } | awk -v from="$from" '$1 >= from { print $1 - from }' |
        sort -n | if [ "$4" = first ]; then sed -n 2p; else tail -n 1; fi
}

# in_time FILE SENTENCE: whether the time limit since then has not passed.
in_time() {
    [ $(($(date +%s) - $(date +%s -r "$1"))) -lt $PATIENCE ] || { echo "first-day: $2" >&2; return 1; }
}

# fires ALERT [ABOUT]: waits until it does.
fires() {
    until grep -qx "$1 ${2:-.*}" "$dir/firing" 2>/dev/null; do
        in_time "$dir/$1.provoked" "$1 did not fire"
        sleep 1
    done
    seconds "$1" "${2:-.*}" "$dir/$1.provoked" first >"$dir/$1.fired"
    echo "$(date +%T) fires: $1, after $(cat "$dir/$1.fired") s"
}

# gone ALERT [ABOUT]: waits until it no longer fires.
gone() {
    while grep -qx "$1 ${2:-.*}" "$dir/firing"; do
        in_time "$dir/$1.mended" "$1 did not go"
        sleep 1
    done
    seconds "$1" "${2:-.*}" "$dir/$1.mended" last >"$dir/$1.gone"
    echo "$(date +%T) gone: $1, after $(cat "$dir/$1.gone") s"
}

report() {
    local alert
    echo
    echo "$(date +%F), $("$controller" --version), Kubernetes $(kubectl version -o json | jq -r .serverVersion.gitVersion)," \
        "$(prometheus --version 2>&1 | sed -n '1s/ (.*//p')"
    echo
    echo "| alert | provoked by | fired after | mended by | gone after |"
    echo "| --- | --- | ---: | --- | ---: |"
    for alert in $(sed -n 's/^ *- alert: //p' "$dir/rules.yaml"); do
        echo "| $alert | $(cat "$dir/$alert.provoked") | $(cat "$dir/$alert.fired") s |" \
            "$(cat "$dir/$alert.mended") | $(cat "$dir/$alert.gone") s |"
    done
}
