package transcript

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsSaidOfACommandThatEndedNeverRefusesItsLine(t *testing.T) {
	for raw, want := range map[string]exitOf{
		`{"exit":3}`:        3,
		`{"exitCode":-1}`:   -1,
		`{"exit":null}`:     0,
		`{"exit":"failed"}`: 0,
		`{}`:                0,
		`null`:              0,
		`"failed"`:          0,
		`[{"exit":3}]`:      0,
	} {
		var line struct {
			About exitOf `json:"about"`
		}
		require.NoError(t, json.Unmarshal([]byte(`{"about":`+raw+`}`), &line), raw)
		require.Equal(t, want, line.About, raw)
	}
}
