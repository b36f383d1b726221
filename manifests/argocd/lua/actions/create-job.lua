-- Creates a Job of a batch/v1 CronJob, as kubectl create job --from and cronjob-controller trigger do.
local os = require("os")

-- Lua cannot tell an empty list from an empty object, so empty ones are left out. What follows one in a list moves up.
local function copy(value)
  if type(value) ~= "table" then
    return value
  end
  local result = {}
  for _, element in ipairs(value) do
    result[#result + 1] = copy(element)
  end
  for key, element in pairs(value) do
    if type(key) == "string" then
      result[key] = copy(element)
    end
  end
  if next(result) == nil then
    return nil
  end
  return result
end

-- Without a second argument: with one, Argo CD's os.date forgets the "!".
local now = os.date("!*t")
local function two(number)
  return (number < 10 and "0" or "") .. number
end
local template = obj.spec.jobTemplate
local metadata = template.metadata or {}
local job = { ["apiVersion"] = "batch/v1", ["kind"] = "Job", ["metadata"] = {}, ["spec"] = copy(template.spec) }
-- Ten digits: the Job of a slot has eight, so the name is never that of one. With 52 characters before them they are 63.
job.metadata.name = obj.metadata.name .. "-" .. two(now.month) .. two(now.day) .. two(now.hour) .. two(now.min) .. two(now.sec)
job.metadata.namespace = obj.metadata.namespace
local labels = copy(metadata.labels) or {}
-- A Job with this label counts as one of a backfill.
labels["cronjob-controller.dev/backfill"] = nil
job.metadata.labels = copy(labels)
job.metadata.annotations = copy(metadata.annotations) or {}
if job.metadata.annotations["cronjob.kubernetes.io/instantiate"] == nil then
  job.metadata.annotations["cronjob.kubernetes.io/instantiate"] = "manual"
end
job.metadata.ownerReferences = {
  {
    ["apiVersion"] = obj.apiVersion,
    ["kind"] = obj.kind,
    ["name"] = obj.metadata.name,
    ["uid"] = obj.metadata.uid,
    ["controller"] = true,
  },
}
if (obj.metadata.annotations or {})["cronjob-controller.dev/slot-in-pod"] == "true" then
  -- As for trigger, the time counts as the slot. Lua knows no zones, so it is in UTC.
  local date = now.year .. "-" .. two(now.month) .. "-" .. two(now.day)
  local time = date .. "T" .. two(now.hour) .. ":" .. two(now.min) .. ":" .. two(now.sec) .. "Z"
  local pods = job.spec.template
  pods.metadata = pods.metadata or {}
  pods.metadata.annotations = pods.metadata.annotations or {}
  for _, name in ipairs({ "batch.kubernetes.io/cronjob-scheduled-timestamp", "cronjob-controller.dev/due-time" }) do
    pods.metadata.annotations[name] = time
  end
end
return { { ["operation"] = "create", ["resource"] = job } }
