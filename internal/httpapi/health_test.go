package httpapi_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/httpapi"
)

func TestHealthSaysWhatIsOddAndOnWhichEvents(t *testing.T) {
	b := setup(t)
	seq := b.batch("c1", message("u1", "user", "go"),
		call("k1", "Bash", `{"command":"make"}`), result("k1", "no rule", false), call("k2", "Bash", `{"command":"make 2>&1"}`), result("k2", "no rule", false),
		message("a1", "assistant", "it fails"), message("u2", "user", "then look"))
	health := func(query string) (h httpapi.Health) {
		b.get(fmt.Sprintf("/v1/conversations/c1/health?at_least=%d%s", seq, query), &h)
		return h
	}
	first := seq - 6
	got := health("")
	require.Equal(t, httpapi.Health{
		ConversationID: "c1", Found: 2, Rows: 7, Complete: true, Findings: []httpapi.Finding{
			{Rule: "failing", Count: 2, Tool: "Bash", Subject: "make", Turn: 1, FirstSeq: first + 1, LastSeq: first + 3, Seqs: []uint64{first + 1, first + 3}},
			{Rule: "unanswered", Count: 1, Subject: "then look", Turn: 2, FirstSeq: seq, LastSeq: seq, Seqs: []uint64{seq}},
		},
	}, got)
	require.Empty(t, health(fmt.Sprintf("&as_of=%d", first+2)).Findings, "as it was then")
	require.Len(t, health(fmt.Sprintf("&from=%d", first+3)).Findings, 1)
}
