package transcript

import (
	"fmt"
	"strconv"

	"mneme.dev/mneme/events"
)

// SequenceExtension is the extension in which an export records the sequence that an event
// had in its log, as a decimal number. It is not part of the event. Summaries refer to
// ranges of sequences, so an import into another log needs it to translate them.
const SequenceExtension = "mnemesequence"

// cloudEvents reads events as they were published: each line is a CloudEvent in JSON format
// with its own id, source, time and extensions.
type cloudEvents struct{ immediate }

func (cloudEvents) value(out *batch, raw []byte) error {
	e, err := events.DecodeStructured(raw)
	if err != nil {
		return err
	}
	if _, err := events.Record(e); err != nil {
		return err
	}
	var seq uint64
	if value, ok := e.Extensions[SequenceExtension]; ok {
		text, _ := value.(string)
		if seq, err = strconv.ParseUint(text, 10, 63); err != nil {
			return fmt.Errorf("%s: %.32q is not a sequence", SequenceExtension, fmt.Sprint(value))
		}
		delete(e.Extensions, SequenceExtension)
	}
	out.add(e)
	out.items[len(out.items)-1].Seq = seq
	return nil
}
