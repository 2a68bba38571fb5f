//go:build unix

package main

import "syscall"

// Signals that suspend a process and let it continue.
const (
	sigFreeze = syscall.SIGSTOP
	sigThaw   = syscall.SIGCONT
)
