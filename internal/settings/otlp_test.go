package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExportersAreAnsweredOnLoopbackOrWithTokens(t *testing.T) {
	s := OTLP{Listen: " 127.0.0.1:4317, [::1]:4318 ,"}
	require.Equal(t, []string{"127.0.0.1:4317", "[::1]:4318"}, s.Addresses())
	require.NoError(t, s.Check(&Access{}))
	require.Empty(t, (&OTLP{}).Addresses())
	require.NoError(t, (&OTLP{}).Check(&Access{}))
	for _, bad := range []string{"0.0.0.0:4317", "127.0.0.1:4317,0.0.0.0:4318", "4317"} {
		require.ErrorContains(t, (&OTLP{Listen: bad}).Check(&Access{}), "MNEME_OTLP_LISTEN", bad)
	}
	require.NoError(t, (&OTLP{Listen: "0.0.0.0:4317"}).Check(&Access{Tokens: true}))
}
