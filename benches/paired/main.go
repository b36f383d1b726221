// The Go half of the paired benches: measures robfig/cron and client-go's work queue on this machine.
//
// It works on request, so that both halves can take turns: every line on standard input requests one run, and one line
// on standard output answers it.
//
//	{"next":[{"schedule":"* * * * *","from":"2026-01-01T00:00:00Z"}],"nanos":20000}
//	[501.2]
//
// "next" gives nanoseconds for one Next of each schedule, parsed beforehand, and repeated for "nanos" at the least;
// "queue" gives those for a hundred times add, get and done, as in client-go's BenchmarkQueue, that many times over. With a
// "name" the queue keeps its metrics, as every queue of kube-controller-manager does.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
	_ "time/tzdata"

	"github.com/robfig/cron/v3"
	"k8s.io/client-go/util/workqueue"
	// Gives workqueue.SetProvider the same metrics as kube-controller-manager does.
	_ "k8s.io/component-base/metrics/prometheus/workqueue"
)

type request struct {
	Next  []vector `json:"next"`
	Nanos int64    `json:"nanos"`
	Queue int      `json:"queue"`
	Name  string   `json:"name"`
}

type vector struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
}

// sink keeps the compiler from removing the measured code.
var sink time.Time

func main() {
	time.Local = time.UTC
	in := bufio.NewReader(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked request
		if err := json.Unmarshal(line, &asked); err != nil {
			log.Fatalf("reading a request: %v", err)
		}
		answer := make([]float64, 0, len(asked.Next)+1)
		for _, v := range asked.Next {
			answer = append(answer, next(v, asked.Nanos))
		}
		if asked.Queue > 0 {
			answer = append(answer, queue(asked.Queue, asked.Name))
		}
		if err := out.Encode(answer); err != nil {
			log.Fatalf("writing an answer: %v", err)
		}
	}
}

func next(v vector, nanos int64) float64 {
	schedule, err := cron.ParseStandard(v.Schedule)
	if err != nil {
		log.Fatalf("parsing %q: %v", v.Schedule, err)
	}
	from := v.From.UTC()
	for count := 1; ; count *= 4 {
		start := time.Now()
		for range count {
			sink = schedule.Next(from)
		}
		if took := time.Since(start).Nanoseconds(); took >= nanos {
			return float64(took) / float64(count)
		}
	}
}

func queue(times int, name string) float64 {
	keys := make([]string, 100)
	for i := range keys {
		keys[i] = fmt.Sprintf("key-%d", i)
	}
	var took time.Duration
	for range times {
		q := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[string]{Name: name})
		start := time.Now()
		for _, key := range keys {
			q.Add(key)
			key, _ := q.Get()
			q.Done(key)
		}
		took += time.Since(start)
		q.ShutDown()
	}
	return float64(took.Nanoseconds()) / float64(times)
}
