package stdio_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mcp/stdio"
)

// closing is an output that can be closed.
type closing struct{ io.Writer }

func (closing) Close() error { return nil }

func TestALineThatIsNoMessageIsAnswered(t *testing.T) {
	t.Parallel()
	const ping, second = `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	long := `{"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"x":"` + strings.Repeat("x", 100_000) + `"}}}`
	var out bytes.Buffer
	in := "hello\n\n" + ping + "\r\n{\"jsonrpc\":\n42\n{}\n[" + second + ",1," + ping + "]\n[]\n[{}\n" + long + "\n" + ping + " x\nend"
	transport := stdio.New(io.NopCloser(strings.NewReader(in)), closing{&out})
	var passed bytes.Buffer
	for range 3 {
		line := make([]byte, len(long)+1)
		n, err := transport.Reader.Read(line)
		require.NoError(t, err)
		passed.Write(line[:n])
	}
	require.NoError(t, transport.Reader.Close()) // nobody answers
	_, err := io.Copy(&passed, transport.Reader)
	require.NoError(t, err)
	require.Equal(t, strings.Join([]string{ping, second, ping, long, ""}, "\n"), passed.String())
	require.Equal(t, 5, strings.Count(out.String(), `"code":-32700`), out.String())
	require.Equal(t, 4, strings.Count(out.String(), `"code":-32600`), "among them the batch without messages")
	require.Equal(t, 9, strings.Count(out.String(), `"id":null,"jsonrpc":"2.0"}`+"\n"))
}

func TestTheInputEndsOnceEveryRequestIsAnswered(t *testing.T) {
	t.Parallel()
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"}]`,
		`{"jsonrpc":"2.0","id":9,"method":"subscriptions/listen"}`,
	}, "\n")
	answers := []string{
		`{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`,
		`{"jsonrpc":"2.0","id":"b","error":{"code":-32603,"message":"x"}}`,
	}
	transport := stdio.New(io.NopCloser(strings.NewReader(in)), closing{io.Discard})
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, transport.Reader)
		ended <- err
	}()
	for _, answer := range answers {
		select {
		case <-ended:
			require.Fail(t, "it ended before the answer", answer)
		case <-time.After(50 * time.Millisecond):
		}
		_, err := transport.Writer.Write([]byte(answer + "\n"))
		require.NoError(t, err)
	}
	require.NoError(t, <-ended)
}

// gone is an output that nobody reads.
type gone struct{}

func (gone) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (gone) Close() error              { return nil }

func TestTheInputEndsIfNobodyReadsTheAnswers(t *testing.T) {
	t.Parallel()
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	transport := stdio.New(io.NopCloser(in), gone{})
	ended := make(chan error, 1)
	go func() {
		_, err := io.Copy(io.Discard, transport.Reader)
		ended <- err
	}()
	_, err := transport.Writer.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{}}` + "\n"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
	require.NoError(t, <-ended)
}

func TestTheInputEndsIfAnAnswerTakesTooLong(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		began := time.Now()
		_, err := io.Copy(io.Discard, stdio.New(io.NopCloser(in), closing{io.Discard}).Reader)
		require.NoError(t, err)
		require.Equal(t, 2*time.Minute, time.Since(began))
	})
}
