package mcp_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/mcp"
)

var update = flag.Bool("update", false, "write the golden files")

func TestTheListOfToolsIsTheGoldenOne(t *testing.T) {
	got, err := json.MarshalIndent(mcp.Definitions(true), "", "  ")
	require.NoError(t, err)
	path := filepath.Join("testdata", "tools.golden.json")
	if *update {
		require.NoError(t, os.WriteFile(path, append(got, '\n'), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n", "clients cache the list: if the change is meant, run with -update")
}

// Every session of every agent pays for the list of tools.
func TestTheToolsAreSmall(t *testing.T) {
	const most = 3_200
	bytes := 0
	for _, tool := range mcp.Definitions(true) {
		schema, err := json.Marshal(tool.InputSchema)
		require.NoError(t, err)
		bytes += len(tool.Name) + len(tool.Description) + len(schema)
	}
	require.LessOrEqual(t, bytes, most)
	t.Logf("%d of %d bytes", bytes, most)
}

func TestWithoutTheRightToWriteOnlyToolsThatReadAreListed(t *testing.T) {
	reading := mcp.Definitions(false)
	require.Len(t, reading, 4)
	for _, tool := range reading {
		require.True(t, tool.Annotations.ReadOnlyHint, tool.Name)
	}
	writing := mcp.Definitions(true)
	require.Equal(t, mcp.ToolRemember, writing[len(writing)-1].Name)
	require.False(t, writing[len(writing)-1].Annotations.ReadOnlyHint)
}

func TestTheTableOfRightsNamesExactlyTheTools(t *testing.T) {
	names := map[string]bool{}
	for _, tool := range mcp.Definitions(true) {
		names[tool.Name] = true
		need, ok := access.Tools[tool.Name]
		require.True(t, ok, tool.Name)
		require.Equal(t, tool.Annotations.ReadOnlyHint, need.Role == access.Read, tool.Name)
	}
	for name := range access.Tools {
		require.True(t, names[name], name)
	}
}

// Clients find tools by the words that a user says.
func TestEveryToolSaysMemoryOrRemember(t *testing.T) {
	for _, tool := range mcp.Definitions(true) {
		require.Regexp(t, "(?i)memory|remember", tool.Description, tool.Name)
		require.True(t, strings.HasPrefix(tool.Name, "memory_"), tool.Name)
	}
}

func TestWrongArgumentsAreNamedWithWhatIsAllowed(t *testing.T) {
	b := setup(t)
	a := b.agent("")
	for _, c := range []struct {
		tool string
		args arguments
		want string
	}{
		{"memory_read", nil, "ref is missing (ID#turn=7, ID#seq=18414 or [ID, turn 7])"},
		{"memory_read", arguments{"ref": 7}, "ref must be a text, not 7 (ID#turn=7, ID#seq=18414 or [ID, turn 7])"},
		{"memory_read", arguments{"ref": nil, "max_chars": "8000"}, `ref must be a text, not null (ID#turn=7, ID#seq=18414 or [ID, turn 7]); max_chars must be a whole number from 1000 to 40000, not "8000"`},
		{"memory_read", arguments{"id": "x"}, `ref is missing (ID#turn=7, ID#seq=18414 or [ID, turn 7]); memory_read has no argument "id", only ref, max_chars, cursor`},
		{"memory_search", arguments{"kind": "tools"}, `kind must be one of message, tool, all, not "tools"`},
		{"memory_search", arguments{"limit": 26}, "limit must be a whole number from 1 to 25, not 26"},
		{"memory_search", arguments{"limit": 2.5}, "limit must be a whole number from 1 to 25, not 2.5"},
		{"memory_search", arguments{"from_turn": map[string]any{"turn": 3}}, `from_turn must be a whole number, not {"turn":3}`},
		{"memory_search", arguments{"conversation": "c", "from_turn": 1e30}, "from_turn must be a whole number, not 1e+30"},
		{"memory_context", arguments{"as_of": 0}, "as_of must be a whole number from 1 on, not 0 (log sequence, to see the past)"},
		{"memory_remember", arguments{"text": ""}, "text is empty"},
		{"memory_remember", arguments{"text": strings.Repeat("é", 2_001)}, "text has 2001 characters; at most 2000 are allowed"},
		{"memory_remember", arguments{"text": "x", "tags": "a"}, `tags must be a list of texts, not "a"`},
		{"memory_remember", arguments{"text": "x", "tags": []any{"a", 1}}, "tags entry 2 must be a text, not 1"},
		{"memory_remember", arguments{"text": "x", "tags": make([]string, 17)}, "tags has 17 entries; at most 16 are allowed"},
	} {
		require.Equal(t, c.want, a.refused(c.tool, c.args))
	}
	require.NotContains(t, a.refused("memory_search", arguments{strings.Repeat("<", 1_000): 1}), "\\u003c")
	require.Contains(t, a.text("memory_search", arguments{"limit": 5.0, "project": "*"}), `"hits":[]`)
}
