package program

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAProgramWarnsOfAVariableThatNobodyKnows(t *testing.T) {
	t.Setenv("MNEME_QUOTA_FILE", "quotas.yaml")
	t.Setenv("MNEME_PARTITIONS", "8") // of other programs
	var out bytes.Buffer
	warnOfUnknown(slog.New(slog.NewTextHandler(&out, nil)))
	require.Contains(t, out.String(), "MNEME_QUOTA_FILE: no program knows this name; did you mean MNEME_QUOTAS_FILE?")
	require.NotContains(t, out.String(), "MNEME_PARTITIONS")
}
