package embedded

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/minio/highwayhash"

	natsdeploy "mneme.dev/mneme/deploy/nats"
)

// overwriteRemoved overwrites the message that the server removed last, if it is still in its file. To erase a message,
// the server notes first that it is removed, and overwrites it then. After a kill in between, it would leave the message
// there, because it can't be asked to overwrite what is removed. Whatever it can't read, it leaves as it is.
func overwriteRemoved(streamDir string) error {
	blocks, err := blocksOf(streamDir)
	if err != nil {
		return err
	}
	var seq uint64
	for _, b := range slices.Backward(blocks[max(0, len(blocks)-2):]) { // the note is at the end of the log, or a new block has begun since
		text, err := os.ReadFile(b.path)
		if err != nil {
			return err
		}
		for r := range records(text) {
			if r.seq()&removedBit != 0 && r.intact(b.key()) {
				seq = r.seq() &^ removedBit
			}
		}
		if seq != 0 {
			break
		}
	}
	if seq == 0 {
		return nil
	}
	var failed error
	n := sort.Search(len(blocks), func(i int) bool { // a large log has thousands of blocks
		for _, b := range blocks[i:] {
			first, err := b.first()
			if err != nil {
				failed = err
			}
			if first != 0 {
				return first > seq
			}
		}
		return true
	})
	if failed != nil || n == 0 {
		return failed
	}
	return blocks[n-1].overwrite(seq)
}

// block is a file of messages.
type block struct {
	path  string
	index int
}

// blocksOf lists the blocks of a stream in their order.
func blocksOf(streamDir string) (list []block, err error) {
	files, err := os.ReadDir(filepath.Join(streamDir, "msgs"))
	if err != nil {
		return nil, ignoreMissing(err)
	}
	for _, f := range files {
		name, ok := strings.CutSuffix(f.Name(), ".blk")
		if index, err := strconv.Atoi(name); ok && err == nil {
			list = append(list, block{filepath.Join(streamDir, "msgs", f.Name()), index})
		}
	}
	slices.SortFunc(list, func(a, b block) int { return cmp.Compare(a.index, b.index) })
	return list, nil
}

// first returns the sequence of the first message in the block, 0 if it has none.
func (b block) first() (uint64, error) {
	f, err := os.Open(b.path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	head := make(record, recordHeader)
	if _, err := io.ReadFull(f, head); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	if head.seq()&removedBit == 0 {
		return head.seq() &^ erasedBit, nil
	}
	text, err := os.ReadFile(b.path)
	for r := range records(text) {
		if r.seq()&removedBit == 0 {
			return r.seq() &^ erasedBit, nil
		}
	}
	return 0, err
}

// key returns the key of the hashes in the block.
func (b block) key() [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%s-%d", natsdeploy.Stream, b.index))
}

// overwrite overwrites a message as the server does.
func (b block) overwrite(seq uint64) error {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	for r := range records(text) {
		if r.seq() != seq {
			continue
		}
		if !r.intact(b.key()) {
			return nil
		}
		binary.LittleEndian.PutUint32(r, uint32(len(r)))
		binary.LittleEndian.PutUint64(r[4:], seq|erasedBit)
		clear(r[12:recordHeader]) // its time, and the length of its subject
		_, _ = rand.Read(r[recordHeader:])
		copy(r[len(r)-recordHash:], r.sum(b.key()))
		return replaceFile(b.path, text)
	}
	return nil
}

// replaceFile replaces a file as a whole, so that a kill leaves the old one or the new one.
func replaceFile(path string, text []byte) error {
	temporary := path + ".tmp" // as the server calls it
	err := os.WriteFile(temporary, text, 0o600)
	if err == nil {
		err = syncFile(temporary)
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = os.Remove(temporary) // the server would leave it, and the disk may be full
		return err
	}
	return syncFile(filepath.Dir(path))
}

// A record is a message in a block: its length, sequence and time, the length of its subject, the subject, the length of
// its headers if it has some, headers and body, and a hash of all but the lengths. A record without a subject notes that
// a message is removed.
type record []byte

const (
	recordHeader = 22
	recordHash   = 8

	headersBit = 1 << 31 // of the length
	removedBit = 1 << 62 // of the sequence: the record notes that the message is removed
	erasedBit  = 1 << 63 // of the sequence: the message is overwritten
)

func (r record) seq() uint64 { return binary.LittleEndian.Uint64(r[4:]) }

// intact reports whether a record was read as it was written. The server drops one that is not.
func (r record) intact(key [sha256.Size]byte) bool {
	return bytes.Equal(r.sum(key), r[len(r)-recordHash:])
}

// sum returns the hash that a record ends with.
func (r record) sum(key [sha256.Size]byte) []byte {
	hash, _ := highwayhash.New64(key[:]) // fails only for a key of another length
	_, _ = hash.Write(r[4:20])
	body := r[recordHeader : len(r)-recordHash]
	if n := int(binary.LittleEndian.Uint16(r[20:])); binary.LittleEndian.Uint32(r)&headersBit != 0 && n+4 <= len(body) {
		_, _ = hash.Write(body[:n])
		body = body[n+4:]
	}
	_, _ = hash.Write(body)
	return hash.Sum(nil)
}

// records yields the records of a block, up to the first one whose length makes no sense.
func records(text []byte) iter.Seq[record] {
	return func(yield func(record) bool) {
		for len(text) >= recordHeader+recordHash {
			n := int(binary.LittleEndian.Uint32(text) &^ headersBit)
			if n < recordHeader+recordHash || n > len(text) || !yield(text[:n:n]) {
				return
			}
			text = text[n:]
		}
	}
}
