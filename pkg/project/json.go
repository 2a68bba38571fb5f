package project

import (
	"strconv"

	json "github.com/go-json-experiment/json/v1"

	"mneme.dev/mneme/events"
)

// Encode returns a change or a digest as it is stored.
func Encode(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // texts and numbers always marshal
		panic(err)
	}
	return string(raw)
}

// DecodeDigest is the inverse of [Encode].
func DecodeDigest(text string) (d Digest, err error) {
	if text != "" {
		err = json.Unmarshal([]byte(text), &d)
	}
	return d, err
}

// decodeChange is the inverse of [Encode].
func decodeChange(text string) (c Change, err error) {
	err = json.Unmarshal([]byte(text), &c)
	return c, err
}

// Hash returns the hash of a conversation's changes in their order. Sequences do not count, see projection.ReadStore;
// nor does where the conversation was placed, which depends on them.
func Hash(id events.ConversationID, deleted bool, changes []string) (events.Digest, error) {
	parts := []string{id.Tenant, id.ID, strconv.FormatBool(deleted)}
	for _, text := range changes {
		c, err := decodeChange(text)
		if err != nil {
			return events.Digest{}, err
		}
		c.Placed = false
		parts = append(parts, Encode(&c))
	}
	return events.DigestOf(parts...), nil
}
