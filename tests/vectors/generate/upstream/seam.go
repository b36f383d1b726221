// Package cronjob exports what the generator calls of upstream's package.
//
// The other files of the package are those of k8s.io/kubernetes/pkg/controller/cronjob. `run` adds them from the module
// cache by an overlay, and none is stored here.
package cronjob

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	batchv1informers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

type (
	// JobControl reads and writes Jobs.
	JobControl = jobControlInterface
	// CronJobControl reads CronJobs and writes their status.
	CronJobControl = cjControlInterface
)

// Environment is everything that a sync depends on.
type Environment struct {
	Jobs           batchv1informers.JobInformer
	CronJobs       batchv1informers.CronJobInformer
	JobControl     JobControl
	CronJobControl CronJobControl
	Recorder       record.EventRecorder
	Now            time.Time
}

// Sync runs one sync of a CronJob in a new controller. It panics if no controller can be made.
func (e Environment) Sync(ctx context.Context, key string) (*time.Duration, error) {
	controller, err := NewControllerV2(ctx, e.Jobs, e.CronJobs, nil)
	if err != nil {
		panic(err)
	}
	defer controller.queue.ShutDown()
	defer controller.broadcaster.Shutdown()
	controller.jobControl = e.JobControl
	controller.cronJobControl = e.CronJobControl
	controller.recorder = e.Recorder
	controller.now = func() time.Time { return e.Now }
	return controller.sync(ctx, key)
}

// FormatSchedule returns the spec that the parser gets.
func FormatSchedule(cronJob *batchv1.CronJob) string {
	return formatSchedule(cronJob, nil)
}

// NextScheduleTime returns the slot to start, if any, and whether none, few or many were missed.
func NextScheduleTime(cronJob *batchv1.CronJob, now time.Time, schedule cron.Schedule) (*time.Time, string, error) {
	_, _, missed, _ := mostRecentScheduleTime(cronJob, now, schedule, true)
	slot, err := nextScheduleTime(klog.Background(), cronJob, now, schedule, &record.FakeRecorder{})
	return slot, missed.String(), err
}

// RequeueAfter returns the delay until the next slot.
func RequeueAfter(cronJob *batchv1.CronJob, now time.Time, schedule cron.Schedule) time.Duration {
	return *nextScheduleTimeDuration(cronJob, now, schedule)
}
