package bench

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/eventlog"
	"mneme.dev/mneme/pkg/files"
)

// NeedOptions are the options of [RunNeed].
type NeedOptions struct {
	Program    Program
	Events     []string // transcripts to import, of coding agents
	Embeddings Embeddings
	MaxChars   int       // budget of a context
	Progress   io.Writer // receives the progress of the import
}

// Need is the result of [RunNeed].
type Need struct {
	Machine  Machine                `json:"machine"`
	Store    Store                  `json:"store"`
	MaxChars int                    `json:"max_chars"`
	Sessions int                    `json:"sessions"` // at which something was needed
	All      NeedFigures            `json:"all"`
	At       map[string]NeedFigures `json:"at"`         // by percent of the session
	Ratio    float64                `json:"text_ratio"` // ratio of the contexts' share to that of the transcripts' ends; 0 if those hold nothing
	Context  Latencies              `json:"context"`
}

// NeedFigures are shares of what the next calls needed, averaged over points in sessions.
type NeedFigures struct {
	Points int     `json:"points"`
	Files  float64 `json:"files"` // needed at a point

	Named      float64 `json:"named"`       // held by the context
	NamedByEnd float64 `json:"named_floor"` // held by the same number of characters at the end of the transcript
	Texts      int     `json:"text_points"` // points where a text was needed
	Held       float64 `json:"held"`
	HeldByEnd  float64 `json:"held_floor"`
}

// nextCalls is how many calls ahead RunNeed looks for what an agent needs.
const nextCalls = 10

// minLine is the least length of a line that counts as distinctive.
const minLine = 20

// RunNeed imports sessions of coding agents into the program in an empty directory and reads the
// context at 25, 50 and 75 % of each session. It takes the files that the next ten calls touched
// and earlier ones had touched, and measures how many the context names by full path. It also takes
// the lines of those files that these calls then read or replaced and that were in the transcript
// before, and measures how many the context holds. The baseline is the same number of characters
// from the end of the transcript. Without events it returns [ErrNoEvents].
func RunNeed(ctx context.Context, o NeedOptions, say Say) (out Need, err error) {
	out.Machine, out.MaxChars, out.At = thisMachine(), o.MaxChars, map[string]NeedFigures{}
	out.Store, err = o.Program.imported(ctx, o.Events, o.Embeddings, "extractive", o.Progress, func(server *program) error { return out.look(ctx, server, o, say) })
	return out, err
}

// look goes through all sessions.
func (out *Need) look(ctx context.Context, server *program, o NeedOptions, say Say) error {
	log, err := server.log(ctx)
	if err != nil {
		return err
	}
	defer log.Conn().Close()
	reads := newAPI(server.http, tenant, 1)
	all, err := reads.conversations(ctx)
	if err != nil {
		return err
	}
	var took []time.Duration
	sums := map[string]*NeedFigures{"25": {}, "50": {}, "75": {}}
	total := &NeedFigures{}
	for i, c := range all {
		say("session %d of %d", i+1, len(all))
		s, err := readSession(ctx, log, c.ID)
		if err != nil {
			return err
		}
		needed := false
		for _, percent := range []int{25, 50, 75} {
			p := s.at(len(s.rows) * percent / 100)
			if len(p.files) == 0 {
				continue
			}
			needed = true
			began := time.Now()
			raw, err := reads.get(ctx, conversationPath(c.ID, "/context"), url.Values{
				"max_chars": {strconv.Itoa(o.MaxChars)}, "as_of": {strconv.FormatUint(p.seq, 10)}, "format": {"markdown"},
			})
			if err != nil {
				return err
			}
			took = append(took, time.Since(began))
			for _, f := range []*NeedFigures{total, sums[strconv.Itoa(percent)]} {
				f.add(p, string(raw), lastChars(p.before, o.MaxChars))
			}
		}
		if needed {
			out.Sessions++
		}
	}
	if total.Points == 0 {
		return errors.Join(ErrNoEvents, errors.New("no session touches a file again"))
	}
	for percent, f := range sums {
		out.At[percent] = f.mean()
	}
	out.All = total.mean()
	if out.All.HeldByEnd > 0 {
		out.Ratio = out.All.Held / out.All.HeldByEnd
	}
	out.Context = latencies(took)
	return nil
}

// session is a conversation as published.
type session struct {
	rows []sessionRow
}

// sessionRow is the content of one event.
type sessionRow struct {
	seq     uint64
	text    string // as a transcript shows it
	call    bool
	touched []string // files that the call names
	lines   []string // those shown by the call or its result
}

func readSession(ctx context.Context, log *eventlog.Log, id string) (s session, err error) {
	table := files.DefaultTable()
	cwd := ""
	calls := map[string]int{} // row by tool_call_id
	err = log.Conversation(ctx, tenant, id, ^uint64(0), func(m eventlog.Message) error {
		e, err := events.RecordMessage(m.Header, m.Data)
		if err != nil {
			return nil // it belongs to no call
		}
		row := sessionRow{seq: m.Seq}
		switch p := e.Payload.(type) {
		case *events.ConversationStarted:
			cwd = p.Cwd
		case *events.MessageCreated:
			row.text = p.Role + ": " + p.Content
		case *events.ToolCalled:
			row.call, row.text = true, "call "+p.ToolName+" "+p.Text()
			for _, a := range table.FromCall(files.Call{Tool: p.ToolName, Arguments: p.Arguments, Cwd: cwd}) {
				if a.Kind == files.KindRead || a.Kind == files.KindWrite {
					row.touched = append(row.touched, a.Path)
				}
			}
			if len(row.touched) > 0 {
				var arguments map[string]any
				if json.Unmarshal(p.Arguments, &arguments) == nil {
					if old, ok := arguments["old_string"].(string); ok {
						row.lines = longLines(old)
					}
				}
			}
			calls[p.ToolCallID] = len(s.rows)
		case *events.ToolReturned:
			row.text = "result: " + p.Text()
			if at, ok := calls[p.ToolCallID]; ok && len(s.rows[at].touched) > 0 && (p.Success == nil || *p.Success) && s.rows[at].lines == nil {
				s.rows[at].lines = longLines(p.Text())
			}
		default:
			return nil
		}
		s.rows = append(s.rows, row)
		return nil
	})
	return s, err
}

// longLines returns the distinctive lines of a text, without the line numbers that tools add.
func longLines(text string) (lines []string) {
	for line := range strings.SplitSeq(text, "\n") {
		if number, rest, ok := strings.Cut(line, "→"); ok && strings.Trim(number, " 0123456789") == "" {
			line = rest
		}
		if line = strings.TrimSpace(line); utf8.RuneCountInString(line) >= minLine {
			lines = append(lines, line)
		}
	}
	return lines
}

// need is what the agent needs after a point of a session.
type need struct {
	seq    uint64   // of the point
	before string   // the transcript up to it
	files  []string // touched by the next calls, and by earlier ones
	lines  []string // shown by the next calls from these files, and present in the transcript
}

// at returns what is needed after the first n rows.
func (s *session) at(n int) (p need) {
	if n == 0 {
		return p
	}
	seen := map[string]bool{}
	var before strings.Builder
	for _, row := range s.rows[:n] {
		before.WriteString(row.text + "\n")
		for _, path := range row.touched {
			seen[path] = true
		}
	}
	p.seq, p.before = s.rows[n-1].seq, before.String()
	known := map[string]bool{}
	calls := 0
	for _, row := range s.rows[n:] {
		if !row.call {
			continue
		}
		if calls++; calls > nextCalls {
			break
		}
		again := false
		for _, path := range row.touched {
			if again = again || seen[path]; seen[path] && !slices.Contains(p.files, path) {
				p.files = append(p.files, path)
			}
		}
		for _, line := range row.lines {
			if again && !known[line] && strings.Contains(p.before, line) {
				known[line] = true
				p.lines = append(p.lines, line)
			}
		}
	}
	return p
}

// lastChars returns the end of a text.
func lastChars(text string, chars int) string {
	for i := len(text); i > 0; chars-- {
		if chars == 0 {
			return text[i:]
		}
		_, size := utf8.DecodeLastRuneInString(text[:i])
		i -= size
	}
	return text
}

// add counts how much of the need a context and the end of a transcript hold.
func (f *NeedFigures) add(p need, shown, end string) {
	in := func(text string) func(string) bool {
		return func(one string) bool { return strings.Contains(text, one) }
	}
	f.Points++
	f.Files += float64(len(p.files))
	f.Named += share(p.files, in(shown))
	f.NamedByEnd += share(p.files, in(end))
	if len(p.lines) > 0 {
		f.Texts++
		f.Held += share(p.lines, in(shown))
		f.HeldByEnd += share(p.lines, in(end))
	}
}

// mean divides sums by the number of points.
func (f *NeedFigures) mean() NeedFigures {
	n, texts := float64(max(1, f.Points)), float64(max(1, f.Texts))
	return NeedFigures{f.Points, f.Files / n, f.Named / n, f.NamedByEnd / n, f.Texts, f.Held / texts, f.HeldByEnd / texts}
}
