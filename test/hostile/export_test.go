//go:build linux

package hostile

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/mnemetest"
)

// talk publishes one message and returns the export of its conversation.
func talk(t *testing.T, s *mnemetest.Server, conversation string) string {
	t.Helper()
	a := publish(t, s, conversation, "1", "message.created", map[string]any{"message_id": "m1", "role": "user", "content": "hello"})
	require.Equal(t, http.StatusCreated, a.Status, "%s", a.Body)
	out, stderr, code := s.Run("context", conversation, "--at-least", "1")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "hello")
	out, stderr, code = s.Run("conversations", "export", conversation)
	require.Zero(t, code, stderr)
	require.NotEmpty(t, out)
	return out
}

func TestAnExportWritesToAFIFOAndAnOpenFile(t *testing.T) {
	s := up(t)
	want := talk(t, s, "c")
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	got := make(chan string, 1)
	go func() {
		raw, _ := os.ReadFile(fifo)
		got <- string(raw)
	}()
	_, stderr, code := s.Run("conversations", "export", "c", "-o", fifo)
	require.Zero(t, code, stderr)
	require.Equal(t, want, <-got)
	info, err := os.Lstat(fifo)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeNamedPipe, "it is still a FIFO")

	out, stderr, code := s.Run("conversations", "export", "c", "-o", "/dev/stdout")
	require.Zero(t, code, stderr)
	require.Equal(t, want, out)

	program, err := mnemetest.Binary()
	require.NoError(t, err)
	read, write, err := os.Pipe()
	require.NoError(t, err)
	cmd := exec.Command(program, "conversations", "export", "c", "-o", "/dev/fd/3", "--url", s.HTTP)
	cmd.ExtraFiles = []*os.File{write}
	require.NoError(t, cmd.Run())
	require.NoError(t, write.Close())
	raw, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Equal(t, want, string(raw))
}

// The devices are copies in a folder of the test's own: the machine's are not touched.
func TestAnExportToADeviceLeavesItADevice(t *testing.T) {
	s := up(t)
	talk(t, s, "c")
	for name, c := range map[string]struct{ minor, exit int }{"null": {3, 0}, "full": {7, 1}} {
		device := filepath.Join(t.TempDir(), name)
		if err := syscall.Mknod(device, syscall.S_IFCHR|0o666, 1<<8|c.minor); err != nil {
			t.Skipf("NOT TESTED: only root can make the copy of /dev/%s that this test writes to: %v", name, err)
		}
		if f, err := os.OpenFile(device, os.O_WRONLY, 0); err != nil {
			t.Skipf("NOT TESTED: devices in %s can't be opened: %v", filepath.Dir(device), err)
		} else {
			require.NoError(t, f.Close())
		}
		_, stderr, code := s.Run("conversations", "export", "c", "-o", device)
		require.Equal(t, c.exit, code, "%s: %s", name, stderr)
		info, err := os.Lstat(device)
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeCharDevice, "%s is still a device", name)
	}
}
