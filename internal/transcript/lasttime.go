package transcript

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strconv"
	"time"

	"mneme.dev/mneme/events"
)

// searchedTail is how much of the end of a recording is searched for its last time.
const searchedTail = 256 << 10

// stamp is a time in a line, as most formats have it, some in milliseconds. The quotes around one inside a string are escaped.
var stamp = regexp.MustCompile(`"(?:timestamp|time)"\s*:\s*(?:"([^"\\]{16,40})"|([0-9]{13})\b)`)

// LastTime returns the last time that a recording holds near its end. Unlike the time at which the file changed, it is the
// same in a copy. It is zero if there is none, as in databases and formats without times, or if the file can't be read.
func (f File) LastTime(ctx context.Context) (last time.Time) {
	in, err := f.Open()
	if err != nil {
		return last
	}
	defer func() { _ = in.Close() }()
	if IsDatabase(in) { // its sessions are in no order
		return last
	}
	head := make([]byte, len(zstdMagic))
	if n, _ := in.ReadAt(head, 0); !isCompressed(head[:n]) {
		_, _ = in.Seek(max(0, f.Size-searchedTail), io.SeekStart) // otherwise it is read from its start, which takes longer
	}
	l := newLines(ctx, in)
	defer l.close()
	var tail []byte
	for chunk := make([]byte, searchedTail); ; {
		n, err := io.ReadFull(l.buf, chunk)
		tail = append(tail[max(0, len(tail)-(searchedTail-n)):], chunk[:n]...)
		if err != nil {
			break
		}
	}
	for _, found := range stamp.FindAllSubmatch(tail, -1) {
		text := string(found[1])
		if ms, err := strconv.ParseInt(string(found[2]), 10, 64); err == nil {
			text = milliseconds(ms)
		}
		if at, err := events.ParseTime(text); err == nil {
			last = at
		}
	}
	return last
}

func isCompressed(head []byte) bool {
	return bytes.HasPrefix(head, gzipMagic) || bytes.HasPrefix(head, zstdMagic)
}
