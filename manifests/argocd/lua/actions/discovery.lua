-- The actions that a batch/v1 CronJob has now. Their names are those of Argo CD's own, so that its access rules apply.
local annotations = obj.metadata.annotations or {}
local suspended = obj.spec.suspend == true
if suspended and annotations["cronjob-controller.dev/managed"] == "true" then
  suspended = annotations["cronjob-controller.dev/suspend"] == "true"
end

local actions = {}
actions["create-job"] = { ["displayName"] = "Create Job", ["iconClass"] = "fa fa-fw fa-plus" }
if suspended then
  actions["resume"] = { ["iconClass"] = "fa fa-fw fa-play" }
else
  actions["suspend"] = { ["iconClass"] = "fa fa-fw fa-pause" }
end
return actions
