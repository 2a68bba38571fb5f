package events

import (
	"bytes"
	"errors"
	"time"
)

var errTime = errors.New("is not RFC 3339, such as 2026-01-31T15:04:05Z")

// ParseTime reads a time as RFC 3339 has it, in all that it allows: "t" and "z" may be
// small letters, and a minute in which a month ends in UTC can have a second 60.
//
// No Go time has a leap second. It becomes the last nanosecond of the second before: the
// same for every fraction of it, on the same day, and not after any time that follows.
func ParseTime(text string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return t, nil
	}
	const date, leap = len("2006-01-02"), len("2006-01-02T15:04:")
	b := []byte(text)
	if len(b) <= leap+2 || b[date] != 't' && b[date] != 'T' {
		return time.Time{}, errTime
	}
	b[date] = 'T'
	if last := len(b) - 1; b[last] == 'z' {
		b[last] = 'Z'
	}
	second60 := bytes.Equal(b[leap:leap+2], []byte("60"))
	if second60 {
		copy(b[leap:], "59")
	}
	t, err := time.Parse(time.RFC3339Nano, string(b))
	if err != nil {
		return time.Time{}, errTime
	}
	if !second60 {
		return t, nil
	}
	t = t.Truncate(time.Second)
	if next := t.UTC().Add(time.Second); next.Day() != 1 || next.Hour() != 0 || next.Minute() != 0 || next.Second() != 0 {
		return time.Time{}, errTime
	}
	return t.Add(time.Second - time.Nanosecond), nil
}
