// Command kstatus says what Flux' library makes of Kubernetes objects. Each line of its input is an object, and each line of its
// output a status.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func main() {
	objects := bufio.NewScanner(os.Stdin)
	objects.Buffer(nil, 1<<20)
	for objects.Scan() {
		var object unstructured.Unstructured
		result := &status.Result{}
		err := json.Unmarshal(objects.Bytes(), &object)
		if err == nil {
			result, err = status.Compute(&object)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "kstatus:", err)
			os.Exit(1)
		}
		fmt.Println(result.Status)
	}
}
