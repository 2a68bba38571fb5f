package k8s

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// programs holds mneme's programs.
type programs struct {
	dir   string   // folder of the built programs
	names []string // as in the image

	mu    sync.Mutex
	known map[string]*knowledge // cached answers, by question
}

// knowledge holds the settings that a program reports.
type knowledge struct {
	names []string
	err   error
}

// build makes the programs once for all tests of this package, as deploy/Dockerfile does.
var build = sync.OnceValues(func() (*programs, error) {
	entries, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		return nil, err
	}
	p := &programs{known: map[string]*knowledge{}}
	for _, e := range entries {
		p.names = append(p.names, e.Name())
	}
	if p.dir, err = filepath.Abs(filepath.Join(root, ".cache", "programs")); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", p.dir+string(filepath.Separator), "./cmd/...") // reuses the build cache
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return p, fmt.Errorf("%w: %s", err, out)
	}
	return p, nil
})

func built(t *testing.T) *programs {
	t.Helper()
	p, err := build()
	require.NoError(t, err)
	return p
}

// settings returns the names of a program's settings, with these variables set, and an error
// if the program would refuse one.
func (p *programs) settings(program string, variables map[string]string) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	question := fmt.Sprint(program, variables) // a map is printed in order
	if p.known[question] == nil {
		names, err := p.ask(program, variables)
		p.known[question] = &knowledge{names, err}
	}
	return p.known[question].names, p.known[question].err
}

func (p *programs) ask(program string, variables map[string]string) (names []string, err error) {
	cmd := exec.Command(filepath.Join(p.dir, "mneme"), "config", program, "--json")
	cmd.Env = environ(variables)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	var list []struct{ Name string }
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, nil
}

func environ(variables map[string]string) []string {
	list := []string{}
	for name, value := range variables {
		list = append(list, name+"="+value)
	}
	return list
}
