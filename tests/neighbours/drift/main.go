// Command drift reconciles one object as Flux' kustomize-controller does, with its library and its options: it undoes what kubectl
// wrote, applies the object if a dry run shows a drift, and prints what it did. Its input is one JSON object: the
// object, and the rules of spec.ignore. KUBECONFIG names the API server.
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
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type input struct {
	Object *unstructured.Unstructured `json:"object"`
	Ignore []jsondiff.IgnoreRule      `json:"ignore"`
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
