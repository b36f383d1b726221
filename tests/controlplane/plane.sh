# A real control plane on loopback, for a script that sources this from the repository's root and ends its own
# children. All files are in $dir. Needs `make fixture`, kubectl and openssl. KUBECONFIG is that of a user with all
# rights.

controlplane=${CONTROLPLANE_BIN:-tests/controlplane/bin/$(<tests/controlplane/kubernetes-version)/controlplane}

# Ends the script that sources this, when it traps EXIT with it: kills its children and the processes that $dir/*.pid name, and
# keeps $dir after a failure.
stop() {
    local status=$?
    trap - EXIT INT TERM
    # shellcheck disable=SC2046
    kill -KILL $(cat "$dir"/*.pid 2>/dev/null) $(jobs -p) 2>/dev/null || true
    wait 2>/dev/null || true
    if [ "$status" = 0 ]; then rm -rf "$dir"; else echo "logs are kept in $dir" >&2; fi
    exit "$status"
}

free_port() {
    local port
    while port=$((RANDOM % 10000 + 20000)); do
        (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
    done
}

# Starts etcd and kube-apiserver; sets `etcd_port`, `api_port`, `etcd_pid` and `api_server_pid`. API_SERVER_ARGS are further
# flags of kube-apiserver, and API_TOKENS further lines of its file of tokens.
start_plane() {
    etcd_port=$(free_port) peer_port=$(free_port) api_port=$(free_port)
    openssl genrsa -out "$dir/sa.key" 2048 2>/dev/null
    openssl rsa -in "$dir/sa.key" -pubout -out "$dir/sa.pub" 2>/dev/null
    printf '%s\n' "plane,admin,admin,system:masters" ${API_TOKENS:-} >"$dir/tokens.csv"
    cat >"$dir/kubeconfig" <<KUBECONFIG
apiVersion: v1
kind: Config
clusters: [{name: plane, cluster: {server: "https://127.0.0.1:$api_port", certificate-authority: $dir/certs/apiserver.crt}}]
users: [{name: plane, user: {token: plane}}]
contexts: [{name: plane, context: {cluster: plane, user: plane}}]
current-context: plane
KUBECONFIG
    chmod 600 "$dir/kubeconfig" "$dir/tokens.csv"
    export KUBECONFIG=$dir/kubeconfig
    start_etcd
    start_api_server
}

# Starts or restarts etcd, on the same ports and on the data that $dir/etcd holds.
start_etcd() {
    "$controlplane" etcd ${ETCD_ARGS:-} --data-dir="$dir/etcd" --unsafe-no-fsync --log-level=error \
        --listen-client-urls="http://127.0.0.1:$etcd_port" --advertise-client-urls="http://127.0.0.1:$etcd_port" \
        --listen-peer-urls="http://127.0.0.1:$peer_port" --initial-advertise-peer-urls="http://127.0.0.1:$peer_port" \
        --initial-cluster="default=http://127.0.0.1:$peer_port" >>"$dir/etcd.log" 2>&1 &
    etcd_pid=$!
}

# Starts or restarts kube-apiserver, on the same port and data; returns when it is ready.
start_api_server() {
    # shellcheck disable=SC2086
    "$controlplane" kube-apiserver ${API_SERVER_ARGS:-} --etcd-servers="http://127.0.0.1:$etcd_port" --bind-address=127.0.0.1 \
        --secure-port="$api_port" --cert-dir="$dir/certs" --service-account-issuer=https://kubernetes.default.svc \
        --service-account-key-file="$dir/sa.pub" --service-account-signing-key-file="$dir/sa.key" \
        --service-cluster-ip-range=10.0.0.0/24 --token-auth-file="$dir/tokens.csv" --authorization-mode=RBAC \
        --disable-admission-plugins=ServiceAccount --endpoint-reconciler-type=none >>"$dir/kube-apiserver.log" 2>&1 &
    api_server_pid=$!
    local _
    for _ in $(seq 300); do
        kubectl get --raw /readyz >/dev/null 2>&1 && return
        sleep 0.2
    done
    echo "kube-apiserver did not get ready:" >&2
    tail "$dir/kube-apiserver.log" >&2
    exit 1
}

# Starts kube-controller-manager with these of its controllers; sets `controllers_pid`.
start_controllers() {
    "$controlplane" kube-controller-manager --kubeconfig="$KUBECONFIG" --controllers="$1" --leader-elect=false \
        --secure-port=0 --service-account-private-key-file="$dir/sa.key" --root-ca-file="$dir/certs/apiserver.crt" \
        --kube-api-qps=200 --kube-api-burst=400 >>"$dir/kube-controller-manager.log" 2>&1 &
    controllers_pid=$!
}
