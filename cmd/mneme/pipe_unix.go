//go:build unix

package main

import (
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// whenNobodyReads calls end once the reader of a pipe is gone. Without it a waiting command
// would notice only when it prints its next line, perhaps never.
func whenNobodyReads(ctx context.Context, w io.Writer, end func()) {
	f, ok := w.(*os.File)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		poll := []unix.PollFd{{Fd: int32(f.Fd())}} // poll reports errors without being asked to
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
