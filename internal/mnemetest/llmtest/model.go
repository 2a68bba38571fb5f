package llmtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// ModelName is the name of the real model in requests.
const ModelName = "smollm2-135m"

// Patience is how long a call of the real model may take: it writes 20 tokens a second,
// on busy cores far less.
const Patience = 5 * time.Minute

// Model returns the base URL of a real language model, one for all tests of a package. Its
// answers are nonsense: check that it answers, not what. It ends with the process.
func Model(t testing.TB) string {
	t.Helper()
	base, err := model()
	if err == nil {
		return base
	}
	if os.Getenv("MNEME_TEST_REQUIRE_LLM") == "1" {
		t.Fatalf("language model: %v, and MNEME_TEST_REQUIRE_LLM=1", err)
	}
	warn.Do(func() { fmt.Fprintf(os.Stderr, "language model: not tested, %v\n", err) })
	t.Skipf("language model: %v", err)
	return ""
}

var (
	warn   sync.Once
	server *exec.Cmd // kept because the garbage collector would close its input
)

var model = sync.OnceValues(func() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	var stderr strings.Builder
	server = exec.Command(filepath.Join(root, "deploy", "llm", "llm.sh"), "serve")
	server.Stderr = &stderr
	if _, err := server.StdinPipe(); err != nil { // the model ends when this process ends and closes the pipe
		return "", err
	}
	stdout, err := server.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := server.Start(); err != nil {
		return "", err
	}
	base, err := bufio.NewReader(stdout).ReadString('\n')
	if errors.Is(err, io.EOF) {
		_ = server.Wait()
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", errors.New(strings.TrimPrefix(lines[len(lines)-1], "language model: "))
	}
	return strings.TrimSpace(base), err
})

// moduleRoot returns the folder of go.mod at or above the working directory.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if parent := filepath.Dir(dir); parent != dir {
			dir = parent
			continue
		}
		return "", errors.New("there is no go.mod above the working directory")
	}
	return "", err
}
