//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// tie keeps a Ctrl-C in the terminal from a process.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
