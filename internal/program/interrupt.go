package program

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sayAfter is how long a program may take to stop before [Interruptible] says what a second Ctrl-C does.
const sayAfter = 200 * time.Millisecond

// Stopping is what a program says if it does not end soon after Ctrl-C.
const Stopping = "stopping; Ctrl-C again ends it at once"

// Interruptible returns a context that ends at Ctrl-C (SIGINT) or SIGTERM, so that the program can stop in good order. If it
// has not ended soon after Ctrl-C, say is called: a second signal ends the process at once, with 128 and the signal's number
// as exit code, which is 130 for Ctrl-C. After SIGTERM nothing is said, because nobody sits there.
func Interruptible(say func()) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		cancel()
		if first == os.Interrupt {
			time.AfterFunc(sayAfter, say)
		}
		began, second := time.Now(), <-signals
		for time.Since(began) < sayAfter { // a parent passed on what the terminal sent too, as npm does
			second = <-signals
		}
		code := 128
		if number, ok := second.(syscall.Signal); ok {
			code += int(number)
		}
		os.Exit(code)
	}()
	return ctx, cancel
}
