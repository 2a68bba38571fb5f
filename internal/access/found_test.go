package access

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The answer about a token may be older than what the watch has brought meanwhile.
func TestALateAnswerBringsNoRevokedTokenBack(t *testing.T) {
	t.Parallel()
	tokens := NewTokens(time.Now)
	_, record, err := Issue(Rights{Tenant: "a", Role: Read}, "", time.Now(), time.Hour)
	require.NoError(t, err)
	w := &watched{}
	tokens.watching(w)
	tokens.found(w, record, 7)
	require.NotNil(t, tokens.entry(record.Hash))
	tokens.brings(w, 8)
	tokens.remove(record.Hash)
	tokens.found(w, record, 7)
	require.Nil(t, tokens.entry(record.Hash))
	tokens.watching(&watched{})
	tokens.found(w, record, 9)
	require.Nil(t, tokens.entry(record.Hash), "it is the answer of another bucket")
}
