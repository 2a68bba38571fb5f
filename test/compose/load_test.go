// Package compose tests docker-compose.yml: against the settings of the programs that it
// starts, and, in `make test-compose`, by running it.
package compose

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/template"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/require"
)

// root is the root of the repository.
const root = "../.."

// load parses a compose file like docker compose, with only the given variables, and refuses
// everything that is not in the specification.
func load(ctx context.Context, text string, variables map[string]string) (*types.Project, error) {
	dir, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	details := types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml"), Content: []byte(text)}},
		Environment: maps.Clone(variables), // the loader adds to it
	}
	raw, err := loader.LoadModelWithContext(ctx, details, func(o *loader.Options) {
		o.SkipInterpolation, o.SkipValidation, o.SkipResolveEnvironment = true, true, true
	})
	if err != nil {
		return nil, err
	}
	for name, v := range template.ExtractVariables(raw, template.DefaultPattern) {
		if v.DefaultValue == "" {
			return nil, fmt.Errorf("the variable %s has no default", name)
		}
	}
	return loader.LoadWithContext(ctx, details)
}

// programs holds mneme's programs.
type programs struct {
	dir   string   // folder of the built mneme
	names []string // of all programs
	known sync.Map // what settings was asked for, by question: a func() ([]string, error)
}

// build makes mneme once for all tests of this package.
var build = sync.OnceValues(func() (*programs, error) {
	entries, err := os.ReadDir(filepath.Join(root, "cmd"))
	if err != nil {
		return nil, err
	}
	p := &programs{}
	for _, e := range entries {
		p.names = append(p.names, e.Name())
	}
	if p.dir, err = filepath.Abs(filepath.Join(root, ".cache", "programs")); err != nil {
		return nil, err
	}
	cmd := exec.Command("go", "build", "-ldflags=-s -w", "-o", p.dir+string(filepath.Separator), "./cmd/mneme") // the same flags as other tests, to share the build cache
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

// settings returns the names of a program's settings, with the variables of its service set,
// and an error if the program would refuse one. A variable without a value is missing from
// the environment.
func (p *programs) settings(program string, variables types.MappingWithEquals) ([]string, error) {
	var env []string
	for name, value := range variables {
		if value != nil {
			env = append(env, name+"="+*value)
		}
	}
	slices.Sort(env)
	known, _ := p.known.LoadOrStore(fmt.Sprintf("%s %q", program, env), sync.OnceValues(func() ([]string, error) { return p.ask(program, env) }))
	return known.(func() ([]string, error))()
}

func (p *programs) ask(program string, env []string) ([]string, error) {
	cmd := exec.Command(filepath.Join(p.dir, "mneme"), "config", program, "--json")
	cmd.Env = append([]string{}, env...) // not that of the test
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s", strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	var list []struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names, nil
}
