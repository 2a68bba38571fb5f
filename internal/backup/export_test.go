package backup

import (
	"testing"
	"time"
)

// SetSilence sets how long a server may send nothing, for a test that does not run beside others.
func SetSilence(t *testing.T, to time.Duration) {
	before := silence
	t.Cleanup(func() { silence = before })
	silence = to
}
