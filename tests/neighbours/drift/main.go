// Command drift reconciles one object as Flux' controllers do, with their library and their options, and prints what it did. As
// kustomize-controller, it undoes what kubectl wrote, and applies the object if a dry run shows a drift. As helm-controller, it
// corrects the drift of a release whose chart has the object. Its input is one JSON object: the object, the rules of spec.ignore or
// spec.driftDetection.ignore, and whether it is of a chart. KUBECONFIG names the API server.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/jsondiff"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type input struct {
	Object *unstructured.Unstructured `json:"object"`
	Ignore []jsondiff.IgnoreRule      `json:"ignore"`
	Helm   bool                       `json:"helm"`
}

func main() {
	if err := reconcile(); err != nil {
		fmt.Fprintln(os.Stderr, "drift:", err)
		os.Exit(1)
	}
}

func reconcile() error {
	var input input
	if err := json.NewDecoder(os.Stdin).Decode(&input); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	connection, err := client.New(config, client.Options{})
	if err != nil {
		return err
	}
	if input.Helm {
		action, err := correctDrift(connection, input)
		if err == nil {
			fmt.Println(action)
		}
		return err
	}
	const controller, group = "kustomize-controller", "kustomize.toolkit.fluxcd.io"
	manager := ssa.NewResourceManager(connection, nil, ssa.Owner{Field: controller, Group: group})
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{group + "/ssa": "Ignore"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	update := metav1.ManagedFieldsOperationUpdate
	options.Cleanup = ssa.ApplyCleanupOptions{
		Annotations: []string{"kubectl.kubernetes.io/last-applied-configuration"},
		FieldManagers: []ssa.FieldManager{
			{Name: "kubectl", OperationType: metav1.ManagedFieldsOperationApply},
			{Name: "kubectl", OperationType: update},
			{Name: "before-first-apply", OperationType: update},
			{Name: controller, OperationType: update},
		},
		Exclusions: map[string]string{group + "/ssa": "Merge"},
	}
	options.DriftIgnoreRules = input.Ignore
	change, err := manager.Apply(context.Background(), input.Object, options)
	if err != nil {
		return err
	}
	fmt.Println(change.Action)
	return nil
}

// correctDrift does to an object of a chart what helm-controller does to that of a release with drift detection.
func correctDrift(connection client.Client, input input) (ssa.Action, error) {
	const owner = client.FieldOwner("helm-controller")
	ctx := context.Background()
	// The selectors of the rules see the object of the chart.
	options := []jsondiff.ListOption{
		jsondiff.FieldOwner(owner), jsondiff.Rationalize(true), jsondiff.Graceful(true), jsondiff.IgnoreRules(input.Ignore),
	}
	set, err := jsondiff.UnstructuredList(ctx, connection, []*unstructured.Unstructured{input.Object}, options...)
	if err != nil {
		return "", err
	}
	switch diff := set[0]; diff.Type {
	case jsondiff.DiffTypeCreate:
		return ssa.CreatedAction, connection.Create(ctx, input.Object, owner)
	case jsondiff.DiffTypeUpdate:
		data, err := json.Marshal(diff.Patch)
		if err != nil {
			return "", err
		}
		return ssa.ConfiguredAction, connection.Patch(ctx, input.Object, client.RawPatch(types.JSONPatchType, data), owner)
	case jsondiff.DiffTypeNone:
		return ssa.UnchangedAction, nil
	default:
		return "", fmt.Errorf("a difference of type %s", diff.Type)
	}
}
