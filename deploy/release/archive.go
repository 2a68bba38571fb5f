package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// file is a file of an archive.
type file struct {
	from    string
	program bool // executable
}

// writeArchive writes files in the order of their names, below a folder, all of them made at the same
// time by nobody in particular.
func writeArchive(path, folder string, made time.Time, files map[string]file) (err error) {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	buffered := bufio.NewWriter(out)
	compressed, err := gzip.NewWriterLevel(buffered, gzip.BestCompression)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := add(archive, folder+"/"+name, made, files[name]); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), compressed.Close(), buffered.Flush())
}

func add(archive *tar.Writer, name string, made time.Time, f file) error {
	in, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // it was only read
	info, err := in.Stat()
	if err != nil {
		return err
	}
	mode := int64(0o644)
	if f.program {
		mode = 0o755
	}
	if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size(), ModTime: made, Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.Copy(archive, in)
	return err
}
