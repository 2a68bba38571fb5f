//go:build unix && !linux

package main

import (
	"os/exec"
	"syscall"
)

// tie shields a process from a Ctrl-C in the terminal.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
