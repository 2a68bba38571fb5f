package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// endPatience is how long a process may take to end after a SIGTERM.
const endPatience = 90 * time.Second

// maxOutput is how much of a process's output is kept, in bytes: up to twice as much.
const maxOutput = 16 << 20

// process is a program that can be restarted, with its output in a file.
type process struct {
	name   string
	path   string
	args   []string
	env    []string
	output string // file

	// crashed is called when the process ends unexpectedly.
	crashed func(name string, err error, output string)
	over    *atomic.Bool // it must not start again

	life sync.Mutex // held while starting or ending it

	mu     sync.Mutex
	cmd    *exec.Cmd
	wanted bool // that it runs
	ended  chan struct{}
}

// start starts the process, unless it runs or everything is over. The process ends with this
// program; on Linux however this one ends.
func (p *process) start() error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.over.Load() || p.running() {
		return nil
	}
	if info, err := os.Stat(p.output); err == nil && info.Size() > maxOutput {
		if err := os.Rename(p.output, p.output+".old"); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(p.output), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(p.output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(p.path, p.args...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stdout, cmd.Stderr = out, out
	tie(cmd)
	ended, begun := make(chan struct{}), make(chan error)
	p.mu.Lock()
	defer p.mu.Unlock()
	go func() {
		// Linux ends the process with the thread that started it.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			p.wait(cmd, ended)
		}
	}()
	if err := <-begun; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.cmd, p.ended, p.wanted = cmd, ended, true
	return nil
}

func (p *process) wait(cmd *exec.Cmd, ended chan struct{}) {
	err := cmd.Wait()
	p.mu.Lock()
	surprise := p.wanted
	p.wanted = false
	p.mu.Unlock()
	close(ended)
	if surprise {
		p.crashed(p.name, err, p.tail(2000))
	}
}

func (p *process) running() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.wanted
}

// unwant marks the process as ending on purpose.
func (p *process) unwant() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.wanted = false
}

// signal sends a signal, unless the process has ended.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s)
	}
}

// kill ends the process with SIGKILL and returns when it has ended.
func (p *process) kill() {
	p.life.Lock()
	defer p.life.Unlock()
	p.killed()
}

func (p *process) killed() {
	p.unwant()
	p.signal(syscall.SIGKILL)
	if p.ended != nil {
		<-p.ended
	}
}

var errSlowEnd = errors.New("did not end after a SIGTERM")

// terminate ends the process with SIGTERM, or with SIGKILL if that takes too long. It returns
// [errSlowEnd], or an error if the exit code is not 0.
func (p *process) terminate() error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.ended == nil {
		return nil
	}
	if !p.running() { // it has crashed, which crashed reports
		return nil
	}
	p.unwant()
	p.signal(syscall.SIGTERM)
	patience := time.NewTimer(endPatience)
	defer patience.Stop()
	select {
	case <-p.ended:
	case <-patience.C:
		p.killed()
		return fmt.Errorf("%s %w within %s", p.name, errSlowEnd, endPatience)
	}
	if state := p.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s ended with %s after a SIGTERM", p.name, state)
	}
	return nil
}

// tail returns the end of its output.
func (p *process) tail(bytes int64) string {
	file, err := os.Open(p.output)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	text := make([]byte, min(bytes, info.Size()))
	n, _ := file.ReadAt(text, info.Size()-int64(len(text)))
	return string(text[:n])
}
