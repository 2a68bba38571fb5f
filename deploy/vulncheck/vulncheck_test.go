package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// said are messages of govulncheck: a module with a vulnerable function in the program, the same again,
// one whose vulnerable function is not in it, and one of Go.
const said = `
{"config": {"scan_mode": "binary"}}
{"osv": {"id": "GO-1", "summary": "a server can be stopped"}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.4", "trace": [{"module": "example.com/a", "version": "v1.2.3"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.4", "trace": [{"module": "example.com/a", "version": "v1.2.3", "function": "Serve"}]}}
{"finding": {"osv": "GO-1", "fixed_version": "v1.2.4", "trace": [{"module": "example.com/a", "version": "v1.2.3", "function": "Listen"}]}}
{"finding": {"osv": "GO-2", "trace": [{"module": "example.com/b", "version": "v0.1.0"}]}}
{"osv": {"id": "GO-3", "summary": "a header is too long"}}
{"finding": {"osv": "GO-3", "trace": [{"module": "stdlib", "version": "v1.26.8", "function": "ReadMIMEHeader"}]}}
`

func TestWhatTheProgramContainsIsFound(t *testing.T) {
	t.Parallel()
	list, err := contained(strings.NewReader(said))
	require.NoError(t, err)
	require.Equal(t, []finding{
		{ID: "GO-1", Module: "example.com/a", Version: "v1.2.3", Fixed: "v1.2.4", Summary: "a server can be stopped"},
		{ID: "GO-3", Module: "stdlib", Version: "v1.26.8", Summary: "a header is too long"},
	}, list)
	_, err = contained(strings.NewReader(said + `{"finding": `))
	require.Error(t, err)
}

func TestTheCheckFailsForModulesAndForGoIfAsked(t *testing.T) {
	t.Parallel()
	ofModule, ofGo := finding{ID: "GO-1", Module: "example.com/a", Version: "v1.2.3", Fixed: "v1.2.4"}, finding{ID: "GO-3", Module: standard}
	for _, c := range []struct {
		list []finding
		asGo bool
		code int
		says string
	}{
		{nil, true, 0, "0 known vulnerabilities in modules, 0 in Go itself (database v1)"},
		{[]finding{ofModule}, false, 1, "GO-1: example.com/a@v1.2.3, fixed in v1.2.4"},
		{[]finding{ofGo}, false, 0, "build with a newer one"},
		{[]finding{ofGo}, true, 1, "GO-3: stdlib@, not fixed yet"},
		{[]finding{ofGo, ofModule}, false, 1, "1 known vulnerabilities in modules, 1 in Go itself"},
	} {
		var out strings.Builder
		require.Equal(t, c.code, report(&out, c.list, "v1", c.asGo))
		require.Contains(t, out.String(), c.says)
	}
}

func TestReportsAreIndexedByTheirModules(t *testing.T) {
	t.Parallel()
	reports, dir := t.TempDir(), t.TempDir()
	require.ErrorContains(t, index(reports, dir), "no reports")
	for name, text := range map[string]string{
		"GO-2": `{"id": "GO-2", "modified": "2026-02-01T00:00:00Z", "affected": [{"package": {"name": "b"}}, {"package": {"name": "a"}}, {"package": {"name": "a"}}]}`,
		"GO-1": `{"id": "GO-1", "modified": "2026-01-01T00:00:00Z", "affected": [{"package": {"name": "a"}}]}`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(reports, name+".json"), []byte(text), 0o600))
	}
	require.NoError(t, index(reports, dir))
	for name, want := range map[string]string{
		"index/db.json": `{"modified": "2026-02-01T00:00:00Z"}`,
		"index/modules.json": `[{"path": "a", "vulns": [{"id": "GO-1", "modified": "2026-01-01T00:00:00Z"}, {"id": "GO-2", "modified": "2026-02-01T00:00:00Z"}]},
			{"path": "b", "vulns": [{"id": "GO-2", "modified": "2026-02-01T00:00:00Z"}]}]`,
	} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.JSONEq(t, want, string(got))
	}
	require.FileExists(t, filepath.Join(dir, "ID", "GO-1.json"))
}
