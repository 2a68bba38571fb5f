package files

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/testdata"
)

// The recorded data may be absent. Two small conversations in the same form exercise the
// code that compares with it.
func fixture(t *testing.T) map[string]*conversation {
	return conversations(testdata.Lines[testdata.Event](t, "testdata/conversations.jsonl"))
}

func TestLabeledFilesOfTheFixtureAreFound(t *testing.T) {
	n := compare(fixture(t))
	assert.Equal(t, 9, n.labelled)
	assert.Equal(t, 7, n.exact)
	assert.Equal(t, 1, n.behindCD, "cd warp && cat warp.go")
	assert.Equal(t, 1, n.ofFailed, "the refused edit")
	assert.Empty(t, n.missed)
	assert.Empty(t, n.extra)
}

func TestRecentFilesOfTheFixture(t *testing.T) {
	n := agree(fixture(t), testdata.Lines[point](t, "testdata/points.jsonl"))
	assert.Equal(t, agreement{points: 2, asLabelled: 2, ourRule: 2, withShell: 0}, n)
}

func TestSearchHitsOfTheFixtureAreInTheWorkingDirectory(t *testing.T) {
	c := fixture(t)["fix:1"]
	require.NotNil(t, c)
	assert.Equal(t, []Access{
		{"/home/ada/loom", KindSearch}, {"/home/ada/loom/weft.go", KindSearch}, {"/home/ada/loom/warp/warp.go", KindSearch},
	}, c.accesses(DefaultTable(), c.events[4]))
}
