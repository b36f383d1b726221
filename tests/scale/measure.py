"""The steps of tests/scale/run that a shell is too slow for; each prints cells of a table, or a table."""

import base64
import collections
import concurrent.futures
import datetime
import json
import os
import re
import ssl
import sys
import time
import urllib.request
import uuid

TEMPLATE = {
    "metadata": {"labels": {"app": "scale"}},
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/team/report:1.4.2",
                "args": ["--day", "yesterday", "--output", "s3://reports.example.com/daily"],
                "env": [{"name": "LEVEL", "value": "info"}, {"name": "REGION", "value": "eu-central-1"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
            }
        ],
    },
}
NAMESPACES = 100
LAST_YEAR = "2025-01-01T00:00:00Z"


def name_of(number):
    return f"n{number % NAMESPACES}", f"report-{number:06}"


def objects(number):
    """A CronJob that is next due in a year, and its three finished Jobs, as etcd's keys and values."""
    namespace, name = name_of(number)
    meta = {"namespace": namespace, "creationTimestamp": LAST_YEAR, "generation": 1}
    uid = str(uuid.uuid4())
    yield f"/registry/cronjobs/{namespace}/{name}", {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": meta | {"name": name, "uid": uid},
        "spec": {
            "schedule": "0 0 1 1 *",
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": {"completions": 0, "template": TEMPLATE}},
        },
        "status": {"lastScheduleTime": "2026-01-01T00:00:00Z", "lastSuccessfulTime": "2026-01-01T00:02:20Z"},
    }
    for slot in range(3):
        began = f"2026-01-01T00:0{slot}:00Z"
        ended = f"2026-01-01T00:0{slot}:20Z"
        job = f"{name}-{29450000 + slot}"
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": True}
        yield f"/registry/jobs/{namespace}/{job}", {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": meta
            | {
                "name": job,
                "uid": str(uuid.uuid4()),
                "creationTimestamp": began,
                "annotations": {"batch.kubernetes.io/cronjob-scheduled-timestamp": began},
                "ownerReferences": [owner | {"blockOwnerDeletion": True}],
            },
            "spec": {"completions": 1, "parallelism": 1, "backoffLimit": 6, "suspend": False, "template": TEMPLATE},
            "status": {
                "startTime": began,
                "completionTime": ended,
                "succeeded": 1,
                "conditions": [
                    {"type": kind, "status": "True", "lastProbeTime": ended, "lastTransitionTime": ended}
                    for kind in ("SuccessCriteriaMet", "Complete")
                ],
            },
        }


def load(etcd, scale):
    """Writes all objects into etcd, 120 at a time."""
    encoded = lambda data: base64.b64encode(data.encode()).decode()

    def put(batch):
        puts = [{"requestPut": {"key": encoded(key), "value": encoded(json.dumps(value))}} for key, value in batch]
        body = json.dumps({"success": puts}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{etcd}/v3/kv/txn", body), timeout=60).read()

    spaces = (
        (f"/registry/namespaces/n{n}", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"n{n}", "uid": str(uuid.uuid4()), "creationTimestamp": LAST_YEAR}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}})
        for n in range(NAMESPACES)
    )
    batch, began = list(spaces), time.time()
    for number in range(int(scale)):
        batch.extend(objects(number))
        if len(batch) >= 120:
            put(batch)
            batch = []
    if batch:
        put(batch)
    print(f"scale: written in {time.time() - began:.0f} s")


def usage(pid):
    """CPU in seconds."""
    fields = open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid, field):
    line = next(line for line in open(f"/proc/{pid}/status") if line.startswith(field))
    return f"{int(line.split()[1]) / 1024:.0f} MB"


def rest(pid):
    """Waits until the process uses less than two percent of a core for ten seconds."""
    began, last, quiet_since = time.time(), 0.0, None
    while True:
        time.sleep(1)
        now = usage(pid)
        if now - last > 0.02 or time.time() - began < 5:
            quiet_since, cpu, after = None, now, time.time() - began
        elif quiet_since is None:
            quiet_since = time.time()
        elif time.time() - quiet_since >= 10:
            break
        last = now
    print(f"{memory(pid, 'VmHWM')} | {memory(pid, 'VmRSS')} | {cpu:.1f} s | {after:.0f} s")


class Server:
    """Requests of a user with all rights."""

    def __init__(self, kubeconfig):
        text = open(kubeconfig).read()
        self.url = re.search(r'server: "(.*?)"', text).group(1)
        self.context = ssl.create_default_context(cafile=re.search(r"certificate-authority: (.*?)\}", text).group(1))

    def send(self, method, path, body, kind="application/json"):
        headers = {"Authorization": "Bearer plane", "Content-Type": kind, "User-Agent": "load"}
        request = urllib.request.Request(self.url + path, json.dumps(body).encode(), headers, method=method)
        return urllib.request.urlopen(request, context=self.context, timeout=60).read()

    def all(self, calls):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda call: self.send(*call), calls))


def events(path):
    for line in open(path):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if event.get("objectRef"):
            yield event


def stamp(event, name):
    return datetime.datetime.fromisoformat(event[name].replace("Z", "+00:00")).timestamp()


def late(delays, count):
    delays = sorted(delays)
    if not delays:
        return f"0 of {count} | - | - | -"
    at = lambda share: delays[min(len(delays) - 1, int(share * len(delays)))]
    return f"{len(delays)} of {count} | {at(0.5):.2f} s | {at(0.99):.2f} s | {delays[-1]:.2f} s"


def due_minute(ahead):
    """A minute that begins in so many seconds or more: as seconds since 1970, and as a schedule."""
    slot = (int(time.time()) + ahead + 59) // 60 * 60
    at = datetime.datetime.fromtimestamp(slot, datetime.timezone.utc)
    return slot, f"{at.minute} {at.hour} {at.day} {at.month} *"


def due(kubeconfig, audit, first, count):
    """Makes some CronJobs due in one minute."""
    count = int(count)
    slot, schedule = due_minute(45)
    paths = ["/apis/batch/v1/namespaces/{}/cronjobs/{}".format(*name_of(n)) for n in range(int(first), int(first) + count)]
    patch = {"spec": {"schedule": schedule}}
    Server(kubeconfig).all(("PATCH", path, patch, "application/merge-patch+json") for path in paths)
    time.sleep(max(0, slot - time.time()))
    created = []
    while len(created) < count and time.time() < slot + 240:
        time.sleep(5)
        created = [
            stamp(event, "requestReceivedTimestamp") - slot
            for event in events(audit)
            if (event["verb"], event["objectRef"]["resource"], event["responseStatus"]["code"]) == ("create", "jobs", 201)
            and event["objectRef"]["name"].endswith(f"-{slot // 60}")
        ]
    print(late(created, count))


def sent(before, after):
    """What the API server has sent of Jobs and CronJobs meanwhile, in lists and in watches."""

    def total(path):
        lists = watches = 0.0
        for line in open(path):
            if 'resource="jobs"' not in line and 'resource="cronjobs"' not in line:
                continue
            if line.startswith("apiserver_response_sizes_sum"):
                lists += float(line.split()[-1])
            elif line.startswith("apiserver_watch_events_sizes_sum"):
                watches += float(line.split()[-1])
        return lists, watches

    parts = [new - old for new, old in zip(total(after), total(before))]
    print(f"{sum(parts) / 1e6:.0f} MB")


def running(kubeconfig, audit, namespace, count):
    """Creates CronJobs that are due at once, and waits for the Job controller's first write of each Job's status."""
    count = int(count)
    slot, schedule = due_minute(60)
    spec = {"schedule": schedule, "jobTemplate": {"spec": {"suspend": False, "template": TEMPLATE}}}
    path = f"/apis/batch/v1/namespaces/{namespace}/cronjobs"
    Server(kubeconfig).all(
        ("POST", path, {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": f"c{n}"}, "spec": spec}) for n in range(count)
    )
    time.sleep(max(0, slot + 150 - time.time()))
    started = {}
    for event in events(audit):
        place = event["objectRef"]
        is_status = place["resource"] == "jobs" and place.get("subresource") == "status" and event["verb"] in ("update", "patch")
        if is_status and place["namespace"] == namespace and event["responseStatus"]["code"] == 200:
            started.setdefault(place["name"], stamp(event, "stageTimestamp") - slot)
    print(late(started.values(), count))


def requests(audit, namespace, minutes):
    """Counts a controller's requests about a namespace during its last so many minutes, per Job that it created."""
    other = re.compile("^load|kubectl|(?<!cron)job-controller")
    until = time.time()
    counted, runs = collections.Counter(), 0
    for event in events(audit):
        place, agent = event["objectRef"], event.get("userAgent", "")
        if place.get("namespace") != namespace or stamp(event, "stageTimestamp") < until - 60 * int(minutes):
            continue
        if not other.search(agent):
            code = event["responseStatus"]["code"]
            kind = place["resource"] + ("/" + place["subresource"] if place.get("subresource") else "")
            counted[event["verb"], kind, code // 100] += 1
            runs += event["verb"] == "create" and kind == "jobs" and code == 201
    print(f"| {namespace}, {runs} runs | per run |\n| --- | --- |")
    for (verb, kind, code), number in sorted(counted.items()):
        print(f"| {verb} {kind}, {code}xx | {number / max(runs, 1):.3f} |")
    print(f"| all | {sum(counted.values()) / max(runs, 1):.3f} |\n")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
