#!/usr/bin/env python3
"""Prints a List of CronJobs: fleet.py CASE COUNT SLOT, where SLOT is the first minute that counts, in seconds since 1970."""

import datetime
import itertools
import json
import sys

case, count, slot = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
at = datetime.datetime.fromtimestamp(slot, datetime.timezone.utc)
# Of the first hours after the slot, in every form that a schedule has.
SCHEDULES = [
    ("* * * * *", None), ("*/2 * * * *", None), ("1-59/2 * * * *", None), ("*/5 * * * *", None), ("*/7 * * * *", None),
    ("0,7,19,31,44,52 * * * *", None), ("10-40/3,55 * * * *", None), (f"{at.minute} * * * *", None),
    (f"{(at.minute + 17) % 60} {at.hour},{(at.hour + 1) % 24} * * *", None), (f"*/11 * {at.day} {at.month} *", None),
    (f"*/13 * 1 1 {at.isoweekday() % 7}", None), ("*/6 * * * MON-FRI", None), ("*/6 * * * SAT,SUN", None),
    (f"*/9 * ? {at.strftime('%b').upper()} *", None), ("@hourly", None), ("@every 90s", None), ("@every 7m30s", None),
    ("@daily", None), ("*/4 * * * *", "Asia/Kathmandu"), ("*/10 * * * *", "America/St_Johns"), ("30 * * * *", "Australia/Lord_Howe"),
    ("*/8 * * * *", "Europe/Berlin"), ("*/3 * * * *", "Etc/UTC"), ("0 0 30 2 *", None),
]
# (completions, backoffLimit and so on of the Job; how it ends)
JOBS = [
    {"completions": 0},  # at once
    {"completions": 1},  # never, since no Pod runs
    {"completions": 1, "activeDeadlineSeconds": 30},  # it fails
    {"completions": 1, "activeDeadlineSeconds": 100},
    {"completions": 0, "ttlSecondsAfterFinished": 20},
    {"suspend": True},
    {"completions": 1, "parallelism": 0},
]
FIELDS = [
    {}, {"startingDeadlineSeconds": 20}, {"startingDeadlineSeconds": 200}, {"suspend": True}, {"startingDeadlineSeconds": 0},
    {"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0}, {"successfulJobsHistoryLimit": 1}, {"failedJobsHistoryLimit": 4},
]
POLICIES = [
    {"spread": "2m"}, {"max-concurrent": "2"}, {"exclude": at.strftime("%Y-%m-%d")}, {"backlog": "2"}, {"stuck-after": "1m"},
]


def cron_job(name, schedule, zone=None, policy="Allow", job=JOBS[0], fields={}, annotations={}):
    container = {"name": "c", "image": "example.com/none"}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"schedule": schedule, "concurrencyPolicy": policy, "jobTemplate": {"spec": {"template": template, **job}}, **fields}
    if zone:
        spec["timeZone"] = zone
    annotations = {f"cronjob-controller.dev/{key}": value for key, value in annotations.items()}
    metadata = {"name": name, "namespace": "default", "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": spec}


def fleet():
    """Each kind of schedule with each policy and Job before the fields repeat; a tenth has annotations."""
    combinations = itertools.product(["Allow", "Forbid", "Replace"], SCHEDULES, range(10_000))
    combinations = sorted(combinations, key=lambda each: each[2])
    for number, (policy, (schedule, zone), turn) in enumerate(itertools.islice(combinations, count)):
        job, fields = JOBS[(number + turn) % len(JOBS)], FIELDS[(number // 7 + turn) % len(FIELDS)]
        annotations = POLICIES[number // 10 % len(POLICIES)] if number % 10 == 9 else {}
        if policy == "Replace" and "max-concurrent" in annotations or schedule.startswith("@every"):
            annotations = {}
        yield cron_job(f"c{number}", schedule, zone, policy, job, fields, annotations)


def defects():
    """Minutely CronJobs in a namespace for each defect, and in one whose controller has none."""
    days = ",".join((at + datetime.timedelta(days=days)).strftime("%Y-%m-%d") for days in range(2))
    quick, runs, short = JOBS[0], JOBS[1], {"completions": 0, "ttlSecondsAfterFinished": 15}
    rows = [("plain", "Allow", quick, {}), ("forbid", "Forbid", quick, {}), ("replace", "Replace", runs, {}), ("short", "Allow", short, {})]
    rows = {
        "sound": [*rows, ("held", "Forbid", runs, {}), ("excluded", "Allow", quick, {"exclude": days})],
        "lost": rows,
        "twice": [("plain", "Allow", quick, {}), ("short", "Replace", short, {})],
        "forbid": [("held", "Forbid", runs, {})],
        "stale": [("runs", "Allow", runs, {}), ("replace", "Replace", runs, {}), ("plain", "Allow", quick, {})],
        "excluded": [("days", "Allow", quick, {"exclude": days}), ("runs", "Replace", runs, {"exclude": days})],
    }
    for namespace, members in rows.items():
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
        for name, policy, job, annotations in members:
            made = cron_job(name, "* * * * *", policy=policy, job=job, annotations=annotations)
            made["metadata"]["namespace"] = namespace
            yield made


if case == "late":
    items = [cron_job(f"c{number}", f"{at.minute} {at.hour} * * *") for number in range(count)]
elif case == "killed":
    # Twice, and the Jobs of the first slot still run then.
    schedule = f"{at.minute},{(at.minute + 4) % 60} * * * *"
    items = [cron_job(f"c{number}", schedule, policy="Forbid", job=JOBS[1]) for number in range(count)]
elif case == "defects":
    items = list(defects())
else:
    items = list(fleet())
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
