// Package conformance runs upstream's end-to-end specs of CronJob, unchanged, against the cluster of a kubeconfig.
//
// Importing `test/e2e/apps` registers the specs of all of SIG Apps; `--ginkgo.focus` selects. Upstream's own main would
// add the specs of every other SIG and of the kubelet.
package conformance

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	_ "k8s.io/kubernetes/test/e2e/apps"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	// Dumps the namespace of a failed spec, and checks all nodes after each spec.
	_ "k8s.io/kubernetes/test/e2e/framework/debug/init"
	_ "k8s.io/kubernetes/test/e2e/framework/node/init"
)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestConformance(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	// The focus is matched against this name, too: it must not contain the focus.
	ginkgo.RunSpecs(t, "Upstream's end-to-end specs", suite, reporter)
}
