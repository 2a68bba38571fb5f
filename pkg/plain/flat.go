package plain

import "strings"

// Flat returns a text on one line: line ends and other white space become single spaces.
func Flat(text string) string { return strings.Join(strings.Fields(Lines(text)), " ") }
