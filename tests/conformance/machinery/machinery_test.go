// Package machinery runs upstream's end-to-end specs of SIG API Machinery, unchanged, against the API server of a kubeconfig.
//
// Unlike those of SIG Apps they run without the check of all nodes after each spec: the API server may have no nodes.
package machinery

import (
	"testing"

	_ "k8s.io/kubernetes/test/e2e/apimachinery"

	"cronjob-controller/tests/conformance/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestMachinery(t *testing.T) { suite.Run(t) }
