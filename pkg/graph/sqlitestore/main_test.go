package sqlitestore

import (
	"flag"
	"os"
	"testing"

	"mneme/internal/mnemetest"
)

// lawChecks is how many histories a law is tried with, unless -rapid.checks says how many:
// all that rapid tries with MNEME_TEST_ALL=1. With -short there are fewer, for the race
// detector looks at what all of them do alike.
const (
	lawChecks      = "40"
	lawChecksShort = "10"
)

func TestMain(m *testing.M) {
	flag.Parse()
	chosen := mnemetest.All
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	switch {
	case chosen:
	case testing.Short():
		_ = flag.Set("rapid.checks", lawChecksShort)
	default:
		_ = flag.Set("rapid.checks", lawChecks)
	}
	os.Exit(m.Run())
}
