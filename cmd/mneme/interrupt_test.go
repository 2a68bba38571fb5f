package main

import (
	"bufio"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/program"
)

func TestASecondCtrlCEndsAProgramThatIsStopping(t *testing.T) {
	t.Parallel()
	path, err := mnemetest.Binary()
	require.NoError(t, err)
	cmd := exec.Command(path, "up", "--json", "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--nats-listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	errs, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	defer time.AfterFunc(mnemetest.Patience, func() { _ = cmd.Process.Kill() }).Stop()
	var up ready
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(line), &up))

	// A request that never arrives as a whole holds up the server.
	conn, err := net.Dial("tcp", strings.TrimPrefix(up.HTTP, "http://"))
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	_, err = conn.Write([]byte("POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n"))
	require.NoError(t, err)
	_, err = bufio.NewReader(conn).ReadString('\n') // it is being read
	require.NoError(t, err)

	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	require.NoError(t, cmd.Process.Signal(os.Interrupt)) // a parent passes on what the terminal sent to it and to us
	said := false
	for lines := bufio.NewScanner(errs); !said && lines.Scan(); {
		said = lines.Text() == "mneme: "+program.Stopping
	}
	require.True(t, said, "it does not say how to end it")
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	_ = cmd.Wait()
	require.Equal(t, 130, cmd.ProcessState.ExitCode())
}
