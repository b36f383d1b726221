package main

import (
	"math/rand/v2"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/kubernetes/pkg/util/parsers"
)

const (
	validSpecs      = 1500
	transitionSpecs = 1500
	mistypedSpecs   = 600
	missedRows      = 1500
	syncRows        = 1200
)

// With and without daylight saving time, at every kind of offset.
var zones = []string{
	"Africa/Cairo", "Africa/Casablanca", "America/Havana", "America/New_York", "America/Nuuk", "America/Santiago",
	"America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll", "Asia/Beirut", "Asia/Gaza", "Asia/Kathmandu",
	"Asia/Kolkata", "Asia/Shanghai", "Asia/Tehran", "Asia/Tokyo", "Australia/Lord_Howe", "Etc/GMT+12", "Europe/Berlin",
	"Europe/Dublin", "Europe/London", "Pacific/Apia", "Pacific/Chatham", "Pacific/Kiritimati", "UTC",
}

// The schedules of the rows about CronJobs: even, uneven, rare, and one that never fires.
var schedules = []string{
	"* * * * *", "*/5 * * * *", "*/7 * * * *", "0 * * * *", "30 2 * * *", "0 0 * * 0", "0 0 1 * *", "0 0 29 2 *",
	"1 1 1 1 *", "59 23 31 2 *", "0 12 13 * 5", "0 3 */2 * *", "15,45 9-17 * * *", "30 6-16/4 * * 1-5", "@hourly",
	"@daily", "@every 10s", "@every 90s", "@every 1h30m",
}

var deadlines = []int64{0, 1, 5, 10, 30, 60, 100, 200, 3600, 100000}

// source draws inputs. Equal seeds give equal inputs.
type source struct{ *rand.Rand }

// chance is true in `percent` of a hundred cases.
func (s source) chance(percent int) bool { return s.IntN(100) < percent }

// between returns a number of the closed interval.
func (s source) between(low, high int) int { return low + s.IntN(high-low+1) }

func (s source) seconds(low, high int) time.Duration {
	return time.Duration(s.between(low, high)) * time.Second
}

func pick[T any](s source, all []T) T { return all[s.IntN(len(all))] }

// instant returns a time in the years 2024 to 2029, often at the start of a minute or an hour.
func (s source) instant() time.Time {
	t := time.Unix(s.Int64N(6*365*86400)+1704067200, 0).UTC()
	switch n := s.IntN(6); {
	case n == 0:
		t = t.Add(time.Duration(s.Int64N(int64(time.Second))))
	case n == 1:
		t = t.Truncate(time.Minute)
	case n == 2:
		t = t.Truncate(time.Hour)
	}
	return t
}

// age returns a duration of some seconds, minutes, hours, days, weeks or years.
func (s source) age() time.Duration {
	return s.seconds(1, pick(s, []int{60, 600, 7200, 86400, 7 * 86400, 60 * 86400, 1000 * 86400}))
}

// times is what decides about the slots of a CronJob.
type times struct {
	schedule  string
	timeZone  *string
	creation  time.Time
	last      *time.Time
	deadline  *int64
	now       time.Time
	evaluated cron.Schedule
}

func (s source) times() times {
	t := times{schedule: pick(s, schedules), now: s.instant()}
	if s.chance(33) {
		zone := pick(s, zones)
		t.timeZone = &zone
	}
	t.evaluated = parse(t.schedule, t.timeZone)
	t.creation = t.now.Truncate(time.Second)
	if s.chance(3) {
		t.creation = t.creation.Add(time.Hour)
	} else {
		t.creation = t.creation.Add(-s.age())
	}
	if s.chance(30) {
		// Nearly always a slot.
		last := t.now.Truncate(time.Second).Add(-s.age())
		if slot := t.evaluated.Next(last).UTC(); !slot.IsZero() && !slot.After(t.now) && s.chance(90) {
			last = slot
		}
		t.last = &last
	}
	if s.chance(32) {
		deadline := pick(s, deadlines)
		t.deadline = &deadline
	}
	return t
}

// parse panics on a schedule that is none, since all are listed above.
func parse(schedule string, timeZone *string) cron.Schedule {
	if timeZone != nil {
		schedule = "TZ=" + *timeZone + " " + schedule
	}
	parsed, err := parsers.ParseCronScheduleWithPanicRecovery(schedule)
	if err != nil {
		panic(err)
	}
	return parsed
}

func drawMissed(r *rand.Rand) []*missedRow {
	s := source{r}
	var rows []*missedRow
	for range missedRows {
		t := s.times()
		rows = append(rows, &missedRow{
			Schedule:                t.schedule,
			TimeZone:                t.timeZone,
			CreationTimestamp:       t.creation,
			LastScheduleTime:        t.last,
			StartingDeadlineSeconds: t.deadline,
			Now:                     t.now,
		})
	}
	return rows
}

func drawSyncs(r *rand.Rand) []*syncRow {
	s := source{r}
	var rows []*syncRow
	for number := range syncRows {
		rows = append(rows, s.sync(number+1))
	}
	return rows
}
