package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubernetes/pkg/util/parsers"

	cronjob "cronjob-controller/tests/vectors/generate/upstream"
)

// scheduleRow holds a spec and an instant, and the answers of robfig's parser and of its Next.
type scheduleRow struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
	// Each result of Next from the one before it, and null for the zero time, which ends the sequence.
	Next          []*time.Time `json:"next,omitempty"`
	Error         string       `json:"error,omitempty"`
	UpstreamHangs bool         `json:"upstreamHangs,omitempty"`
}

// A call of Next takes microseconds; one that takes this long does not end.
const hang = 5 * time.Second

// answer asks for as many instants as the row had, or for three.
func (r *scheduleRow) answer() error {
	steps := len(r.Next)
	if steps == 0 {
		steps = 3
	}
	r.Next, r.Error, r.UpstreamHangs = nil, "", false
	schedule, err := parsers.ParseCronScheduleWithPanicRecovery(r.Schedule)
	if err != nil {
		r.Error = err.Error()
		return nil
	}
	// Nothing can end a goroutine from outside: one that hangs runs until the process ends.
	answers := make(chan []*time.Time, 1)
	go func() { answers <- sequence(schedule, r.From, steps) }()
	select {
	case r.Next = <-answers:
	case <-time.After(hang):
		r.UpstreamHangs = true
	}
	return nil
}

func (r *scheduleRow) differs() bool { return false }

func sequence(schedule cron.Schedule, t time.Time, steps int) []*time.Time {
	var results []*time.Time
	for range steps {
		next := schedule.Next(t).UTC()
		if next.IsZero() {
			return append(results, nil)
		}
		results = append(results, &next)
		t = next
	}
	return results
}

// missedRow holds a CronJob's times and the current time, and the answers of nextScheduleTime and
// nextScheduleTimeDuration.
type missedRow struct {
	Schedule                string     `json:"schedule"`
	TimeZone                *string    `json:"timeZone"`
	CreationTimestamp       time.Time  `json:"creationTimestamp"`
	LastScheduleTime        *time.Time `json:"lastScheduleTime"`
	StartingDeadlineSeconds *int64     `json:"startingDeadlineSeconds"`
	Now                     time.Time  `json:"now"`
	NextScheduleTime        *time.Time `json:"nextScheduleTime"`
	Missed                  string     `json:"missed"`
	Error                   string     `json:"error,omitempty"`
	RequeueAfterNanos       int64      `json:"requeueAfterNanos"`
}

func (r *missedRow) cronJob() *batchv1.CronJob {
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(r.CreationTimestamp)},
		Spec: batchv1.CronJobSpec{
			Schedule:                r.Schedule,
			TimeZone:                r.TimeZone,
			StartingDeadlineSeconds: r.StartingDeadlineSeconds,
		},
	}
	if r.LastScheduleTime != nil {
		cronJob.Status.LastScheduleTime = &metav1.Time{Time: *r.LastScheduleTime}
	}
	return cronJob
}

func (r *missedRow) answer() error {
	cronJob := r.cronJob()
	schedule, err := parsers.ParseCronScheduleWithPanicRecovery(cronjob.FormatSchedule(cronJob))
	if err != nil {
		return fmt.Errorf("parsing the schedule: %w", err)
	}
	slot, missed, err := cronjob.NextScheduleTime(cronJob, r.Now, schedule)
	r.NextScheduleTime, r.Missed, r.Error = nil, missed, ""
	if slot != nil {
		utc := slot.UTC()
		r.NextScheduleTime = &utc
	}
	if err != nil {
		r.Error = err.Error()
	}
	r.RequeueAfterNanos = int64(cronjob.RequeueAfter(cronJob, r.Now, schedule))
	return nil
}

func (r *missedRow) differs() bool {
	return missesNewest(r.cronJob(), r.Now)
}

// missesNewest says that upstream estimates the newest due slot of an uneven schedule and misses it. This controller
// computes it.
func missesNewest(cronJob *batchv1.CronJob, now time.Time) bool {
	schedule, err := parsers.ParseCronScheduleWithPanicRecovery(cronjob.FormatSchedule(cronJob))
	// Schedules with @every are even, and their slots depend on where the search starts.
	if err != nil || strings.Contains(cronJob.Spec.Schedule, "@every") {
		return false
	}
	earliest := cronJob.CreationTimestamp.Time
	if cronJob.Status.LastScheduleTime != nil {
		earliest = cronJob.Status.LastScheduleTime.Time
	}
	unlimited := cronJob.DeepCopy()
	unlimited.Spec.StartingDeadlineSeconds = nil
	for _, c := range []*batchv1.CronJob{unlimited, cronJob} {
		if deadline := c.Spec.StartingDeadlineSeconds; deadline != nil {
			if limit := now.Add(-time.Duration(*deadline) * time.Second); limit.After(earliest) {
				earliest = limit
			}
		}
		slot, _, err := cronjob.NextScheduleTime(c, now, schedule)
		newest := newestSlot(schedule, earliest, now)
		if err == nil && (slot == nil) != newest.IsZero() || slot != nil && !slot.Equal(newest) {
			return true
		}
	}
	return false
}

// newestSlot returns the newest slot after `earliest` that is due, or the zero time.
func newestSlot(schedule cron.Schedule, earliest, now time.Time) time.Time {
	// Looks back further and further, so that it is quick for frequent schedules.
	for back := time.Minute; ; back *= 2 {
		from := now.Add(-back)
		if from.Before(earliest) {
			from = earliest
		}
		var newest time.Time
		for t := schedule.Next(from); !t.IsZero() && !t.After(now); t = schedule.Next(t) {
			newest = t
		}
		if !newest.IsZero() || from.Equal(earliest) {
			return newest
		}
	}
}
