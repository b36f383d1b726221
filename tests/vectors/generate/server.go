package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchv1informers "k8s.io/client-go/informers/batch/v1"
	batchv1listers "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"
)

// server is the API server of one row, behind both of upstream's controls. It records what it is asked.
//
// It has one namespace and ignores which one is asked for: until v1.37 (kubernetes/kubernetes#136920), upstream reads a
// Job that exists already in the empty namespace.
type server struct {
	cronJob *batchv1.CronJob
	jobs    map[string]*batchv1.Job
	faults  []fault
	writes  []write
	reads   []read
}

func newServer(r *syncRow) (*server, error) {
	s := &server{
		jobs:   map[string]*batchv1.Job{},
		faults: r.Faults,
		writes: []write{},
		reads:  []read{},
	}
	// It stays nil for null.
	if err := json.Unmarshal(r.CronJobLive, &s.cronJob); err != nil {
		return nil, fmt.Errorf("decoding cronJobLive: %w", err)
	}
	jobs, err := decodeJobs(r.JobsLive)
	if err != nil {
		return nil, fmt.Errorf("decoding jobsLive: %w", err)
	}
	for _, job := range jobs {
		s.jobs[job.Name] = job
	}
	return s, nil
}

// fault returns the injected answer to a verb, if there is one.
func (s *server) fault(verb string) error {
	index := slices.IndexFunc(s.faults, func(f fault) bool { return f.Verb == verb })
	if index < 0 {
		return nil
	}
	f := s.faults[index]
	status := metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    f.Code,
		Reason:  metav1.StatusReason(f.Reason),
		Message: "injected " + f.Reason,
	}
	if f.Cause != "" {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseType(f.Cause)}}}
	}
	return &apierrors.StatusError{ErrStatus: status}
}

func (s *server) GetJob(_, name string) (*batchv1.Job, error) {
	s.reads = append(s.reads, read{Verb: "get", Name: name})
	if err := s.fault("get"); err != nil {
		return nil, err
	}
	if job, ok := s.jobs[name]; ok {
		return job.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(batchv1.Resource("jobs"), name)
}

func (s *server) CreateJob(namespace string, job *batchv1.Job) (*batchv1.Job, error) {
	s.writes = append(s.writes, write{Verb: "create", Name: job.Name, Job: encode(job)})
	if err := s.fault("create"); err != nil {
		return nil, err
	}
	if s.jobs[job.Name] != nil {
		return nil, apierrors.NewAlreadyExists(batchv1.Resource("jobs"), job.Name)
	}
	created := job.DeepCopy()
	created.Namespace, created.UID, created.ResourceVersion = namespace, "created-uid", "200"
	s.jobs[job.Name] = created
	return created.DeepCopy(), nil
}

func (s *server) DeleteJob(_, name string) error {
	s.writes = append(s.writes, write{Verb: "delete", Name: name})
	if err := s.fault("delete"); err != nil {
		return err
	}
	if s.jobs[name] == nil {
		return apierrors.NewNotFound(batchv1.Resource("jobs"), name)
	}
	delete(s.jobs, name)
	return nil
}

func (s *server) GetCronJob(_ context.Context, _, name string) (*batchv1.CronJob, error) {
	s.reads = append(s.reads, read{Verb: "getCronJob", Name: name})
	if err := s.fault("getCronJob"); err != nil {
		return nil, err
	}
	if s.cronJob == nil {
		return nil, apierrors.NewNotFound(batchv1.Resource("cronjobs"), name)
	}
	return s.cronJob.DeepCopy(), nil
}

func (s *server) UpdateStatus(_ context.Context, cronJob *batchv1.CronJob) (*batchv1.CronJob, error) {
	s.writes = append(s.writes, write{Verb: "updateStatus", Name: cronJob.Name, Status: encode(cronJob.Status)})
	return cronJob, s.fault("updateStatus")
}

// orderedInformer lists Jobs in their order in the row, where a real store has none.
type orderedInformer struct {
	batchv1informers.JobInformer
	order map[types.UID]int
}

type orderedSharedInformer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

type orderedIndexer struct {
	cache.Indexer
	order map[types.UID]int
}

func newOrderedInformer(informer batchv1informers.JobInformer, jobs []*batchv1.Job) (orderedInformer, error) {
	ordered := orderedInformer{JobInformer: informer, order: map[types.UID]int{}}
	for index, job := range jobs {
		ordered.order[job.UID] = index
		if err := informer.Informer().GetIndexer().Add(job); err != nil {
			return ordered, err
		}
	}
	return ordered, nil
}

func (i orderedInformer) Informer() cache.SharedIndexInformer {
	informer := i.JobInformer.Informer()
	return orderedSharedInformer{informer, orderedIndexer{informer.GetIndexer(), i.order}}
}

func (i orderedInformer) Lister() batchv1listers.JobLister {
	return batchv1listers.NewJobLister(i.Informer().GetIndexer())
}

func (i orderedSharedInformer) GetIndexer() cache.Indexer { return i.indexer }

func (i orderedIndexer) Index(name string, object any) ([]any, error) {
	objects, err := i.Indexer.Index(name, object)
	return i.sorted(objects), err
}

func (i orderedIndexer) ByIndex(name, value string) ([]any, error) {
	objects, err := i.Indexer.ByIndex(name, value)
	return i.sorted(objects), err
}

func (i orderedIndexer) sorted(objects []any) []any {
	place := func(object any) int { return i.order[object.(*batchv1.Job).UID] }
	slices.SortFunc(objects, func(a, b any) int { return cmp.Compare(place(a), place(b)) })
	return objects
}
