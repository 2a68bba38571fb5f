package embedded

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

func TestServerConfSaysWhatServerOptionsSay(t *testing.T) {
	t.Parallel()
	fromFile, err := server.ProcessConfigFile("../server.conf")
	require.NoError(t, err)
	fromCode := ServerOptions(ServerSettings{StoreDir: "/data"})

	fromFile.ConfigFile = ""
	diff := cmp.Diff(fromCode, fromFile, cmp.FilterPath(func(p cmp.Path) bool {
		field, ok := p.Last().(cmp.StructField)
		return ok && (field.Name()[0] < 'A' || field.Name()[0] > 'Z') // notes of the parser
	}, cmp.Ignore()), cmpopts.EquateEmpty())
	require.Empty(t, diff, "-code +server.conf")

	content, err := os.ReadFile("../server.conf")
	require.NoError(t, err)
	require.Equal(t, string(content), natsdeploy.ServerConf)
}
