package insight

import (
	"testing"

	json "github.com/go-json-experiment/json/v1"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Stored rows have histograms as maps: a single different byte would be a difference in every verification.
func TestALawOfHistogramsTheyAreStoredAsAMapWouldBe(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var h Histogram
		same := map[int]int64{}
		for _, v := range rapid.SliceOf(rapid.Int64()).Draw(r, "values") {
			h.Add(v)
			same[bucket(v)]++
		}
		got, err := json.Marshal(Calls{MS: h})
		require.NoError(r, err)
		want, err := json.Marshal(struct {
			MS map[int]int64 `json:"d,omitempty"`
		}{same})
		require.NoError(r, err)
		require.Equal(r, string(want), string(got))
		var back Calls
		require.NoError(r, json.Unmarshal(got, &back))
		require.Equal(r, h, back.MS)
	})
}

func TestAnythingElseIsNoHistogram(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"d":[1]}`, `{"d":5}`, `{"d":{"a":1}}`, `{"d":{"1":-1}}`, `{"d":{"1":1.5}}`, `{"d":{"":1}}`, `{"d":{"1":{}}}`, `{"d":{"1":"}`} {
		var c Calls
		require.Error(t, json.Unmarshal([]byte(text), &c), text)
	}
	var c Calls
	require.NoError(t, json.Unmarshal([]byte(`{"d":{}}`), &c))
	require.Empty(t, c.MS)
}
