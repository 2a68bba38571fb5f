package tabular

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page names the columns of each table in their order.
func TestThePageListsAllColumns(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../docs/export.md")
	require.NoError(t, err)
	for table, columns := range map[string][]string{
		"conversations": Columns[Conversation](), "turns": Columns[Turn](), "calls": Columns[Call](), "files": Columns[File](),
	} {
		_, part, ok := strings.Cut(string(raw), "**`"+table+"`**")
		require.True(t, ok, table)
		part, _, _ = strings.Cut(part, "\n**")
		var named []string
		for line := range strings.Lines(part) {
			if cell, ok := strings.CutPrefix(line, "| `"); ok {
				cell, _, _ = strings.Cut(cell, "` |")
				named = append(named, strings.Split(cell, "`, `")...)
			}
		}
		require.Equal(t, columns, named, table)
	}
}
