package summary

// Which results of tools are condensed, and to what: those over so many characters that
// are older than the last few messages.
const (
	CondenseAbove  = 1_000
	CondensedChars = 800
	FreshMessages  = 3
)
