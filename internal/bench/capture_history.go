package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// ids are what identifies sessions, lines, messages and calls in a transcript of Claude Code.
var ids = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b(?:msg|toolu|req)_[A-Za-z0-9]{8,}`)

// renamed returns a text with other ids, the same ones for the same number.
func renamed(text []byte, n int) []byte {
	return ids.ReplaceAllFunc(text, func(id []byte) []byte {
		sum := sha256.Sum256(append(strconv.AppendInt(nil, int64(n), 10), id...))
		digits := hex.EncodeToString(sum[:])
		if before, _, ok := bytes.Cut(id, []byte{'_'}); ok {
			return append(append(bytes.Clone(before), '_'), digits[:24]...)
		}
		return []byte(digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:32])
	})
}

// ErrOneSession means that copies of a session can't be told apart, because its ids do not have the form of Claude Code's.
var ErrOneSession = errors.New("copies of this session would all be one, because its ids do not have the form that Claude Code gives them: name other recordings, or leave out the copies with --files 0")

// canBeCopied returns [ErrOneSession] for a session whose ids can't be replaced.
func (s *replayed) canBeCopied() error {
	for id := range s.by {
		if ids.MatchString(id) {
			return nil
		}
	}
	return fmt.Errorf("%s: %w", s.path, ErrOneSession)
}

// history has a watcher read earlier sessions: copies of the sources, each under other ids.
func (w *watch) history(ctx context.Context, from sources, files int) (*CapturedHistory, error) {
	out := &CapturedHistory{Files: files}
	made := 0
	for i, f := range from {
		s, err := readReplayed(ctx, f.Path)
		if err != nil {
			return nil, err
		}
		if s == nil {
			continue
		}
		if err := s.canBeCopied(); err != nil {
			return nil, err
		}
		for n := i; n < files; n += len(from) {
			w.say("writing earlier sessions, %d of %d", made, files)
			if err := w.copy(s, n); err != nil {
				return nil, err
			}
			made++
			out.MB += float64(s.size) / 1e6
		}
	}
	out.Files = made
	w.say("reading %d earlier sessions, %.0f MB", made, out.MB)
	before, err := w.log.State(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	cpu, err := w.once(ctx, historyTenant)
	if err != nil {
		return nil, err
	}
	out.MBPS, out.CPU = out.MB/time.Since(began).Seconds(), cpu.Seconds()
	if _, err := newAPI(w.server.http, historyTenant, 1).awaitApplied(ctx); err != nil {
		return nil, err
	}
	out.AppliedMBPS = out.MB / time.Since(began).Seconds()
	after, err := w.log.State(ctx) // the watcher's own count leaves out what it had to publish again
	out.Events = int(after.Head - before.Head)
	return out, err
}

// copy writes a session under other ids. The higher its number, the longer ago it was finished.
func (w *watch) copy(s *replayed, n int) error {
	folder, err := w.folder(historyTenant, fmt.Sprint("project", n%50))
	if err != nil {
		return err
	}
	name := strings.TrimSuffix(filepath.Base(s.path), ".jsonl")
	path := filepath.Join(folder, fmt.Sprintf("%s-%d.jsonl", renamed([]byte(name), n), n))
	if err := os.WriteFile(path, renamed(bytes.Join(s.lines, nil), n), 0o600); err != nil {
		return err
	}
	return rested(path, n)
}

// Limits of the measurement of a watcher that has nothing to do.
const (
	settleTime = 30 * time.Second // for its start
	settled    = 20 * time.Millisecond
)

// idle measures a watcher of files that it has read and that do not change.
func (w *watch) idle(ctx context.Context, files int, seconds time.Duration) (*CapturedIdle, error) {
	out := &CapturedIdle{Files: files}
	for n := range files {
		folder, err := w.folder(idleTenant, fmt.Sprint("project", n%100))
		if err != nil {
			return nil, err
		}
		line := fmt.Sprintf(`{"type":"user","uuid":"u%d","sessionId":"s%d","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Prompt %d"}}`+"\n", n, n, n)
		path := filepath.Join(folder, fmt.Sprintf("s%d.jsonl", n))
		if err := errors.Join(os.WriteFile(path, []byte(line), 0o600), rested(path, n)); err != nil {
			return nil, err
		}
	}
	w.say("reading %d files for the first time", files)
	if _, err := w.once(ctx, idleTenant); err != nil {
		return nil, err
	}
	cmd := w.command(ctx, idleTenant)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	defer kill(cmd)
	pid := cmd.Process.Pid
	w.say("waiting until a watcher of %d files rests", files)
	used := processorTime(pid)
	for began := time.Now(); used != nil && time.Since(began) < settleTime; {
		before := *used
		if err := wait(ctx, time.Second); err != nil {
			return nil, err
		}
		used = processorTime(pid)
		if used != nil && before > 0 && *used-before <= settled {
			break
		}
	}
	w.say("watching %d files for %v", files, seconds)
	began := time.Now()
	if err := wait(ctx, seconds); err != nil {
		return nil, err
	}
	took := time.Since(began)
	out.Seconds = took.Seconds()
	if after := processorTime(pid); used != nil && after != nil {
		out.Share = new((*after - *used).Seconds() / took.Seconds())
	}
	out.ResidentMB = memory(pid, "VmRSS")
	return out, nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
