package main

import (
	"os/exec"
	"syscall"
)

// tie makes a process end with this one, and keeps a Ctrl-C in the terminal from it.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
