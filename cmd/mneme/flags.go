package main

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
)

// conversationArg names the conversation of a command.
type conversationArg struct {
	ID string `arg:"" help:"The conversation: its id, or the name that contexts give it, such as d91ec3b9." complete:"conversation"`
}

// pastFlags ask for the past.
type pastFlags struct {
	AsOf sequence `help:"Answer as of this sequence of the log." placeholder:"SEQ"`
}

func (f pastFlags) query() parameters { return parameters{"as_of": uint64(f.AsOf)} }

// sequence is a sequence of the log; 0, which a user can't give, means none.
type sequence uint64

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *sequence) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 10, 63)
	if err != nil {
		return fmt.Errorf("%q is not a sequence of the log such as 42", text)
	}
	if n == 0 {
		return errors.New("sequences begin at 1; omit the flag to read the present")
	}
	*s = sequence(n)
	return nil
}

// searchFlags repeat a search as of the past.
type searchFlags struct {
	pastFlags
	EmbeddedUpTo uint64   `help:"With an embedding endpoint: use only vectors of messages up to this sequence, which a manifest reports." placeholder:"SEQ"`
	Rerank       *bool    `help:"Let the server's reranking model order the best 100 messages, or not; defaults to its setting." negatable:""`
	Reranked     []uint64 `help:"Instead, repeat this order of the best messages, as a manifest reports it." placeholder:"SEQ,…"`
}

func (f searchFlags) query() parameters {
	all := parameters{"embedded_up_to": f.EmbeddedUpTo}
	if f.Rerank != nil {
		all["rerank"] = strconv.FormatBool(*f.Rerank)
	}
	if len(f.Reranked) > 0 {
		var order []string
		for _, seq := range f.Reranked {
			order = append(order, strconv.FormatUint(seq, 10))
		}
		all["reranked"] = strings.Join(order, ",")
	}
	return f.pastFlags.query().with(all)
}

// waitFlags let a user read their own writes.
type waitFlags struct {
	AtLeast uint64        `help:"Wait until the conversation is applied up to this sequence of the log, to read your own write." placeholder:"SEQ"`
	Wait    time.Duration `help:"How long --at-least waits." default:"5s"`
}

func (f waitFlags) query() parameters {
	if f.AtLeast == 0 {
		return nil
	}
	return parameters{"at_least": f.AtLeast, "wait_ms": f.Wait.Milliseconds()}
}

// instant is an RFC 3339 time, a date, which means its local midnight, because lists show local
// times too, or how long ago it was, such as 7d.
type instant struct{ query string }

// UnmarshalText implements encoding.TextUnmarshaler.
func (i *instant) UnmarshalText(text []byte) error {
	at, err := events.ParseTime(string(text))
	if err != nil {
		at, err = time.ParseInLocation(time.DateOnly, string(text), time.Local)
	}
	if err != nil {
		var ago time.Duration
		if ago, err = span(string(text)); err == nil && ago >= 0 {
			i.query = time.Now().Add(-ago).Format(time.RFC3339)
			return nil
		}
		return fmt.Errorf("%q is neither a time such as 2026-01-31T15:04:05Z, nor a date such as 2026-01-31, nor how long ago it was, such as 7d or 12h", text)
	}
	i.query = at.Format(time.RFC3339Nano)
	return nil
}

// maxDays is the longest [span], ten years.
const maxDays = 3650

// span reads a length of time in days, hours or minutes, such as 90d, 12h or 30m.
func span(text string) (d time.Duration, err error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		days, err := strconv.ParseUint(number, 10, 16)
		d = time.Duration(days) * 24 * time.Hour
		return d, cmp.Or(err, tooLong(d))
	}
	if d, err = time.ParseDuration(text); err == nil {
		err = tooLong(d)
	}
	return d, err
}

func tooLong(d time.Duration) error {
	if d > maxDays*24*time.Hour {
		return fmt.Errorf("is more than %d days", maxDays)
	}
	return nil
}

// listFlags limit and order a list.
type listFlags struct {
	Limit int    `help:"Maximum number of rows; 0 means all." default:"50"`
	Order string `help:"Which end comes first: newest or oldest." enum:"newest,oldest" default:"newest"`
}

// usualLimit is the default of listFlags.
const usualLimit = 50

// table is [terminal.table] for a list. It tells a person who left the limit as it is that the list goes on.
func (listFlags) table(t *terminal, api *client, columns []column, rows [][]any) error {
	err := t.table(columns, rows)
	remarkMore(t, api, len(rows))
	return err
}

// transcript is [terminal.transcript] for a list, see table.
func (f listFlags) transcript(t *terminal, api *client, list []httpapi.Message, e extent) error {
	if len(list) == 0 {
		return t.text("nothing found\n")
	}
	err := t.transcript(list, f.Order == "newest", e)
	remarkMore(t, api, len(list))
	return err
}

func remarkMore(t *terminal, api *client, shown int) {
	if api.more && shown >= usualLimit && t.isPerson() {
		t.say("%d are shown, and there are more: --limit 0 shows all", shown)
	}
}

func (f listFlags) query() parameters { return parameters{"order": f.Order} }

// flagsGiven holds the settings that flags have set, by environment variable.
type flagsGiven map[string]bool

func given(parsed *kong.Context) flagsGiven {
	variables := flagsGiven{}
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			if name := variable(path.Flag.Value); name != "" {
				variables[name] = true
			}
		}
	}
	return variables
}

// check validates settings; its errors name the flag if a flag set the value.
func (given flagsGiven) check(spec settings.Spec) error {
	err := settings.Check(spec)
	if err == nil {
		return nil
	}
	return given.named(err)
}

// named returns a usage error that names the flag if a flag set the value.
func (given flagsGiven) named(err error) error {
	text := err.Error()
	for variable := range given {
		text = strings.ReplaceAll(text, variable+"=", "--"+settings.Flag(variable)+"=")
	}
	return usageError("%s", text)
}

// newTarget returns a new variable for a flag's value.
func newTarget(flag *kong.Flag) reflect.Value { return reflect.New(flag.Target.Type()).Elem() }
