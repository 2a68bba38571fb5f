package events

import (
	"slices"
	"strings"
)

// Foreign is the payload of an event whose type another project defined, such as
// com.example.build.finished. The log keeps it like any other event of its conversation;
// projections without a reducer for its type skip it. Only the rules of CloudEvents and the limits
// of this package apply to it: Data may have any content type, or be empty.
type Foreign struct {
	Type string
	Data []byte // as published; a reducer decodes it
}

// EventType implements [Payload].
func (f *Foreign) EventType() string { return f.Type }

// Validate implements [Payload].
func (f *Foreign) Validate() error {
	if !IsForeign(f.Type) {
		return invalid("type", "%q is not a reverse domain name of another project, such as com.example.build.finished", f.Type)
	}
	return nil
}

// Key implements [Payload]. It is empty: only the event's own identity counts.
func (*Foreign) Key() string { return "" }

// IsForeign reports whether a type belongs to another project: a reverse domain name of at least
// three labels (letters, digits, "-" and "_"), outside of dev.mneme. Other names are refused,
// because a short name, or a misspelled one of ours, would otherwise be skipped unnoticed.
func IsForeign(eventType string) bool {
	labels := strings.Split(eventType, ".")
	if len(labels) < 3 || strings.EqualFold(labels[0]+"."+labels[1]+".", typePrefix) {
		return false
	}
	return !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") != ""
	})
}
