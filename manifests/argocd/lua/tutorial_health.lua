-- The health of a CronJob of batch.tutorial.kubebuilder.io, whose status has conditions.
local conditions = {}
for _, condition in ipairs((obj.status or {}).conditions or {}) do
  conditions[condition.type] = condition
end
local available = conditions["Available"] or {}
local degraded = conditions["Degraded"] or {}

hs = {}
hs.status = "Healthy"
hs.message = available.message or "The controller has not seen it yet."
if available.reason == "UnparseableSchedule" or available.reason == "InvalidPolicy" then
  hs.status = "Degraded"
elseif available.reason ~= "Suspended" and degraded.status == "True" then
  hs.status = "Degraded"
  hs.message = degraded.message
end
return hs
