package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"
)

// bar shows how far a long command is: on a terminal as a progress bar, elsewhere as a line now and then, so that the
// log of a job shows that it moves.
type bar struct {
	*progressbar.ProgressBar
	format func(int64) string // of the counts in a line
	say    func(line string)  // nil on a terminal

	mu   sync.Mutex
	at   int64 // an invisible progress bar does not count
	said time.Time
}

// progress returns a bar for bytes. A total below 0 is not known.
func (t *terminal) progress(total int64, what string) *bar {
	return t.bar(total, what, func(n int64) string { return humanize.Bytes(uint64(max(n, 0))) })
}

// counter returns a bar for a count, with the remaining time.
func (t *terminal) counter(what string) *bar {
	return t.bar(1, what, number[int64], progressbar.OptionShowCount())
}

func (t *terminal) bar(total int64, what string, format func(int64) string, options ...progressbar.Option) *bar {
	b := &bar{format: format, said: time.Now()}
	options = append(options, progressbar.OptionSetDescription(what),
		progressbar.OptionFullWidth(), progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	if !isTerminal(t.err) {
		b.say = func(line string) { t.say("%s", line) }
		options = append(options, progressbar.OptionSetWriter(io.Discard), progressbar.OptionSetVisibility(false))
	} else {
		options = append(options, progressbar.OptionSetWriter(t.err))
	}
	b.ProgressBar = progressbar.NewOptions64(total, options...)
	return b
}

// quiet takes the lines away.
func (b *bar) quiet() *bar {
	b.say = nil
	return b
}

// Set64 sets how far the command is.
func (b *bar) Set64(n int64) error {
	b.tell(func(int64) int64 { return n })
	return b.ProgressBar.Set64(n)
}

// Set sets how far the command is.
func (b *bar) Set(n int) error { return b.Set64(int64(n)) }

// Add64 adds to how far the command is.
func (b *bar) Add64(n int64) error {
	b.tell(func(at int64) int64 { return at + n })
	return b.ProgressBar.Add64(n)
}

// Add adds to how far the command is.
func (b *bar) Add(n int) error { return b.Add64(int64(n)) }

// tell writes a line if the last one is long ago.
func (b *bar) tell(move func(at int64) int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = move(b.at)
	if b.say == nil || time.Since(b.said) < sayWaiting {
		return
	}
	b.said = time.Now()
	s := b.State()
	line := fmt.Sprintf("%s: %s", s.Description, b.format(b.at))
	if s.Max > 0 {
		line += fmt.Sprintf(" of %s (%d %%)", b.format(s.Max), 100*b.at/s.Max)
	}
	b.say(line)
}
