//go:build unix && !linux

package neo4jdeploy

import (
	"os/exec"
	"syscall"
)

// tie shields the process from a Ctrl-C in the terminal.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
