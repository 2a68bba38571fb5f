//go:build unix && !linux

package neo4jdeploy

import (
	"os/exec"
	"syscall"
)

// tie keeps a Ctrl-C in the terminal from the process.
func tie(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
