//go:build unix

package main

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// whenNobodyReads calls end once the reader of a pipe has gone. A command that waits
// for something to print would notice only at its next line, perhaps never.
func whenNobodyReads(ctx context.Context, w io.Writer, end func()) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(f.Fd())}} // an error of the pipe is told unasked
		n, err := unix.Poll(poll, 500)
		if err != nil && err != unix.EINTR {
			return
		}
		if n > 0 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0 {
			end()
			return
		}
	}
}
