package sqlitestore

import (
	"flag"
	"os"
	"testing"
)

// lawChecksShort is how many histories a law is tried with when -short is set, unless
// -rapid.checks says how many: the race detector looks at what all of them do alike.
const lawChecksShort = "10"

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	if testing.Short() && !chosen {
		_ = flag.Set("rapid.checks", lawChecksShort)
	}
	os.Exit(m.Run())
}
