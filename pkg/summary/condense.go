package summary

// Tool results longer than CondenseAbove characters are condensed to CondensedChars once
// FreshMessages newer messages exist.
const (
	CondenseAbove  = 1_000
	CondensedChars = 800
	FreshMessages  = 3
)
