package window_test

import (
	"os"
	"testing"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestMain(m *testing.M) {
	mnemetest.TryLaws(25, 10, 100)
	os.Exit(m.Run())
}
