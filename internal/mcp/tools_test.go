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
