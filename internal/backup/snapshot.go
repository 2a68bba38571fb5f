package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/s2"
	"github.com/nats-io/nats-server/v2/server/archive"
	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/events"
)

// entry is one message of a snapshot.
type entry struct {
	Seq     uint64
	Time    int64 // nanoseconds
	Subject string
	Header  []byte // as NATS transmits them
	Data    []byte
}

func (e *entry) messageID() string {
	if len(e.Header) == 0 {
		return ""
	}
	header, err := nats.DecodeHeadersMsg(e.Header)
	if err != nil {
		return ""
	}
	return header.Get(events.HeaderMsgID)
}

// extent is the state of the stream that a snapshot begins with.
type extent struct {
	First uint64 `json:"first_seq"`
	Last  uint64 `json:"last_seq"`
}

// errBlock: the bytes of a block are not those of the manifest.
var errBlock = errors.New("was altered or cut off")

// blocks hashes what is read, 8 MiB at a time.
type blocks struct {
	r      io.Reader
	want   []string // nil while a backup is made
	sums   []string
	hash   hash.Hash
	inside int   // bytes of the current block
	offset int64 // where the current block begins
	read   func(bytes int)
}

func (b *blocks) Read(p []byte) (int, error) {
	if len(p) > blockSize-b.inside {
		p = p[:blockSize-b.inside]
	}
	n, err := b.r.Read(p)
	b.hash.Write(p[:n])
	b.inside += n
	if b.read != nil {
		b.read(n)
	}
	if b.inside == blockSize || err == io.EOF && b.inside > 0 {
		if sealed := b.seal(); sealed != nil {
			return 0, sealed
		}
	}
	if err == io.EOF && b.want != nil && len(b.sums) != len(b.want) {
		return 0, errBlock
	}
	return n, err
}

func (b *blocks) seal() error {
	sum := hex.EncodeToString(b.hash.Sum(nil))
	if b.want != nil && (len(b.sums) >= len(b.want) || b.want[len(b.sums)] != sum) {
		return errBlock
	}
	b.sums = append(b.sums, sum)
	b.offset += int64(b.inside)
	b.inside = 0
	b.hash.Reset()
	return nil
}

// scan reads a snapshot, checks that it is complete and in order, and describes it. want are the
// hashes of its blocks, or nil. yield and read may be nil; an error of yield ends the scan.
//
// It returns a [*DamagedError] for everything that is wrong with the file.
func scan(path string, want []string, yield func(*entry) error, read func(bytes int)) (Manifest, error) {
	f, err := os.Open(path)
	if err != nil {
		return Manifest{}, err
	}
	defer func() { _ = f.Close() }()
	s := scanner{blocks: blocks{r: f, want: want, hash: sha256.New(), read: read}, yield: yield, content: sha256.New(), identities: sha256.New()}
	err = s.run()
	if stopped, ok := errors.AsType[*stoppedError](err); ok {
		return s.m, stopped.err
	}
	if err != nil {
		return s.m, &DamagedError{File: path, Offset: s.blocks.offset, After: s.last, Reason: err.Error()}
	}
	s.m.Content, s.m.Identities = hex.EncodeToString(s.content.Sum(nil)), hex.EncodeToString(s.identities.Sum(nil))
	s.m.Blocks = s.blocks.sums
	return s.m, nil
}

// stoppedError is an error of the caller's function, not of the file.
type stoppedError struct{ err error }

func (e *stoppedError) Error() string { return e.err.Error() }

type scanner struct {
	blocks              blocks
	yield               func(*entry) error
	content, identities hash.Hash
	m                   Manifest
	last                uint64
}

func (s *scanner) run() error {
	raw := s2.NewReader(&s.blocks)
	r := archive.NewReader(raw)
	if err := s.begin(r); err != nil {
		return err
	}
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return errors.New("ends in the middle")
		}
		if err != nil {
			return unreadable(err)
		}
		if h.Name == "" && h.Sequence == 0 { // the server's mark of a complete snapshot
			break
		}
		if err := s.message(r, h); err != nil {
			return err
		}
	}
	if s.m.Events == 0 {
		s.m.First = 0
	}
	// Read to the end, for the last hash.
	if n, err := io.Copy(io.Discard, raw); err != nil || n > 0 {
		return unreadable(errors.Join(err, errors.New("bytes follow the end")))
	}
	s.m.Bytes = s.blocks.offset
	return nil
}

// begin reads the state that every snapshot begins with.
func (s *scanner) begin(r *archive.Reader) error {
	h, err := r.Next()
	if err != nil {
		return unreadable(err)
	}
	if h.Name != "state.json" {
		return fmt.Errorf("begins with %q, not with the state of the stream", h.Name)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return unreadable(err)
	}
	var state extent
	if err := json.Unmarshal(raw, &state); err != nil {
		return unreadable(err)
	}
	s.m.Last = state.Last
	return nil
}

func (s *scanner) message(r *archive.Reader, h *archive.Header) error {
	if h.Sequence <= s.last || h.Sequence > s.m.Last || h.HeaderSize < 0 || h.PayloadSize < 0 || h.HeaderSize+h.PayloadSize > 2*events.MaxEventBytes {
		return fmt.Errorf("has sequence %d where it can't be", h.Sequence)
	}
	body := make([]byte, h.HeaderSize+h.PayloadSize)
	if _, err := io.ReadFull(r, body); err != nil {
		return unreadable(err)
	}
	e := entry{h.Sequence, h.Timestamp, h.Name, body[:h.HeaderSize], body[h.HeaderSize:]}
	if s.m.Events == 0 {
		s.m.First = e.Seq
	}
	s.m.Events++
	s.last = e.Seq

	var sizes [40]byte
	for i, n := range []uint64{e.Seq, uint64(e.Time), uint64(len(e.Subject)), uint64(len(e.Header)), uint64(len(e.Data))} {
		binary.BigEndian.PutUint64(sizes[8*i:], n)
	}
	s.content.Write(sizes[:])
	s.content.Write([]byte(e.Subject))
	s.content.Write(body)
	s.identities.Write(sizes[:8])
	s.identities.Write([]byte(e.messageID() + "\n"))
	if s.yield != nil {
		if err := s.yield(&e); err != nil {
			return &stoppedError{err}
		}
	}
	return nil
}

// unreadable keeps the finding of a block's hash, which is more exact than what the decoder says.
func unreadable(err error) error {
	if errors.Is(err, errBlock) {
		return errBlock
	}
	return fmt.Errorf("can't be read (%w)", err)
}

// Verify reads a whole backup and compares it with its manifest. read is called with the bytes
// read, and may be nil.
//
// It returns [ErrNotABackup] or a [*DamagedError].
func Verify(dir string, read func(bytes int)) (Manifest, error) {
	m, _, err := verify(dir, nil, read)
	return m, err
}

// verify also returns the configuration of the stream.
func verify(dir string, yield func(*entry) error, read func(bytes int)) (Manifest, []byte, error) {
	want, err := readManifest(dir)
	if err != nil {
		return want, nil, err
	}
	for _, name := range []string{configFile, snapshotFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			return want, nil, &DamagedError{File: dir, Reason: "lacks " + name}
		}
	}
	path := filepath.Join(dir, configFile)
	config, err := os.ReadFile(path)
	if err != nil {
		return want, nil, err
	}
	if sum := sha256.Sum256(config); hex.EncodeToString(sum[:]) != want.Config {
		return want, nil, &DamagedError{File: path, Reason: "was altered"}
	}
	sums := want.Blocks
	if sums == nil {
		sums = []string{}
	}
	got, err := scan(filepath.Join(dir, snapshotFile), sums, yield, read)
	if err != nil {
		return want, nil, err
	}
	for name, pair := range map[string][2]any{
		"first_seq": {got.First, want.First}, "last_seq": {got.Last, want.Last}, "events": {got.Events, want.Events}, "bytes": {got.Bytes, want.Bytes},
		"content_sha256": {got.Content, want.Content}, "identities_sha256": {got.Identities, want.Identities},
	} {
		if pair[0] != pair[1] {
			return want, nil, &DamagedError{File: filepath.Join(dir, manifestFile), Reason: fmt.Sprintf("says %s %v, the snapshot has %v", name, pair[1], pair[0])}
		}
	}
	return want, config, nil
}

// same reports whether a message of the log is the one of the backup.
func (e *entry) same(subject string, header nats.Header, data []byte) bool {
	return e.Subject == subject && e.messageID() == header.Get(events.HeaderMsgID) && bytes.Equal(e.Data, data)
}
