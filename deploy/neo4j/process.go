package neo4jdeploy

import (
	"bytes"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
)

// process is the server's process and what it logs.
type process struct {
	cmd     *exec.Cmd
	started chan struct{} // closed when the log says that the server has started
	ended   chan struct{} // closed when the process has ended
	err     error         // how it ended

	mu    sync.Mutex
	part  []byte   // the last line, if it is incomplete
	lines []string // the last ones
}

// tailLines is how many lines of the log are kept: enough for a Java exception with its causes.
const tailLines = 60

// run starts the process and watches it until it ends.
func run(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, started: make(chan struct{}), ended: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	tie(cmd)
	begun := make(chan error)
	go func() {
		// Linux kills the process when the thread that started it ends, so this thread
		// stays until then.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		begun <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-begun
}

// Write takes in what the server logs.
func (p *process) Write(log []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = append(p.part, log...)
	for {
		line, rest, whole := bytes.Cut(p.part, []byte("\n"))
		if !whole {
			return len(log), nil
		}
		p.line(string(line))
		p.part = rest
	}
}

func (p *process) line(line string) {
	if len(p.lines) == tailLines {
		p.lines = p.lines[1:]
	}
	p.lines = append(p.lines, line)
	if strings.HasSuffix(line, " Started.") {
		select {
		case <-p.started:
		default:
			close(p.started)
		}
	}
}

func (p *process) tail() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// reason returns why the process ended during its start.
func (p *process) reason() error {
	<-p.ended
	log := p.tail()
	switch {
	case strings.Contains(log, "Address already in use"):
		return fmt.Errorf("%w; its log ends:\n%s", ErrPortInUse, log)
	case strings.Contains(log, "store_lock"):
		return fmt.Errorf("%w; its log ends:\n%s", ErrDirInUse, log)
	default:
		return fmt.Errorf("%w: it ended (%w); its log ends:\n%s", ErrNotStarted, p.err, log)
	}
}
