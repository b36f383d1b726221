-- Suspends a batch/v1 CronJob by what its controller reads. spec.suspend alone would hand over one that has the annotation managed,
-- and so start its Jobs.
local annotations = obj.metadata.annotations or {}
if annotations["cronjob-controller.dev/managed"] == "true" then
  annotations["cronjob-controller.dev/suspend"] = "true"
end
obj.spec.suspend = true
return obj
