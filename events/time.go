package events

import (
	"bytes"
	"errors"
	"time"
)

var errTime = errors.New("is not RFC 3339, such as 2026-01-31T15:04:05Z")

// ParseTime reads a time in any form that RFC 3339 allows: "t" and "z" may be lower case, and the
// last minute of a month in UTC can have a second 60.
//
// A Go time cannot be a leap second. It becomes the last nanosecond of the previous second,
// whatever its fraction, so that it stays on the same day and is not after any later time.
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
