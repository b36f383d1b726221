// Command gorecord records what upstream's libraries make of the inputs of two files, which it reads and prints anew:
//
//	go run ./gorecord objects < ../../crates/apiserver/src/kinds/protobuf/recorded.jsonl
//	go run ./gorecord events < ../../src/events/correlator/upstream.jsonl
//
// Objects are encoded as JSON and as protobuf. Events are played through client-go's EventCorrelator, whose state follows
// as if the server had stored each.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	serializerjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/record"
	clocktesting "k8s.io/utils/clock/testing"
)

type object struct {
	JSON     json.RawMessage `json:"json"`
	Protobuf []byte          `json:"protobuf"`
}

type row struct {
	At      int64  `json:"at"`
	Object  string `json:"object"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Out     *out   `json:"out"`
}

// out is the Event that is written, with the time in its name.
type out struct {
	NamedAt int64  `json:"namedAt"`
	First   int64  `json:"first"`
	Last    int64  `json:"last"`
	Count   int32  `json:"count"`
	Message string `json:"message"`
}

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: gorecord objects|events"))
	}
	clock := clocktesting.NewFakePassiveClock(time.Time{})
	correlator := record.NewEventCorrelator(clock)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var answer any
		switch os.Args[1] {
		case "objects":
			answer = encoded(lines.Bytes())
		case "events":
			answer = correlated(correlator, clock, lines.Bytes())
		default:
			fail(fmt.Errorf("unknown file %q", os.Args[1]))
		}
		line := new(bytes.Buffer)
		encoder := json.NewEncoder(line)
		encoder.SetEscapeHTML(false)
		check(encoder.Encode(answer))
		fmt.Print(line)
	}
	check(lines.Err())
}

func encoded(line []byte) object {
	var recorded object
	check(json.Unmarshal(line, &recorded))
	typed, _, err := scheme.Codecs.UniversalDeserializer().Decode(recorded.JSON, nil, nil)
	check(err)
	options := serializerjson.SerializerOptions{}
	asJSON := serializerjson.NewSerializerWithOptions(serializerjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, options)
	text, err := runtime.Encode(asJSON, typed)
	check(err)
	message, err := runtime.Encode(protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), typed)
	check(err)
	return object{JSON: bytes.TrimSpace(text), Protobuf: message}
}

func correlated(correlator *record.EventCorrelator, clock *clocktesting.FakePassiveClock, line []byte) row {
	var played row
	check(json.Unmarshal(line, &played))
	now := time.UnixMilli(played.At)
	clock.SetTime(now)
	result, err := correlator.EventCorrelate(&corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: fmt.Sprintf("%s.%x", played.Object, now.UnixNano()), Namespace: "default"},
		InvolvedObject: corev1.ObjectReference{Kind: "CronJob", Namespace: "default", Name: played.Object},
		Reason:         played.Reason,
		Message:        played.Message,
		Source:         corev1.EventSource{Component: "cronjob-controller"},
		FirstTimestamp: metav1.NewTime(now),
		LastTimestamp:  metav1.NewTime(now),
		Count:          1,
		Type:           played.Type,
	})
	check(err)
	played.Out = nil
	if result.Skip {
		return played
	}
	event := result.Event
	correlator.UpdateState(event)
	nanos, err := strconv.ParseInt(event.Name[strings.LastIndex(event.Name, ".")+1:], 16, 64)
	check(err)
	played.Out = &out{
		NamedAt: time.Unix(0, nanos).UnixMilli(),
		First:   event.FirstTimestamp.UnixMilli(),
		Last:    event.LastTimestamp.UnixMilli(),
		Count:   event.Count,
		Message: event.Message,
	}
	return played
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gorecord:", err)
	os.Exit(1)
}
