package mnemetest

import (
	"flag"
	"strconv"
	"testing"
)

// TryLaws sets how many cases rapid tries for each law of a package, unless -rapid.checks does: one
// number normally, one with -short, one with [All]. Call it from TestMain. It parses the flags.
func TryLaws(usually, short, all int) {
	flag.Parse()
	chosen := false
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	switch {
	case chosen:
		return
	case All:
		usually = all
	case testing.Short():
		usually = short * 5 // rapid itself divides the number by 5
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(usually)); err != nil {
		panic(err) // the package does not use rapid
	}
}
