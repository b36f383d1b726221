package main

import (
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// field is one field of a spec.
type field struct {
	low, high int
	// How often it is a star, in percent.
	stars int
	// The names of its values from `low` on.
	names []string
}

var fields5 = []field{
	{low: 0, high: 59, stars: 20},
	{low: 0, high: 23, stars: 40},
	{low: 1, high: 31, stars: 55},
	{low: 1, high: 12, stars: 62, names: strings.Fields("jan feb mar apr may jun jul aug sep oct nov dec")},
	{low: 0, high: 6, stars: 54, names: strings.Fields("sun mon tue wed thu fri sat")},
}

var descriptors = []string{
	"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@every 1us", "@every 100ms",
	"@every 1500ms", "@every 1s", "@every 90s", "@every 1m", "@every 7m", "@every 1h30m", "@every 2h45m10.7s",
	"@every 24h", "@every 36h0m1s",
}

func drawSchedules(r *rand.Rand) []*scheduleRow {
	s := source{r}
	var rows []*scheduleRow
	// The number of instants that `answer` asks for is that of `Next`.
	add := func(spec string, from time.Time, steps int) {
		rows = append(rows, &scheduleRow{Schedule: spec, From: from, Next: make([]*time.Time, steps)})
	}
	for _, spec := range edgeSpecs {
		add(spec, time.Date(2026, 1, 15, 10, 20, 30, 0, time.UTC), 3)
	}
	for _, spec := range leapDaySpecs {
		for _, from := range leapDayTimes {
			add(spec, from, 3)
		}
	}
	for range validSpecs {
		add(s.spec(), s.instant(), 4)
	}
	changes := map[string][]time.Time{}
	for _, zone := range zones {
		changes[zone] = transitions(zone)
	}
	for range transitionSpecs {
		zone := pick(s, zones)
		from := s.instant()
		if near := changes[zone]; len(near) > 0 {
			from = pick(s, near).Add(s.seconds(-48*3600, 4*3600))
		}
		add("TZ="+zone+" "+s.specAtNight(), from, 6)
	}
	for range mistypedSpecs {
		add(s.mistyped(s.spec()), s.instant(), 3)
	}
	return rows
}

// spec returns a valid spec.
func (s source) spec() string {
	var spec string
	if s.chance(14) {
		spec = pick(s, descriptors)
	} else {
		var parts []string
		for _, f := range fields5 {
			parts = append(parts, s.field(f))
		}
		spec = strings.Join(parts, pick(s, []string{" ", " ", " ", " ", "  "}))
	}
	switch n := s.IntN(100); {
	case n < 58:
		spec = "TZ=" + pick(s, zones) + " " + spec
	case n < 80:
		spec = "CRON_TZ=" + pick(s, zones) + " " + spec
	}
	return spec
}

func (s source) field(f field) string {
	if s.chance(f.stars) {
		return "*"
	}
	if !s.chance(30) {
		return s.part(f)
	}
	var parts []string
	for range s.between(2, 4) {
		parts = append(parts, s.part(f))
	}
	return strings.Join(parts, ",")
}

// part returns one part of a list.
func (s source) part(f field) string {
	low := s.between(f.low, f.high)
	high := s.between(low, f.high)
	step := "/" + strconv.Itoa(s.between(1, 20))
	switch s.IntN(9) {
	case 0, 1, 2:
		return s.value(f, low)
	case 3:
		return "?"
	case 4:
		return "*" + step
	case 5:
		return strconv.Itoa(low) + step
	case 6, 7:
		return s.value(f, low) + "-" + s.value(f, high)
	default:
		return s.value(f, low) + "-" + s.value(f, high) + step
	}
}

// value returns a number, or its name in some case.
func (s source) value(f field, number int) string {
	if f.names == nil || s.chance(50) {
		return strconv.Itoa(number)
	}
	name := f.names[number-f.low]
	switch s.IntN(3) {
	case 0:
		return strings.ToUpper(name)
	case 1:
		return strings.ToUpper(name[:1]) + name[1:]
	default:
		return name
	}
}

// specAtNight returns a spec with slots in the hours when clocks change.
func (s source) specAtNight() string {
	minute := pick(s, []string{"*", "15,45", "30", "*/20", "0", "59"})
	hour := pick(s, []string{"*", "0", "1", "2", "3", "4", "23", "0-3", "1-2", "2,3", "*/2"})
	day := pick(s, []string{"*", "*", "*", "1-14", "25-31"})
	return minute + " " + hour + " " + day + " * *"
}

// transitions returns the times, to the hour, from 2008 to 2037 at which a zone changes its offset.
func transitions(zone string) []time.Time {
	location, err := time.LoadLocation(zone)
	if err != nil {
		panic(err)
	}
	var all []time.Time
	t := time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC)
	_, offset := t.In(location).Zone()
	for ; t.Year() < 2038; t = t.Add(time.Hour) {
		if _, now := t.In(location).Zone(); now != offset {
			all = append(all, t)
			offset = now
		}
	}
	return all
}

// mistyped returns the spec with one to three characters changed, left out or put in.
func (s source) mistyped(spec string) string {
	const characters = "0123456789*/-,?@ =_ abcjzABCNTZ"
	for range s.between(1, 3) {
		at := s.IntN(len(spec))
		inserted := characters[s.IntN(len(characters))]
		switch s.IntN(3) {
		case 0:
			spec = spec[:at] + string(inserted) + spec[at:]
		case 1:
			spec = spec[:at] + string(inserted) + spec[at+1:]
		default:
			if len(spec) > 1 {
				spec = spec[:at] + spec[at+1:]
			}
		}
	}
	return spec
}
