//go:build race

package mnemetest

// Race says that the race detector is on, under which everything takes several times longer.
const Race = true
