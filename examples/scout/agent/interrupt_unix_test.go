//go:build unix

package agent

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// If the user interrupts the agent while a command runs, the call still gets a result that
// says so. A script takes the place of the go command: it writes to a pipe once it is running,
// and then never ends by itself.
func TestInterruptedCommandHasItsResult(t *testing.T) {
	b := setup(t)
	bin := t.TempDir()
	pipe := filepath.Join(bin, "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	script := "#!/bin/sh\necho running > '" + pipe + "'\nexec sleep 600\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gofmt"), []byte(script), 0o700))
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(pipe) // until the script has written
		cancel()
	}()
	_, err := Run(ctx, Options{Dir: folder(t, repository()), Question: question, Recorder: b.rec})
	require.ErrorIs(t, err, context.Canceled)

	list := b.recorded()
	requirePaired(t, list)
	run := results(list, "run_command")
	require.Len(t, run, 1)
	require.False(t, *run[0].Success)
	require.Equal(t, "interrupted: context canceled", run[0].Error)
}
