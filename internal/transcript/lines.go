package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
)

// MaxLineBytes is the longest line that is read, with its newline: 16 MiB, twice
// the largest event, since logs repeat a result beside itself. A longer line is
// refused; the lines after it are read. [Read] holds at most a few times as much.
const MaxLineBytes = 16 << 20

// maxBlank is how many blank lines may follow each other.
const maxBlank = 100_000

// ErrBlank says that a recording was not read to its end, because it goes on with blank
// lines. A few kilobytes of gzip can hold hundreds of millions of them.
var ErrBlank = fmt.Errorf("more than %d blank lines follow each other: this is no recording, the rest is not read", maxBlank)

var errCut = errors.New("the recording ends inside this line")

// lines cuts a reader into lines. It unpacks gzip, told by its first two bytes.
type lines struct {
	src    *source
	buf    *bufio.Reader
	broken error // of the gzip header
	long   []byte
	no     int
	done   bool
}

func newLines(ctx context.Context, r io.Reader) *lines {
	l := &lines{src: &source{ctx: ctx, r: r}}
	plain := bufio.NewReaderSize(l.src, 64<<10)
	l.buf = plain
	if magic, _ := plain.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		packed, err := gzip.NewReader(plain)
		if err != nil {
			l.broken = err
			return l
		}
		l.buf = bufio.NewReaderSize(packed, 256<<10)
	}
	return l
}

// next returns the next line that is not blank, without white space around it. It
// is valid until the next call. cut tells that no newline ended it.
//
// The error is io.EOF after the last line; a *LineError for a line that is too
// long or lies where packed data is damaged, then next can be called again; or
// the reader's own or [ErrBlank], then it can't.
func (l *lines) next() (line []byte, cut bool, err error) {
	for blank := 0; !l.done; blank++ {
		if blank > maxBlank {
			return nil, false, ErrBlank
		}
		l.no++
		raw, size, err := l.read()
		l.done = err != nil
		switch {
		case l.src.err != nil:
			return nil, false, l.src.err
		case err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return nil, false, &LineError{Line: l.no, Reason: "the packed data is cut off or damaged here: " + err.Error(), Err: err}
		case size > MaxLineBytes:
			return nil, false, &LineError{Line: l.no, Reason: fmt.Sprintf("is %d bytes long, the limit is %d", size, MaxLineBytes)}
		}
		if l.no == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		}
		if line := bytes.TrimSpace(raw); len(line) > 0 {
			return line, l.done, nil
		}
	}
	return nil, false, io.EOF
}

// read returns one line with its newline and its size. A line over the limit is
// counted to its end, its bytes are not kept.
func (l *lines) read() (raw []byte, size int, err error) {
	if l.broken != nil {
		return nil, 0, l.broken
	}
	part, err := l.buf.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		return part, len(part), err
	}
	l.long = l.long[:0]
	for {
		size += len(part)
		if size <= MaxLineBytes {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, size, err
		}
		part, err = l.buf.ReadSlice('\n')
	}
}

// source remembers how the reader itself failed, so that it is not taken for
// damage of what it holds. It ends with its context.
type source struct {
	ctx context.Context
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err = s.ctx.Err(); s.err != nil {
		return 0, s.err
	}
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
