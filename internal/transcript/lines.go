package transcript

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MaxLineBytes is the longest accepted line, newline included: 16 MiB. That is twice the
// largest event because recordings can hold a result twice. A longer line is refused and
// the lines after it are read. [Read] holds at most a few times as much in memory. A line
// that may hold a whole session can be as long as [MaxDocumentBytes].
const MaxLineBytes = 16 << 20

// maxBlank is how many blank lines in a row are accepted.
const maxBlank = 100_000

// ErrBlank means that a recording was not read to its end because of too many blank lines in a
// row. A few kilobytes of gzip can hold hundreds of millions of them.
var ErrBlank = fmt.Errorf("more than %d blank lines follow each other: this is not a recording; the rest is not read", maxBlank)

var errCut = errors.New("the recording ends inside this line")

// lines splits a reader into lines. It decompresses gzip and Zstandard, recognized by their first
// bytes.
type lines struct {
	src    *source
	buf    *bufio.Reader
	broken error         // error in the header of compressed data
	zstd   *zstd.Decoder // nil unless the data is compressed with Zstandard
	limit  int           // of a line
	raw    bool          // lines are returned as they are, blank ones too
	long   []byte
	no     int
	done   bool
}

// How compressed data begins.
var (
	zstdMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}
	gzipMagic = []byte{0x1f, 0x8b}
)

func newLines(ctx context.Context, r io.Reader) *lines {
	l := &lines{src: &source{ctx: ctx, r: r}, limit: MaxLineBytes}
	plain := bufio.NewReaderSize(l.src, 64<<10)
	l.buf = plain
	if magic, _ := plain.Peek(len(zstdMagic)); bytes.Equal(magic, zstdMagic) {
		// A window that needs more memory than this is refused as damaged.
		packed, err := zstd.NewReader(plain, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(64<<20))
		if err != nil {
			l.broken = err
			return l
		}
		l.zstd = packed
		l.buf = bufio.NewReaderSize(packed, 256<<10)
		return l
	}
	if magic, _ := plain.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		packed, err := gzip.NewReader(plain)
		if err != nil {
			l.broken = err
			return l
		}
		l.buf = bufio.NewReaderSize(packed, 256<<10)
	}
	return l
}

// close releases what a decoder holds.
func (l *lines) close() {
	if l.zstd != nil {
		l.zstd.Close()
	}
}

// next returns the next line that is not blank, without surrounding white space. The line
// is valid until the next call. cut is true if the line does not end in a newline.
//
// The error is io.EOF after the last line. It is a *LineError for a line that is too long
// or in a damaged part of compressed data; next can then be called again. Any other error,
// the reader's own or [ErrBlank], is final.
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
			return nil, false, &LineError{Line: l.no, Reason: "the compressed data is truncated or damaged here: " + err.Error(), Err: err}
		case size > l.limit:
			return nil, false, &LineError{Line: l.no, Reason: fmt.Sprintf("is %d bytes long, the limit is %d", size, l.limit)}
		}
		if l.no == 1 {
			raw = bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf"))
		}
		if l.raw && !(l.done && len(raw) == 0) {
			return bytes.TrimRight(raw, "\r\n"), l.done, nil
		}
		line := bytes.TrimSpace(raw)
		// After a power loss zeros may stand where lines were, and the next line behind them.
		if rest := bytes.TrimSpace(bytes.Trim(line, "\x00")); len(rest) > 0 {
			line = rest
		}
		if len(line) > 0 {
			return line, l.done, nil
		}
	}
	return nil, false, io.EOF
}

// read returns one line with its newline and its size. For a line over the limit only the
// size is right; its bytes are dropped.
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
		if size <= l.limit {
			l.long = append(l.long, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.long, size, err
		}
		part, err = l.buf.ReadSlice('\n')
	}
}

// source remembers the reader's own error, so that it is not mistaken for damaged data. It
// stops when its context ends.
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
