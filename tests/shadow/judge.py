#!/usr/bin/env python3
"""Compares a report of `shadow` with the API server's audit log: judge.py CASE DIRECTORY SLOT. Ends with 1 where they differ."""

import datetime
import json
import math
import pathlib
import sys

case, directory, slot = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
report = json.loads((directory / "report.json").read_text().splitlines()[-1])
objects = json.loads((directory / "objects.json").read_text())["items"]


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def quantile(values, part):
    """The smallest value that so large a part does not exceed."""
    return sorted(values)[math.ceil(part * len(values)) - 1] if values else 0.0


def due_of(event):
    """When the Job that was created is due; the name of one of `@every` tells only its minute."""
    annotations = event["requestObject"]["metadata"].get("annotations", {})
    return seconds(annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"])


annotated = {each["metadata"]["name"] for each in objects if each["kind"] == "CronJob" and each["metadata"].get("annotations")}
since, until = seconds(report["since"]), seconds(report["until"])
writes, starts, creates, late, statuses = 0, 0, {}, {}, {}
for line in (directory / "audit.log").read_text().splitlines():
    event = json.loads(line)
    what = event["objectRef"]["resource"]
    writes += event["user"]["username"] == "shadow"
    name = event["objectRef"].get("name", "").removesuffix("-again")
    if what == "cronjobs" and event["objectRef"].get("subresource") == "status" and event["responseStatus"]["code"] == 200:
        statuses.setdefault(name, []).append(seconds(event["stageTimestamp"]))
    if event["verb"] == "create" and what == "jobs" and event["responseStatus"]["code"] == 201 and name.rpartition("-")[2].isdigit():
        due, at, cron_job = due_of(event), seconds(event["stageTimestamp"]), name.rpartition("-")[0]
        starts += due >= slot
        creates.setdefault((event["objectRef"]["namespace"], name), []).append(at)
        # Of a slot that starts twice, the first counts; those with annotations are counted apart.
        if since < due <= until and cron_job not in annotated:
            late.setdefault(name, at - due)
late = list(late.values())


def found_by_name(report, namespace):
    lists = report["missed"] + report["twice"] + report["differs"]
    return [each["why"] for each in lists if each["namespace"] == namespace]


sizes = [line.split() for line in (directory / "size").read_text().splitlines()]
summary = {
    "case": case,
    "cronJobs": sum(each["kind"] == "CronJob" for each in objects),
    "starts": starts,
    **{key: report[key] for key in ("slots", "same", "agreement", "notSeen", "open", "refused", "late", "own", "apart")},
    **{key: len(report[key]) for key in ("missed", "twice", "differs", "listed")},
    "audit": {"p50": round(quantile(late, 0.5), 3), "p99": round(quantile(late, 0.99), 3), "max": round(max(late, default=0), 3)},
    "writesOfTheShadow": writes,
    **{
        key: {"kB": int(kb), "mostKB": int(most), "cpuSeconds": int(cpu) / 100}
        for key, (kb, most, cpu) in zip(("shadow", "inCharge"), sizes)
    },
}
wrong = ["the shadow wrote"] * (writes > 0)
found = [each["why"] for each in report["missed"] + report["twice"] + report["differs"]]
if case in ("fleet", "ours"):
    wrong += found
if case == "late":
    # An in-tree controller that is late with starts is late with statuses, too.
    wrong += [why for why in found if not why.startswith("status wrong")]
if case in ("fleet", "ours", "late"):
    wrong += [f"{key} differs" for key in ("p50", "p99", "max") if abs(report["late"][key] - summary["audit"][key]) > 0.02]
if case == "killed":
    # What is wrong in the objects must be what the report names.
    children = {}
    for job in (each for each in objects if each["kind"] == "Job"):
        for owner in job["metadata"].get("ownerReferences", []):
            children.setdefault(owner["name"], []).append(job)
    cron_jobs = {each["metadata"]["name"]: each for each in objects if each["kind"] == "CronJob"}
    active = {name: {job["uid"] for job in each.get("status", {}).get("active", [])} for name, each in cron_jobs.items()}
    stale = {name for name, jobs in children.items() if any(job["metadata"]["uid"] not in active[name] for job in jobs)}
    beside = {name for name, jobs in children.items() if len(jobs) > 1}
    of = lambda lists, text: {each["name"] for key in lists for each in report[key] if each["why"].startswith(text)}
    named = of(["differs"], "status wrong"), of(["differs", "listed"], "Forbid broken")
    summary["wrongStatuses"], summary["forbidBroken"] = [sorted(stale), sorted(named[0])], [sorted(beside), sorted(named[1])]
    wrong += [f"the status of {name} is not named" for name in sorted(stale - named[0])]
    wrong += [f"{name}, which has two Jobs, is not named" for name in sorted(beside - named[1])]
    # Of those, a later release than 1.36 writes some after minutes.
    began = {name.rpartition("-")[0]: min(times) for (_, name), times in creates.items()}
    mended = {name for name in named[0] if min(statuses.get(name, [began[name]])) - began[name] > 60}
    summary["mendedStatuses"] = sorted(mended)
    wrong += [f"{name} is named without a reason" for name in sorted((named[0] | named[1]) - stale - beside - mended)]
if case == "defects":
    # What the log shows of each namespace must be what the report names of it, and nothing else.
    due = list(range(slot, int(until) + 1, 60))
    jobs = {(space, name.rpartition("-")[0], 60 * int(name.rpartition("-")[2])): times for (space, name), times in creates.items()}
    of = lambda space: {name for (known, name, _) in jobs if known == space}
    want = {
        "missed": {("lost", name, at) for name in of("lost") for at in due if ("lost", name, at) not in jobs},
        "twice": {key for key, times in jobs.items() if key[0] == "twice" and key[2] in due and len(times) > 1},
        "differs": {key for key in jobs if key[2] in due and key[0] in ("forbid", "excluded")},
    }
    wrong += [f"{key}: the log has none" for key, wanted in want.items() if not wanted]
    for key, wanted in want.items():
        found = {(each["namespace"], each["name"], each["slot"] and int(seconds(each["slot"]))) for each in report[key]}
        statuses = {each for each in found if each[0] == "stale"} if key == "differs" else set()
        # What ran beside another when the watch began is found, too.
        found = {each for each in found if each[0] != "forbid" or each[2] >= slot}
        summary["of" + key.title()] = sorted({space for space, *_ in found})
        wrong += [f"{key}: {each} is not named" for each in sorted(wanted - found)]
        wrong += [f"{key}: {each} is named" for each in sorted(found - statuses - wanted, key=str)]
        if key == "differs":
            wrong += [f"the status of {name} is not named" for name in sorted(of("stale") - {name for _, name, _ in statuses})]
    wrong += [why for why in found_by_name(report, "stale") if not why.startswith("status wrong")]
summary["wrong"] = wrong[:10]
print(json.dumps(summary))
sys.exit(bool(wrong))
