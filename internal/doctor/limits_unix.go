//go:build unix

package doctor

import (
	"fmt"
	"syscall"
)

// minFiles is the least number of open files that a server should be allowed: each block of
// the log, each connection and each reader of a read model takes one.
const minFiles = 1024

func (e *examination) openFiles() {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		e.add("open files", Warning, "the limit can't be read: "+err.Error(), "")
		return
	}
	detail := fmt.Sprintf("a process started here may have %d files open", limit.Cur)
	if limit.Cur < minFiles {
		e.add("open files", Warning, detail+fmt.Sprintf(", a busy server needs %d", minFiles), "raise the limit before you start mneme: ulimit -n 4096, or LimitNOFILE= in systemd")
		return
	}
	e.add("open files", OK, detail, "")
}
