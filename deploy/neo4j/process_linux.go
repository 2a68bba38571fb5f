package neo4jdeploy

import (
	"os/exec"
	"syscall"
)

// tie makes the process end with this one, and only then: a Ctrl-C in the terminal is
// not for it.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
