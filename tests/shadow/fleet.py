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


if case in ("late", "killed"):
    items = [cron_job(f"c{number}", f"{at.minute} {at.hour} * * *") for number in range(count)]
else:
    items = list(fleet())
print(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
