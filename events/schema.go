package events

import "embed"

//go:embed schemas/*.json
var schemas embed.FS

// Schema returns the JSON Schema (draft 2020-12) of an event type's data; false if the type is not
// in the vocabulary.
//
// A schema can't express everything that [Record] checks: last_seq and last_turn are not below
// their first_, ids are limited in bytes where the schema counts characters, an integer written as
// 1.0 or beyond 64 bits is not accepted, and no member may occur twice. In one respect Record is
// more lenient: null inside a list of strings is "".
func Schema(eventType string) ([]byte, bool) {
	if _, known := prototypes[eventType]; !known {
		return nil, false
	}
	schema, err := schemas.ReadFile("schemas/" + eventType + ".json")
	return schema, err == nil
}
