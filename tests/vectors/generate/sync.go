package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	jobutil "k8s.io/kubernetes/pkg/controller/job/util"

	cronjob "cronjob-controller/tests/vectors/generate/upstream"
)

// syncRow holds the objects of a cache and of an API server, the server's faults, and the effects of one sync.
//
// The objects keep the JSON that they came with.
type syncRow struct {
	Name          string            `json:"name"`
	Now           time.Time         `json:"now"`
	CronJobCached json.RawMessage   `json:"cronJobCached"`
	CronJobLive   json.RawMessage   `json:"cronJobLive"`
	JobsCached    []json.RawMessage `json:"jobsCached"`
	JobsLive      []json.RawMessage `json:"jobsLive"`
	Faults        []fault           `json:"faults"`
	Expect        expect            `json:"expect"`
}

// fault is the answer to every request with a verb.
type fault struct {
	Verb   string `json:"verb"`
	Code   int32  `json:"code"`
	Reason string `json:"reason"`
	Cause  string `json:"cause,omitempty"`
}

type expect struct {
	Writes            []write `json:"writes"`
	Reads             []read  `json:"reads"`
	Events            []event `json:"events"`
	Result            string  `json:"result"`
	RequeueAfterNanos *int64  `json:"requeueAfterNanos,omitempty"`
}

type write struct {
	Verb   string          `json:"verb"`
	Name   string          `json:"name"`
	Status json.RawMessage `json:"status,omitempty"`
	Job    json.RawMessage `json:"job,omitempty"`
}

type read struct {
	Verb string `json:"verb"`
	Name string `json:"name"`
}

type event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// client sends nothing: the informers are filled by hand, and the controls are replaced.
var client = kubernetes.NewForConfigOrDie(&rest.Config{})

func (r *syncRow) answer() error {
	var cached batchv1.CronJob
	if err := json.Unmarshal(r.CronJobCached, &cached); err != nil {
		return fmt.Errorf("decoding cronJobCached: %w", err)
	}
	jobs, err := decodeJobs(r.JobsCached)
	if err != nil {
		return fmt.Errorf("decoding jobsCached: %w", err)
	}
	server, err := newServer(r)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	cronJobInformer := factory.Batch().V1().CronJobs()
	if err := cronJobInformer.Informer().GetIndexer().Add(&cached); err != nil {
		return err
	}
	jobInformer, err := newOrderedInformer(factory.Batch().V1().Jobs(), jobs)
	if err != nil {
		return err
	}
	// Holds the Events of any sync, since no goroutine reads them meanwhile.
	recorder := record.NewFakeRecorder(1000)
	environment := cronjob.Environment{
		Jobs:           jobInformer,
		CronJobs:       cronJobInformer,
		JobControl:     server,
		CronJobControl: server,
		Recorder:       recorder,
		Now:            r.Now,
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	after, syncErr := environment.Sync(ctx, cached.Namespace+"/"+cached.Name)
	r.Expect = expect{Writes: server.writes, Reads: server.reads, Events: events(recorder), Result: "done"}
	switch {
	case syncErr != nil:
		r.Expect.Result = "rateLimited"
	case after != nil:
		r.Expect.Result = "requeueAfter"
		nanos := int64(*after)
		r.Expect.RequeueAfterNanos = &nanos
	}
	return nil
}

// differs follows docs/divergences.md.
func (r *syncRow) differs() bool {
	var cached batchv1.CronJob
	mustDecode(r.CronJobCached, &cached)
	live, finished := map[string]bool{}, map[string]bool{}
	for _, text := range r.JobsLive {
		var job batchv1.Job
		mustDecode(text, &job)
		live[job.Name], finished[job.Name] = true, jobutil.IsJobFinished(&job)
	}
	var status json.RawMessage
	for _, w := range r.Expect.Writes {
		switch {
		// A deletion that finds no object is no failure here.
		case w.Verb == "delete" && !live[w.Name],
			// Upstream drops the key if the name is taken; here it waits for the next slot.
			w.Verb == "create" && r.Expect.Result == "done",
			// Upstream prunes the Job before the create, or counts it as active although it has finished.
			w.Verb == "create" && finished[w.Name]:
			return true
		}
		status = w.Status
	}
	// Replace finds no object.
	isMissing := func(e event) bool { return e.Reason == "FailedGet" && strings.HasSuffix(e.Message, "not found") }
	if slices.ContainsFunc(r.Expect.Events, isMissing) {
		return true
	}
	// An unchanged status is not written here, so its write cannot fail.
	if len(r.Faults) > 0 && r.Faults[0].Verb == "updateStatus" && bytes.Equal(status, encode(cached.Status)) {
		return true
	}
	return r.comparesNames(&cached) || missesNewest(&cached, r.Now)
}

// comparesNames says that the answers depend on the name in the controller reference of a Job with the CronJob's UID:
// until v1.37 (kubernetes/kubernetes#133313), upstream compares names only.
func (r *syncRow) comparesNames(cached *batchv1.CronJob) bool {
	named := *r
	named.JobsCached = slices.Clone(r.JobsCached)
	for i, text := range named.JobsCached {
		var job batchv1.Job
		mustDecode(text, &job)
		if controller := metav1.GetControllerOfNoCopy(&job); controller != nil && controller.UID == cached.UID {
			controller.Name = cached.Name
			named.JobsCached[i] = encode(job)
		}
	}
	return named.answer() != nil || !bytes.Equal(encode(named.Expect), encode(r.Expect))
}

func decodeJobs(texts []json.RawMessage) ([]*batchv1.Job, error) {
	var jobs []*batchv1.Job
	for _, text := range texts {
		job := new(batchv1.Job)
		if err := json.Unmarshal(text, job); err != nil {
			return nil, err
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// events takes the Events apart that the recorder has put together.
func events(recorder *record.FakeRecorder) []event {
	close(recorder.Events)
	all := []event{}
	for text := range recorder.Events {
		parts := strings.SplitN(text, " ", 3)
		all = append(all, event{Type: parts[0], Reason: parts[1], Message: parts[2]})
	}
	return all
}
