package events

// Extensions that mneme adds to an event whose data it changed before it was published. They are attributes
// of CloudEvents like any other: a reader that doesn't know them can ignore them.
const (
	// ExtensionContexts lists the ids of the contexts that mneme had shown to the agent, and whose
	// text was removed from the event's data: with commas, in order, each once, cut at [MaxExtensionBytes].
	ExtensionContexts = "mnemecontexts"

	// ExtensionRedaction is the version of the rules by which secrets in the event's data were replaced with
	// [redacted:…].
	ExtensionRedaction = "mnemeredaction"
)
