package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// counts holds the number of rows with a difference, by the field that differs; "" counts each row once.
type counts map[string]int

// add prints the fields whose values differ between two versions of one row.
func (c counts) add(place string, before, after []byte) {
	if bytes.Equal(before, after) {
		return
	}
	c[""]++
	was, is := fields(before), fields(after)
	names := maps.Clone(was)
	maps.Copy(names, is)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(was[name], is[name]) {
			c[name]++
			fmt.Printf("%s: %s\n  recorded %s\n  answered %s\n", place, name, was[name], is[name])
		}
	}
}

// report prints the totals of one file.
func (c counts) report(file string, rows int) error {
	fmt.Printf("%s: %d of %d rows differ", file, c[""], rows)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		if name != "" {
			fmt.Printf("; %s in %d", name, c[name])
		}
	}
	fmt.Println()
	if c[""] > 0 {
		return fmt.Errorf("%s: %w", file, errDifferences)
	}
	return nil
}

// fields returns the fields of a row, those of `expect` among them.
func fields(line []byte) map[string]json.RawMessage {
	var all map[string]json.RawMessage
	mustDecode(line, &all)
	var expect map[string]json.RawMessage
	if text, ok := all["expect"]; ok {
		mustDecode(text, &expect)
		delete(all, "expect")
	}
	maps.Copy(all, expect)
	return all
}

// mustDecode decodes what this program has encoded.
func mustDecode(text []byte, value any) {
	if err := json.Unmarshal(text, value); err != nil {
		panic(err)
	}
}
