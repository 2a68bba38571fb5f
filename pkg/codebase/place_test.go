package codebase

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnIndexIsOfUseWhereItsFolderIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ root, project, cwd, want string }{
		{"/w/cli", "/w/cli", "/w/cli", "/w/cli"},
		{"/w/cli", "/w/cli", "/w/cli/pkg", "/w/cli"},
		{"/w/cli", "/w/cli", "/w", "/w/cli"},
		{"/w/cli", "/w/cli", "/w/client", ""},
		{"/w/tree/", "/w/cli", "/w/cli/pkg", "/w/cli"},
		{"/w/tree/", "/w/cli", "/w/tree", "/w/tree"},
		{"/w/tree", "github.com/o/r", "github.com/o/r", ""},
		{`C:\w`, "p", `C:\w\x`, `C:\w`},
		{"/w", "p", "", ""},
	} {
		s := Scan{Root: c.root, Project: c.project}
		require.Equal(t, c.want, s.Base(c.cwd), "%+v", c)
	}
}
