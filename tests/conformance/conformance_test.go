// Package conformance runs upstream's end-to-end specs of CronJob, unchanged, against the cluster of a kubeconfig.
//
// Importing `test/e2e/apps` registers the specs of all of SIG Apps; `--ginkgo.focus` selects. Upstream's own main would
// add the specs of every other SIG and of the kubelet.
package conformance

import (
	"testing"

	_ "k8s.io/kubernetes/test/e2e/apps"
	// Dumps the namespace of a failed spec, and checks all nodes after each spec.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"

	"cronjob-controller/tests/conformance/suite"
)

func TestMain(m *testing.M) { suite.Main(m) }

func TestConformance(t *testing.T) { suite.Run(t) }
