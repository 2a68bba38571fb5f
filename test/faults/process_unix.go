//go:build unix

package main

import "syscall"

// Signals that stop a process in its tracks and let it go on.
const (
	sigFreeze = syscall.SIGSTOP
	sigThaw   = syscall.SIGCONT
)
