package main

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestHealthSaysWhatIsOddByItsExitCodeToo(t *testing.T) {
	t.Parallel()
	s := up(t, filepath.Join(t.TempDir(), "data"))
	session(s, "c")
	out, stderr, code := s.mneme("conversations", "health", "c")
	require.Equal(t, exitDifference, code, stderr)
	require.Equal(t, "RULE\tCOUNT\tTURN\tTOOL\tSUBJECT\tEVENTS\nunanswered\t1\t2\t\tThanks.\t7\n", out)

	out, stderr, code = s.mneme("conversations", "health", "c", "--as-of", "6")
	require.Zero(t, code, stderr)
	require.Equal(t, "no findings in 5 rows\n", out)
	require.Empty(t, read[httpapi.Health](s, "conversations", "health", "c", "--as-of", "6").Findings)

	_, stderr, code = s.mneme("conversations", "health", "nobody")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "nobody")
}
