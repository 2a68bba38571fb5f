package codeindex_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/redact"
)

// BenchmarkRun reads and cuts Go's standard library, without a log: what indexing costs before events are published.
func BenchmarkRun(b *testing.B) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(b, err)
	defer mnemetest.ReportCPU(b)()
	for b.Loop() {
		report, err := codeindex.Run(b.Context(), codeindex.Options{
			Root: filepath.Join(strings.TrimSpace(string(root)), "src"), Project: "go", Tenant: "t", DryRun: true,
			State: filepath.Join(b.TempDir(), "state"), Redact: redact.Default(),
		})
		require.NoError(b, err)
		b.ReportMetric(float64(report.Indexed), "files/op")
	}
}
