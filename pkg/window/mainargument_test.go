package window

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheMainArgumentSaysWhatACallWasAbout(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"command":"go test\n ./...","description":"Run the tests"}`: "go test ./...",
		`{"command":["bash","-c","ls"],"cwd":"/w"}`:                   "bash -c ls",
		`{"pattern":"isAncestor","path":"/w"}`:                        "isAncestor",
		`{"file_path":"/w/a.go","old_string":"a"}`:                    "/w/a.go",
		`{"command":"","path":"/w"}`:                                  "/w",
		`{"command":7,"todos":[]}`:                                    `{"command":7,"todos":[]}`,
		`"*** Begin Patch"`:                                           "*** Begin Patch",
		`not JSON`:                                                    "not JSON",
		`{}`:                                                          "",
		``:                                                            "",
		`{"query":"` + strings.Repeat("x", 300) + `"}`:                strings.Repeat("x", maxAbout-1) + "…",
	} {
		require.Equal(t, want, mainArgument(arguments), arguments)
	}
}
