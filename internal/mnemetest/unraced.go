package mnemetest

import (
	"strings"
	"testing"
)

// Unraced skips a test under the race detector, for a reason. The name of the test must end with Unraced: of some packages
// make test runs only these without the race detector.
func Unraced(t testing.TB, why string) {
	t.Helper()
	if !strings.HasSuffix(t.Name(), "Unraced") {
		t.Fatal("the name of this test must end with Unraced, else make test does not run it")
	}
	if Race {
		t.Skip("NOT RUN under the race detector, but without it: " + why)
	}
}
