package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	natsdeploy "mneme.dev/mneme/deploy/nats"
	"mneme.dev/mneme/deploy/nats/embedded"
	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/mnemetest"
	"mneme.dev/mneme/internal/mnemetest/programs"
	"mneme.dev/mneme/pkg/eventlog"
)

// running is one of mneme's programs while it runs.
type running struct {
	cmd *exec.Cmd
	err bytes.Buffer
}

func start(t *testing.T, bin, name, listen, nats, data string) *running {
	t.Helper()
	p := &running{cmd: exec.Command(filepath.Join(bin, name))}
	p.cmd.Env = append(os.Environ(), "MNEME_LISTEN="+listen, "MNEME_NATS_URL="+nats, "MNEME_DATA="+data)
	p.cmd.Stderr = &p.err
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
	})
	return p
}

// healthy runs a program's health check and returns its exit code and output.
func healthy(t *testing.T, bin, name, listen string) (int, string) {
	cmd := exec.Command(filepath.Join(bin, name), "--healthy")
	cmd.Env = append(os.Environ(), "MNEME_LISTEN="+listen)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// freeAddress returns an address that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	return "127.0.0.1:" + mnemetest.FreePort(t)
}

// eventually repeats a request until the answer is good or time is up.
func eventually(t *testing.T, url string, good func(status int, body string) bool) string {
	t.Helper()
	deadline := time.Now().Add(mnemetest.Patience)
	last := ""
	for time.Now().Before(deadline) {
		response, err := http.Get(url)
		if err == nil {
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if last = fmt.Sprintf("%d %s", response.StatusCode, body); good(response.StatusCode, string(body)) {
				return string(body)
			}
		} else {
			last = err.Error()
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s: last answer: %s", url, last)
	return ""
}

func TestProgramsMayStartInAnyOrder(t *testing.T) {
	mnemetest.Long(t)
	t.Parallel()
	bin, err := programs.Build("mneme.dev/mneme/cmd/ingestor", "mneme.dev/mneme/cmd/file-tracker", "mneme.dev/mneme/cmd/summarizer", "mneme.dev/mneme/cmd/context-api")
	require.NoError(t, err)
	data := t.TempDir()
	server, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", MaxBytes: 1 << 30})
	require.NoError(t, err)
	defer server.Stop()
	_, err = server.Apply(mnemetest.Context(t), natsdeploy.Settings{MaxBytes: 1 << 30})
	require.NoError(t, err)

	// The reader starts first: it is alive, but not ready before the models exist.
	address := freeAddress(t)
	api := start(t, bin, "context-api", address, server.ClientURL(), data)
	url := "http://" + address
	eventually(t, url+"/healthz", func(status int, _ string) bool { return status == http.StatusOK })
	eventually(t, url+"/readyz", func(status int, body string) bool {
		return status == http.StatusServiceUnavailable && strings.Contains(body, "absent")
	})
	code, says := healthy(t, bin, "context-api", address)
	require.Equal(t, 1, code)
	require.Contains(t, says, "absent")
	ingestorAddress, trackerAddress, summarizerAddress := freeAddress(t), freeAddress(t), freeAddress(t)
	ingestor := start(t, bin, "ingestor", ingestorAddress, server.ClientURL(), data)
	tracker := start(t, bin, "file-tracker", trackerAddress, server.ClientURL(), data)
	// It is ready even without a summarizer.
	eventually(t, url+"/readyz", func(status int, _ string) bool { return status == http.StatusOK })
	summarizer := start(t, bin, "summarizer", summarizerAddress, server.ClientURL(), data)
	for name, address := range map[string]string{"context-api": address, "ingestor": ingestorAddress, "file-tracker": trackerAddress, "summarizer": summarizerAddress} {
		eventually(t, "http://"+address+"/readyz", func(status int, _ string) bool { return status == http.StatusOK })
		code, says := healthy(t, bin, name, address)
		require.Zero(t, code, says)
	}

	conn, err := nats.Connect(server.ClientURL(), nats.Timeout(mnemetest.Handshake))
	require.NoError(t, err)
	defer conn.Close()
	log, err := eventlog.Open(mnemetest.Context(t), conn)
	require.NoError(t, err)
	publish := func(id, text string) uint64 {
		e, err := events.New("c1", "test", id, &events.MessageCreated{MessageID: id, Role: "user", Content: text})
		require.NoError(t, err)
		ack, err := log.Publish(context.Background(), "default", e)
		require.NoError(t, err)
		return ack.Seq
	}
	context := func(seq uint64) string {
		return eventually(t, fmt.Sprintf("%s/v1/conversations/c1/context?format=markdown&at_least=%d", url, seq), func(status int, _ string) bool { return status == http.StatusOK })
	}
	require.Contains(t, context(publish("m1", "first words")), "first words")

	// Each program shows the log and its own work.
	for program, own := range map[string]string{
		address: `http_route="/v1/conversations/{id}/context"`, ingestorAddress: `mneme_projection_checkpoint{partition="0",projection="graph"} 1`,
		trackerAddress: `mneme_projection_checkpoint{partition="0",projection="files"} 1`, summarizerAddress: `mneme_projection_checkpoint{partition="0",projection="summaries"} 1`,
	} {
		shown := eventually(t, "http://"+program+"/metrics", func(_ int, body string) bool { return strings.Contains(body, own) })
		require.Contains(t, shown, "mneme_log_head 1\n")
		require.Equal(t, program == address, !strings.Contains(shown, "mneme_projection_"))
	}

	// A second ingestor on the same directory is refused; the first keeps running.
	second := start(t, bin, "ingestor", "127.0.0.1:0", server.ClientURL(), data)
	require.Error(t, second.cmd.Wait())
	require.Contains(t, second.err.String(), "in use by another process")

	// SIGTERM ends each program cleanly; after a restart it continues.
	for _, p := range []*running{ingestor, tracker, summarizer} {
		require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, p.cmd.Wait(), p.err.String())
	}
	seq := publish("m2", "written while nobody listened")
	ingestor = start(t, bin, "ingestor", "127.0.0.1:0", server.ClientURL(), data)
	start(t, bin, "file-tracker", "127.0.0.1:0", server.ClientURL(), data)
	require.Contains(t, context(seq), "written while nobody listened")

	// A request in flight is still answered.
	require.NoError(t, ingestor.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, ingestor.cmd.Wait(), ingestor.err.String())
	seq = publish("m3", "never applied")
	answered := make(chan int, 1)
	go func() {
		response, err := http.Get(fmt.Sprintf("%s/v1/conversations/c1?at_least=%d&wait_ms=4000", url, seq))
		if err != nil {
			answered <- 0
			return
		}
		_ = response.Body.Close()
		answered <- response.StatusCode
	}()
	eventually(t, url+"/metrics", func(_ int, body string) bool { return strings.Contains(body, "http_server_active_requests 2\n") })
	require.NoError(t, api.cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, http.StatusGatewayTimeout, <-answered)
	require.NoError(t, api.cmd.Wait(), api.err.String())
}

func TestInvalidVariableIsNamed(t *testing.T) {
	t.Parallel()
	bin, err := programs.Build("mneme.dev/mneme/cmd/ingestor", "mneme.dev/mneme/cmd/summarizer", "mneme.dev/mneme/cmd/context-api")
	require.NoError(t, err)
	for _, c := range []struct{ program, variable, value, says string }{
		{"ingestor", "MNEME_PARTITIONS", "many", `MNEME_PARTITIONS="many"`},
		{"ingestor", "MNEME_PARTITIONS", "99", "MNEME_PARTITIONS=99"},
		{"ingestor", "MNEME_NATS_URL", "here", "MNEME_NATS_URL"},
		{"summarizer", "MNEME_SUMMARY_WRITER", "openai", "MNEME_LLM_MODEL is empty"},
		{"summarizer", "MNEME_L1_THRESHOLD_PERCENT", "0", "MNEME_L1_THRESHOLD_PERCENT=0"},
		{"context-api", "MNEME_LISTEN", "0.0.0.0:80", "loopback only"},
		{"context-api", "MNEME_LOG_LEVEL", "loud", "MNEME_LOG_LEVEL"},
		{"context-api", "MNEME_LOG_FORMAT", "xml", "MNEME_LOG_FORMAT"},
	} {
		cmd := exec.Command(filepath.Join(bin, c.program))
		cmd.Env = append(os.Environ(), c.variable+"="+c.value)
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 2, cmd.ProcessState.ExitCode(), "%s", out)
		require.Contains(t, string(out), c.says)
	}
	help, err := exec.Command(filepath.Join(bin, "ingestor"), "--help").Output()
	require.NoError(t, err)
	for _, variable := range []string{"MNEME_NATS_URL", "MNEME_DATA", "MNEME_LISTEN", "MNEME_LOG_LEVEL"} {
		require.Contains(t, string(help), variable)
	}
}
