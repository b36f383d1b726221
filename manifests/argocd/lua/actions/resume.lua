-- Resumes a batch/v1 CronJob. One that is handed over keeps spec.suspend, since without it the in-tree controller would run it.
local annotations = obj.metadata.annotations or {}
if annotations["cronjob-controller.dev/managed"] == "true" then
  annotations["cronjob-controller.dev/suspend"] = nil
else
  obj.spec.suspend = false
end
return obj
