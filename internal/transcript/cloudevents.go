package transcript

import "mneme/events"

// cloudEvents reads events as they were published: a line is one in the CloudEvents
// JSON format, with its own id, source, time and extensions.
type cloudEvents struct{}

func (cloudEvents) end(*batch)                   {}
func (cloudEvents) refuse(out *batch, err error) { out.refuse(err) }

func (cloudEvents) value(out *batch, raw []byte) error {
	e, err := events.DecodeStructured(raw)
	if err != nil {
		return err
	}
	if _, err := events.Record(e); err != nil {
		return err
	}
	out.add(e)
	return nil
}
