// Command goyaml records which JSON kubectl makes of YAML documents. It reads the lines of a file and prints them anew:
//
//	go run ./goyaml < ../../src/dev/manifests/yaml/recorded.jsonl
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/yaml"
)

type row struct {
	YAML string `json:"yaml"`
	// Without it there is no value.
	JSON json.RawMessage `json:"json,omitempty"`
	// Why there is none.
	Error string `json:"error,omitempty"`
}

func run(in io.Reader, out io.Writer) error {
	decoder, encoder := json.NewDecoder(in), json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for {
		var given row
		if err := decoder.Decode(&given); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a row: %w", err)
		}
		found := row{YAML: given.YAML}
		value, err := yaml.YAMLToJSON([]byte(given.YAML))
		if err != nil {
			found.Error = err.Error()
		} else {
			found.JSON = value
		}
		if err := encoder.Encode(found); err != nil {
			return fmt.Errorf("write a row: %w", err)
		}
	}
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	err := run(os.Stdin, out)
	if err == nil {
		err = out.Flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goyaml:", err)
		os.Exit(1)
	}
}
