package mnemetest

import "testing"

// Long skips a test under make quick, because it takes several seconds of processor time or mostly
// waits. It does not skip it under the race detector, which also runs with -short, for small inputs.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() && !Race {
		t.Skip("takes several seconds: make test runs it")
	}
}
