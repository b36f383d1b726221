// Command dialects asks robfig/cron, which Kubernetes uses, and go-cron, which kube-state-metrics uses, for the next time of
// schedules. Each line of its input has schedule and from, and each line of its output robfig and goCron: a time in UTC, "never", or
// "error: " and the first words of one.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	gocron "github.com/netresearch/go-cron"
	robfig "github.com/robfig/cron/v3"
)

type row struct {
	Schedule string    `json:"schedule"`
	From     time.Time `json:"from"`
}

type schedule interface{ Next(time.Time) time.Time }

func main() {
	rows := bufio.NewScanner(os.Stdin)
	rows.Buffer(nil, 1<<20)
	for rows.Scan() {
		var row row
		if err := json.Unmarshal(rows.Bytes(), &row); err != nil {
			fmt.Fprintln(os.Stderr, "dialects:", err)
			os.Exit(1)
		}
		// An interface that holds a nil pointer is not nil, so errors are looked at first.
		first, firstErr := robfig.ParseStandard(row.Schedule)
		second, secondErr := gocron.ParseStandard(row.Schedule)
		line, err := json.Marshal(map[string]string{
			"robfig": next(first, firstErr, row.From),
			"goCron": next(second, secondErr, row.From),
		})
		if err != nil {
			fmt.Fprintln(os.Stderr, "dialects:", err)
			os.Exit(1)
		}
		fmt.Println(string(line))
	}
}

func next(schedule schedule, err error, from time.Time) string {
	if err != nil {
		return "error: " + err.Error()
	}
	at := schedule.Next(from)
	if at.IsZero() {
		return "never"
	}
	return at.UTC().Format(time.RFC3339)
}
