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
			if r.seq()&removedBit != 0 {
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
	for _, b := range slices.Backward(blocks) {
		if first, err := b.first(); err != nil {
			return err
		} else if first != 0 && first <= seq {
			return b.overwrite(seq)
		}
	}
	return nil
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

// overwrite overwrites a message as the server does.
func (b block) overwrite(seq uint64) error {
	text, err := os.ReadFile(b.path)
	if err != nil {
		return err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s-%d", natsdeploy.Stream, b.index))
	for r := range records(text) {
		if r.seq() != seq {
			continue
		}
		if sum, err := r.sum(key[:]); err != nil || !bytes.Equal(sum, r[len(r)-recordHash:]) {
			return err
		}
		binary.LittleEndian.PutUint32(r, uint32(len(r)))
		binary.LittleEndian.PutUint64(r[4:], seq|erasedBit)
		clear(r[12:recordHeader]) // its time, and the length of its subject
		_, _ = rand.Read(r[recordHeader:])
		sum, err := r.sum(key[:])
		if err != nil {
			return err
		}
		copy(r[len(r)-recordHash:], sum)
		return replaceFile(b.path, text)
	}
	return nil
}

// replaceFile replaces a file as a whole, so that a kill leaves the old one or the new one.
func replaceFile(path string, text []byte) error {
	temporary := path + ".tmp" // as the server calls it
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	if err := syncFile(temporary); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
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

// sum returns the hash that a record ends with.
func (r record) sum(key []byte) ([]byte, error) {
	hash, err := highwayhash.New64(key)
	if err != nil {
		return nil, err
	}
	_, _ = hash.Write(r[4:20])
	body := r[recordHeader : len(r)-recordHash]
	if n := int(binary.LittleEndian.Uint16(r[20:])); binary.LittleEndian.Uint32(r)&headersBit != 0 && n+4 <= len(body) {
		_, _ = hash.Write(body[:n])
		body = body[n+4:]
	}
	_, _ = hash.Write(body)
	return hash.Sum(nil), nil
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
