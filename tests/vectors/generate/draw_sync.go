package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	jobutil "k8s.io/kubernetes/pkg/controller/job/util"
)

const namespace = "ns"

var faults = []fault{
	{Verb: "create", Code: 403, Reason: "Forbidden"},
	{Verb: "create", Code: 403, Reason: "Forbidden", Cause: "NamespaceTerminating"},
	{Verb: "create", Code: 422, Reason: "Invalid"},
	{Verb: "create", Code: 429, Reason: "TooManyRequests"},
	{Verb: "create", Code: 500, Reason: "InternalError"},
	{Verb: "delete", Code: 500, Reason: "InternalError"},
	{Verb: "get", Code: 500, Reason: "InternalError"},
	{Verb: "getCronJob", Code: 500, Reason: "InternalError"},
	{Verb: "updateStatus", Code: 404, Reason: "NotFound"},
	{Verb: "updateStatus", Code: 409, Reason: "Conflict"},
}

func (s source) sync(number int) *syncRow {
	t := s.times()
	cronJob := s.cronJob(number, t)
	row := &syncRow{
		Name:       fmt.Sprintf("sync-%d", number),
		Now:        t.now,
		JobsCached: []json.RawMessage{},
		JobsLive:   []json.RawMessage{},
		Faults:     []fault{},
	}
	add := func(job *batchv1.Job, active, unseen int) {
		if s.chance(active) {
			cronJob.Status.Active = append(cronJob.Status.Active, corev1.ObjectReference{
				Kind: "Job", Namespace: namespace, Name: job.Name, UID: job.UID, APIVersion: "batch/v1",
			})
		}
		text := encode(job)
		cached, live := !s.chance(unseen), !s.chance(7)
		if cached {
			row.JobsCached = append(row.JobsCached, text)
		}
		if live {
			row.JobsLive = append(row.JobsLive, text)
		}
	}
	for index := range s.IntN(7) {
		job := s.job(cronJob, index, t.now)
		active := 82
		if jobutil.IsJobFinished(job) {
			active = 34
		}
		add(job, active, 8)
	}
	// The Job of a slot that is due may exist already.
	if slot := t.evaluated.Next(t.now.Add(-time.Minute)); s.chance(10) && !slot.IsZero() && !slot.After(t.now) {
		job := s.job(cronJob, 50, t.now)
		job.Name = cronJob.Name + "-" + strconv.FormatInt(slot.Unix()/60, 10)
		add(job, 40, 40)
	}
	row.CronJobCached, row.CronJobLive = encode(cronJob), encode(cronJob)
	if s.chance(4) {
		row.CronJobLive = json.RawMessage("null")
	}
	if s.chance(20) {
		row.Faults = append(row.Faults, pick(s, faults))
	}
	return row
}

func (s source) cronJob(number int, t times) *batchv1.CronJob {
	cronJob := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{
			Name:              fmt.Sprintf("cj-%d", number),
			Namespace:         namespace,
			UID:               types.UID(fmt.Sprintf("cj-uid-%d", number)),
			ResourceVersion:   "100",
			CreationTimestamp: metav1.NewTime(t.creation),
		},
		Spec: batchv1.CronJobSpec{
			Schedule:                t.schedule,
			TimeZone:                t.timeZone,
			StartingDeadlineSeconds: t.deadline,
			ConcurrencyPolicy: pick(s, []batchv1.ConcurrencyPolicy{
				batchv1.AllowConcurrent, batchv1.ForbidConcurrent, batchv1.ReplaceConcurrent,
			}),
			Suspend:                    new(bool),
			SuccessfulJobsHistoryLimit: s.limit(3),
			FailedJobsHistoryLimit:     s.limit(2),
			JobTemplate:                template(),
		},
	}
	*cronJob.Spec.Suspend = s.chance(9)
	switch n := s.IntN(100); {
	case n < 3:
		cronJob.Spec.Schedule = "bad"
	case n < 7:
		cronJob.Spec.Schedule = "TZ=Asia/Tokyo " + t.schedule
	case n < 9:
		zone := "Nowhere/Land"
		cronJob.Spec.TimeZone = &zone
	}
	if s.chance(3) {
		cronJob.DeletionTimestamp = &metav1.Time{Time: t.now.Truncate(time.Second)}
		cronJob.Finalizers = []string{"x/y"}
	}
	if t.last != nil {
		cronJob.Status.LastScheduleTime = &metav1.Time{Time: *t.last}
	}
	if s.chance(19) {
		succeeded := t.now.Truncate(time.Second).Add(s.seconds(-7200, 2400))
		cronJob.Status.LastSuccessfulTime = &metav1.Time{Time: succeeded}
	}
	return cronJob
}

// limit returns a history limit, or none.
func (s source) limit(most int32) *int32 {
	if s.chance(17) {
		return nil
	}
	limit := s.Int32N(most + 1)
	return &limit
}

func template() batchv1.JobTemplateSpec {
	backoffLimit := int32(2)
	return batchv1.JobTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{"app": "x"},
			Annotations: map[string]string{"note": "y"},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit: &backoffLimit,
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
				Containers:    []corev1.Container{{Name: "c", Image: "busybox"}},
				RestartPolicy: corev1.RestartPolicyNever,
			}},
		},
	}
}

// job returns one of several Jobs, whose names and UIDs ascend with their index.
func (s source) job(cronJob *batchv1.CronJob, index int, now time.Time) *batchv1.Job {
	now = now.Truncate(time.Second)
	creation := now.Add(-s.seconds(50, 7200))
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:              fmt.Sprintf("%s-%d", cronJob.Name, creation.Unix()/60+int64(index)*100000),
			Namespace:         namespace,
			UID:               types.UID(fmt.Sprintf("job-uid-%d", index)),
			CreationTimestamp: metav1.NewTime(creation),
		},
	}
	owner := *metav1.NewControllerRef(cronJob, batchv1.SchemeGroupVersion.WithKind("CronJob"))
	switch n := s.IntN(100); {
	case n < 5:
		owner.Name = "other"
		fallthrough
	case n < 96:
		job.OwnerReferences = []metav1.OwnerReference{owner}
	}
	switch n := s.IntN(10); {
	case n < 6:
		job.Status.StartTime = &metav1.Time{Time: creation}
	case n < 9:
		// Ties are decided by name.
		job.Status.StartTime = &metav1.Time{Time: now.Add(-time.Hour)}
	}
	condition := func(kind batchv1.JobConditionType, status corev1.ConditionStatus) {
		job.Status.Conditions = []batchv1.JobCondition{{Type: kind, Status: status}}
	}
	switch n := s.IntN(100); {
	case n < 33:
		job.Status.Active = 1
	case n < 59:
		condition(batchv1.JobComplete, corev1.ConditionTrue)
		if s.chance(92) {
			job.Status.CompletionTime = &metav1.Time{Time: creation.Add(s.seconds(10, 3000))}
		}
	case n < 83:
		condition(batchv1.JobFailed, corev1.ConditionTrue)
	case n < 89:
		condition(batchv1.JobComplete, corev1.ConditionFalse)
	case n < 95:
		condition(batchv1.JobFailureTarget, corev1.ConditionTrue)
	default:
		condition(batchv1.JobSuspended, corev1.ConditionTrue)
	}
	return job
}
