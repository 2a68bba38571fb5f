package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWithoutATerminalProgressIsALineEveryTenSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		term := newTerminal(&bytes.Buffer{}, &out, "never")
		run := func(b *bar, step int64) {
			for range 50 { // half a second each
				time.Sleep(500 * time.Millisecond)
				_ = b.Add64(step)
			}
			_ = b.Finish()
		}
		run(term.progress(100_000_000, "importing"), 1_000_000)
		require.Equal(t, "importing: 20 MB of 100 MB (20 %)\nimporting: 40 MB of 100 MB (40 %)\n", out.String())

		out.Reset()
		counter := term.counter("rebuilding graph")
		counter.ChangeMax64(100_000)
		run(counter, 1_000)
		require.Equal(t, "rebuilding graph: 20,000 of 100,000 (20 %)\nrebuilding graph: 40,000 of 100,000 (40 %)\n", out.String())

		out.Reset()
		run(term.progress(-1, "verifying"), 1_000_000)
		require.Equal(t, "verifying: 20 MB\nverifying: 40 MB\n", out.String(), "the total is not known")

		out.Reset()
		run(term.counter("reading").quiet(), 1)
		require.Empty(t, out.String())

		progress, finish := term.steps()
		for i := range int64(50) {
			time.Sleep(500 * time.Millisecond)
			progress("restoring", (i+1)*1_000_000, 50_000_000)
		}
		finish()
		require.Equal(t, "restoring: 21 MB of 50 MB (42 %)\nrestoring: 41 MB of 50 MB (82 %)\n", out.String())
	})
}
