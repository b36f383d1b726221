// Command generate records the answers of upstream's CronJob controller, in the files and formats of tests/vectors.
//
// The inputs are drawn from --seed, or read from the files in --inputs. The answers are written to --output. With
// --compare they are compared with the answers in --inputs: each difference is printed, and the exit code is 1 if there
// are any.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

type options struct {
	seed           uint64
	inputs, output string
	compare        bool
}

// A row is one line of a file: inputs and answers.
type row interface {
	// answer sets the answers to those of upstream.
	answer() error
	// differs says that this controller is meant to answer differently, so that no test can compare the answers.
	differs() bool
}

var errDifferences = errors.New("the answers differ")

func main() {
	var o options
	flag.Uint64Var(&o.seed, "seed", 1, "the seed of the inputs")
	flag.StringVar(&o.inputs, "inputs", "", "the directory with files whose inputs are taken; they are drawn without it")
	flag.StringVar(&o.output, "output", "", "the directory that the files are written to")
	flag.BoolVar(&o.compare, "compare", false, "print where the answers differ from those in --inputs")
	flag.Parse()

	// The vectors are those of a process in UTC.
	time.Local = time.UTC
	klog.SetLogger(logr.Discard())
	if err := run(o); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if flag.NArg() > 0 || (o.output == "") != o.compare || (o.compare && o.inputs == "") {
		return errors.New("usage: generate --seed N|--inputs DIR --output DIR, or generate --inputs DIR --compare")
	}
	err := errors.Join(
		handle(o, "schedule.jsonl", drawSchedules),
		handle(o, "missed.jsonl", drawMissed),
		handle(o, "sync.jsonl", drawSyncs),
	)
	return err
}

// handle makes or compares one file.
func handle[R any, P interface {
	*R
	row
}](o options, file string, draw func(*rand.Rand) []*R) error {
	var rows []*R
	if o.inputs == "" {
		rows = draw(rand.New(rand.NewPCG(o.seed, 0)))
	} else {
		var err error
		if rows, err = readRows[R](filepath.Join(o.inputs, file)); err != nil {
			return err
		}
	}
	var lines bytes.Buffer
	differences, count := counts{}, 0
	for index, r := range rows {
		before := line(r)
		if err := P(r).answer(); err != nil {
			return fmt.Errorf("%s:%d: %w", file, index+1, err)
		}
		if o.inputs == "" && P(r).differs() {
			continue
		}
		count++
		after := line(r)
		lines.Write(after)
		if o.compare {
			differences.add(fmt.Sprintf("%s:%d", file, index+1), before, after)
		}
	}
	if o.compare {
		return differences.report(file, count)
	}
	fmt.Printf("%s: %d rows\n", file, count)
	return writeFile(o.output, file, lines.Bytes())
}

func readRows[R any](path string) ([]*R, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.DisallowUnknownFields()
	var rows []*R
	for {
		r := new(R)
		if err := decoder.Decode(r); err == io.EOF {
			return rows, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(rows)+1, err)
		}
		rows = append(rows, r)
	}
}

func writeFile(directory, file string, content []byte) error {
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, file), content, 0o644)
}

// line returns the row as the file has it.
func line(row any) []byte {
	return append(encode(row), '\n')
}

// encode panics on what no JSON can hold, which no row has.
func encode(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}
