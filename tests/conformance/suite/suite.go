// Package suite runs the end-to-end specs that a test program has imported, against the cluster of its flags.
package suite

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
)

// Main is the TestMain of such a program: it reads upstream's flags first.
func Main(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

// Run is its only test.
func Run(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	// The focus is matched against this name, too: it must not contain the focus.
	ginkgo.RunSpecs(t, "Upstream's end-to-end specs", suite, reporter)
}
