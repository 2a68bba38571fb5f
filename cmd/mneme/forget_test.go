package main

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mnemetest"
)

func TestALineIsForgottenByAPartOfIt(t *testing.T) {
	t.Parallel()
	s := up(t, t.TempDir())
	begin := started("Notes")
	begin["project"] = "shop"
	list := []map[string]any{begin}
	for _, text := range []string{"Releases happen on Tuesdays.", "The staging host is called atlas.", "The database host is called rhea."} {
		note := userMessage("n"+strconv.Itoa(len(list)), text)
		note["origin"] = "note"
		list = append(list, note)
	}
	s.publish("notes:shop", list...)
	shown := func() string {
		out, stderr, code := s.mneme("context", "--project", "shop")
		require.Zero(t, code, stderr)
		return out
	}
	require.Eventually(t, func() bool {
		out, _, _ := s.mneme("context", "--project", "shop")
		return strings.Contains(out, "rhea")
	}, mnemetest.Patience, 50*time.Millisecond)
	forget := func(args ...string) (stdout, stderr string, code int) {
		return s.mneme(append([]string{"projects", "forget"}, args...)...)
	}
	_, stderr, code := forget("shop", "releases  HAPPEN")
	require.Equal(t, exitUsage, code)
	require.Contains(t, stderr, "[notes:shop, turn 1] Note: Releases happen on Tuesdays.", "what would be forgotten")
	require.Contains(t, stderr, "confirm with --yes")
	for line, says := range map[string]string{
		"host is called": "2 lines have",
		"Fridays":        "no line of What Was Learnt has",
		"1":              "taught nothing that is shown",
		"99999":          "the log holds no event",
	} {
		_, stderr, code = forget("shop", line, "--yes")
		require.Equal(t, exitFailed, code, line)
		require.Contains(t, strings.ReplaceAll(stderr, "\n", " "), says)
	}
	for _, blank := range []string{"", " \t"} { // as of a variable that is not set: every line has it
		_, stderr, code = forget("shop", blank, "--yes")
		require.Equal(t, exitUsage, code)
		require.Contains(t, stderr, "<line> is empty")
	}
	_, stderr, code = forget("shpo", "Tuesdays", "--yes")
	require.Equal(t, exitFailed, code)
	require.Contains(t, stderr, "no conversation belongs to the project shpo")
	require.Contains(t, shown(), "Tuesdays")

	w := read[httpapi.Written](s, "projects", "forget", "shop", "[notes:shop, turn 1] Note: Releases happen on Tuesdays.", "--yes", "--reason", "moved")
	require.Equal(t, "notes:shop", w.ConversationID)
	out, stderr, code := s.mneme("context", "--project", "shop", "--at-least", strconv.FormatUint(w.Seq, 10))
	require.Zero(t, code, stderr)
	require.NotContains(t, out, "Tuesdays")
	require.Contains(t, out, "atlas")
}
