package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest/programs"
)

var slowest = sync.OnceValues(func() (path string, err error) {
	dir, err := programs.Build("mneme.dev/mneme/internal/mnemetest/slowest")
	return filepath.Join(dir, "slowest"), err
})

// run runs slowest on a module with these tests and returns what it printed.
func run(t *testing.T, tests string, args ...string) (output string, code int) {
	t.Helper()
	program, err := slowest()
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/m\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m_test.go"), []byte("package m\n\n"+tests), 0o600))
	cmd := exec.Command(program, append(args, "./...")...)
	cmd.Dir = dir
	out, _ := cmd.CombinedOutput()
	return string(out), cmd.ProcessState.ExitCode()
}

func TestPassedTestsAreListedBySlowness(t *testing.T) {
	t.Parallel()
	output, code := run(t, `import ("testing"; "time")
func TestFast(t *testing.T) { t.Log("quiet") }
func TestSlow(t *testing.T) { time.Sleep(500 * time.Millisecond) }
func TestSkipped(t *testing.T) { t.Log("ready"); t.Skip("needs a moon") }
func TestMoon(t *testing.T) { t.Skip("needs a moon") }
func TestSilent(t *testing.T) { t.SkipNow() }
`, "-count=1")
	require.Zero(t, code)
	require.Regexp(t, `^ok  \texample.com/m\t.*\n\nSKIPPED, by reason:\n +2  needs a moon\n +1  no reason given\n\nThe slowest tests:\n +[\d.]+s example.com/m TestSlow\n +[\d.]+s example.com/m Test(Fast|Skipped|Moon|Silent)\n`, output)
	require.NotContains(t, output, "quiet")
}

func TestTheTimeOfATestIncludesThatOfItsParallelSubtests(t *testing.T) {
	t.Parallel()
	output, code := run(t, `import ("testing"; "time")
func TestAlone(t *testing.T) { time.Sleep(200 * time.Millisecond) }
func TestTogether(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Run("inside", func(t *testing.T) { time.Sleep(200 * time.Millisecond) })
		})
	}
	t.Run("before", func(t *testing.T) { time.Sleep(100 * time.Millisecond) })
}
`, "-count=1", "-parallel=2")
	require.Zero(t, code)
	require.Regexp(t, `\n +[\d.]+s example.com/m TestTogether\n +[\d.]+s example.com/m TestAlone\n`, output, "0.5 s with its subtests, which run at the same time")
}

func TestLinesOfARunWithTheRaceDetectorSaySo(t *testing.T) {
	t.Parallel()
	for action, outcome := range map[string]string{"pass": "ok  ", "fail": "FAIL"} {
		var out strings.Builder
		report(strings.NewReader(`{"Action":"output","Package":"example.com/m","Output":"`+outcome+`\texample.com/m\t1s\n"}
{"Action":"`+action+`","Package":"example.com/m"}
`), &out, " with the race detector")
		require.True(t, strings.HasPrefix(out.String(), outcome+"\texample.com/m\t1s with the race detector\n"), out.String())
		require.Contains(t, out.String(), "The slowest tests with the race detector:")
	}
}

func TestFailedTestsAreShownWithTheirOutput(t *testing.T) {
	t.Parallel()
	output, code := run(t, `import "testing"
func TestGood(t *testing.T) { t.Log("quiet") }
func TestBad(t *testing.T) {
	t.Run("case", func(t *testing.T) { t.Error("broken") })
}
`)
	require.Equal(t, 1, code)
	require.Contains(t, output, "--- FAIL: TestBad/case")
	require.Contains(t, output, "broken")
	require.Contains(t, output, "FAIL\texample.com/m")
	require.NotContains(t, output, "quiet")
}

func TestPanicAndCompilerErrorAreShown(t *testing.T) {
	t.Parallel()
	output, code := run(t, "import \"testing\"\nfunc TestPanic(t *testing.T) { panic(\"help\") }\n")
	require.Equal(t, 1, code)
	require.Contains(t, output, "panic: help")
	output, code = run(t, "func TestTypo( {}\n")
	require.Equal(t, 1, code)
	require.Contains(t, output, "m_test.go:3")
	output, code = run(t, "import \"testing\"\nfunc TestType(t *testing.T) { missing() }\n")
	require.Equal(t, 1, code)
	require.Contains(t, output, "undefined: missing")
}

func TestOutputOfAPackageThatDidNotEndIsShown(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	report(strings.NewReader(`{"Action":"output","Package":"example.com/m","Test":"TestHang","Output":"=== RUN   TestHang\n"}
{"Action":"output","Package":"example.com/m","Test":"TestHang","Output":"still here\n"}
`), &out, "")
	require.Contains(t, out.String(), "still here")
}
