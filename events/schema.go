package events

import "embed"

//go:embed schemas/*.json
var schemas embed.FS

// Schema is the JSON Schema (draft 2020-12) of an event type's data; false if the
// type is not of the vocabulary.
//
// A schema can't say everything that [Record] checks: last_seq and last_turn are
// not below their first_, ids are limited in bytes where the schema counts
// characters, an integer written as 1.0 or beyond 64 bits is none here, and no
// member may be given twice. The other way round, Record is more lenient in one
// thing: null inside of a list of strings is "".
func Schema(eventType string) ([]byte, bool) {
	if _, known := prototypes[eventType]; !known {
		return nil, false
	}
	schema, err := schemas.ReadFile("schemas/" + eventType + ".json")
	return schema, err == nil
}
