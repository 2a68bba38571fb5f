package stdio_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mcp/stdio"
)

// closing is an output that can be closed.
type closing struct{ io.Writer }

func (closing) Close() error { return nil }

func TestALineThatIsNoMessageIsAnswered(t *testing.T) {
	t.Parallel()
	const ping, batch = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `[{"jsonrpc":"2.0","id":2,"method":"ping"}]`
	long := `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 100_000) + `"}}}`
	var out bytes.Buffer
	in := "hello\n\n" + ping + "\r\n{\"jsonrpc\":\n42\n{}\n" + batch + "\n" + long + "\n" + ping + " x\nend"
	passed, err := io.ReadAll(stdio.New(io.NopCloser(strings.NewReader(in)), closing{&out}).Reader)
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{ping, batch, long, ""}, "\n"), string(passed))
	require.Equal(t, 4, strings.Count(out.String(), `"code":-32700`), out.String())
	require.Equal(t, 2, strings.Count(out.String(), `"code":-32600`))
	require.Equal(t, 6, strings.Count(out.String(), `"id":null,"jsonrpc":"2.0"}`+"\n"))
}
