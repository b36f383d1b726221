// Command kstatus says what Flux' libraries make of Kubernetes objects. Each line of its input has an object, and may have expressions
// of spec.healthCheckExprs; each line of its output is a status.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type input struct {
	Object      *unstructured.Unstructured        `json:"object"`
	Expressions *kustomize.HealthCheckExpressions `json:"expressions"`
}

func main() {
	inputs := bufio.NewScanner(os.Stdin)
	inputs.Buffer(nil, 1<<20)
	for inputs.Scan() {
		result, err := compute(inputs.Bytes())
		if err != nil {
			fmt.Fprintln(os.Stderr, "kstatus:", err)
			os.Exit(1)
		}
		fmt.Println(result.Status)
	}
}

func compute(line []byte) (*status.Result, error) {
	var input input
	if err := json.Unmarshal(line, &input); err != nil {
		return nil, err
	}
	if input.Expressions == nil {
		return status.Compute(input.Object)
	}
	evaluator, err := cel.NewStatusEvaluator(input.Expressions)
	if err != nil {
		return nil, err
	}
	return evaluator.Evaluate(context.Background(), input.Object)
}
