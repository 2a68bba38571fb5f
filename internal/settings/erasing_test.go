package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheAuditLogIsKeptForDays(t *testing.T) {
	t.Parallel()
	for value, age := range map[string]time.Duration{"": 0, "1d": 24 * time.Hour, "365d": 365 * 24 * time.Hour} {
		got, err := (&Auditing{AuditRetention: value}).Age()
		require.NoError(t, err)
		require.Equal(t, age, got)
	}
	for _, value := range []string{"0d", "-1d", "90", "d", "12h", "99999999999d", "forever"} {
		require.ErrorContains(t, (&Auditing{AuditRetention: value}).Check(), "MNEME_AUDIT_RETENTION", value)
	}
}

func TestARetentionNamesTenantsAndDays(t *testing.T) {
	t.Parallel()
	ages, err := (&Erasing{Retention: "acme=90d, default=1d"}).Ages()
	require.NoError(t, err)
	require.Equal(t, map[string]time.Duration{"acme": 90 * 24 * time.Hour, "default": 24 * time.Hour}, ages)
	ages, err = (&Erasing{}).Ages()
	require.NoError(t, err)
	require.Empty(t, ages)
	for value, reason := range map[string]string{
		"90d":               "not TENANT=DAYSd",
		"acme=":             "whole number of days",
		"acme=90":           "whole number of days",
		"acme=0d":           "whole number of days",
		"acme=-1d":          "whole number of days",
		"acme=1.5d":         "whole number of days",
		"acme=99999999999d": "whole number of days",
		"=90d":              "names no tenant",
		"acme=1d,acme=2d":   "two ages",
		"acme=1d,":          "not TENANT=DAYSd",
	} {
		err := (&Erasing{Retention: value}).Check()
		require.ErrorContains(t, err, "MNEME_RETENTION=", value)
		require.ErrorContains(t, err, reason, value)
	}
}
