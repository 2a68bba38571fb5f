package main

import (
	"os/exec"
	"syscall"
)

// tie makes a process end with this one, and shields it from a Ctrl-C in the terminal.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
