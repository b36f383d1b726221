-- The health of a batch/v1 CronJob. Argo CD calls this with the object in the global obj, and no clock: what it says changes only
-- with the object.
local annotations = obj.metadata.annotations or {}
local status = obj.status or {}
local managed = annotations["cronjob-controller.dev/managed"] == "true"
local handed_over = managed and obj.spec.suspend == true
local suspended = obj.spec.suspend == true
local suspended_by = "spec.suspend"
if handed_over then
  suspended_by = "cronjob-controller.dev/suspend"
  suspended = annotations[suspended_by] == "true"
end
local failed = annotations["cronjob-controller.dev/last-failure"]
local next_run = annotations["cronjob-controller.dev/next-run"]
local started = status.lastScheduleTime
local succeeded = status.lastSuccessfulTime
local running = #(status.active or {})

-- Every time is RFC 3339 in UTC without fractions, so the texts are in the order of the times.
local function after(a, b)
  return a ~= nil and (b == nil or a > b)
end

hs = {}
hs.status = "Healthy"
if suspended then
  -- A Suspended resource would make its whole Application Suspended.
  hs.message = "Suspended (" .. suspended_by .. "): no further run starts."
elseif after(failed, succeeded) then
  hs.status = "Degraded"
  hs.message = "The last Job that ended failed at " .. failed .. "."
elseif running == 0 and succeeded ~= nil and after(started, succeeded) then
  hs.status = "Degraded"
  hs.message = "The run of " .. started .. " did not succeed."
elseif running == 0 and succeeded == nil and started ~= nil then
  hs.message = "No run is known to have succeeded."
elseif succeeded ~= nil then
  hs.message = "The last Job that succeeded ended at " .. succeeded .. "."
elseif running == 0 then
  hs.message = "It has not run yet."
else
  hs.message = "No Job has ended yet."
end
if hs.status == "Degraded" and succeeded ~= nil then
  hs.message = hs.message .. " The last success was at " .. succeeded .. "."
end
if running > 0 then
  hs.message = hs.message .. " Running: " .. running .. "."
end
-- Once another controller runs it, the annotation stays behind.
if not suspended and managed == handed_over and after(next_run, started) then
  hs.message = hs.message .. " Next run: " .. next_run .. "."
end
if managed and not handed_over then
  hs.message = hs.message .. " It is not handed over, because spec.suspend is not true."
end
return hs
