package quota

import (
	"os"
	"testing"

	"mneme.dev/mneme/internal/mnemetest"
)

func TestMain(m *testing.M) {
	mnemetest.TryLaws(25, 10, 400)
	os.Exit(m.Run())
}
