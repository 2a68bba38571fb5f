package mnemetest

import (
	"flag"
	"strconv"
	"testing"
)

// TryLaws sets with how many cases rapid tries each law of a package, unless
// -rapid.checks says it: usually, and with -short. With [All] it is rapid's own number.
// It is for TestMain and reads the flags.
func TryLaws(usually, short int) {
	flag.Parse()
	chosen := All
	flag.Visit(func(f *flag.Flag) { chosen = chosen || f.Name == "rapid.checks" })
	switch {
	case chosen:
		return
	case testing.Short():
		usually = short
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(usually)); err != nil {
		panic(err) // the package does not use rapid
	}
}
