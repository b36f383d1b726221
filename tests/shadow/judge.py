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


writes, late, starts = 0, [], 0
for line in (directory / "audit.log").read_text().splitlines():
    event = json.loads(line)
    what = event["objectRef"]["resource"]
    # A review of rights or of a token changes nothing.
    if event["userAgent"].startswith("cronjob-controller/") and case != "ours" and "review" not in what:
        writes += 1
    name = event["objectRef"].get("name", "")
    if event["verb"] == "create" and what == "jobs" and event["responseStatus"]["code"] == 201 and name.rpartition("-")[2].isdigit():
        due = 60 * int(name.rpartition("-")[2])
        starts += due >= slot
        if due >= slot:
            late.append(seconds(event["stageTimestamp"]) - due)

size = (directory / "size").read_text().split()
summary = {
    "case": case,
    "cronJobs": sum(each["kind"] == "CronJob" for each in objects),
    "starts": starts,
    **{key: report[key] for key in ("slots", "same", "agreement", "notSeen", "open", "refused", "late", "own", "apart")},
    **{key: len(report[key]) for key in ("missed", "twice", "differs")},
    "audit": {"p50": round(quantile(late, 0.5), 3), "p99": round(quantile(late, 0.99), 3), "max": round(max(late, default=0), 3)},
    "writesOfTheShadow": writes,
    "kB": int(size[0]) if size else None,
    "cpu": size[1] if size else None,
}
wrong = ["the shadow wrote"] * (writes > 0)
found = [each["why"] for each in report["missed"] + report["twice"] + report["differs"]]
if case in ("fleet", "ours"):
    wrong += found
if case == "late":
    # An in-tree controller that is late with starts is late with statuses, too.
    wrong += [why for why in found if not why.startswith("status wrong")]
if case == "late":
    wrong += [f"{key} differs" for key in ("p50", "p99", "max") if abs(report["late"][key] - summary["audit"][key]) > 0.02]
if case == "killed":
    # What is wrong in the objects must be what the report names.
    children = {}
    for job in (each for each in objects if each["kind"] == "Job"):
        for owner in job["metadata"].get("ownerReferences", []):
            children.setdefault(owner["name"], []).append(job)
    stale = {
        each["metadata"]["name"]
        for each in objects
        if each["kind"] == "CronJob" and each["metadata"]["name"] in children and "lastScheduleTime" not in each.get("status", {})
    }
    named = {each["name"] for each in report["differs"] + report["missed"]}
    summary["staleStatuses"], summary["named"] = len(stale), len(named)
    wrong += [f"{name} is not named" for name in sorted(stale - named)[:5]]
summary["wrong"] = wrong[:10]
print(json.dumps(summary))
sys.exit(bool(wrong))
