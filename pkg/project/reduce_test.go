package project

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/files"
)

func TestARefusalTeachesAndIsNoFailure(t *testing.T) {
	t.Parallel()
	no := false
	for text, want := range map[string][]string{
		"The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). To tell you how to proceed, the user said:\nThe integration tests are too slow for this. Run only the unit tests.\n\nNote: The user's next message may say more.": {
			"The integration tests are too slow for this.", "Run only the unit tests.",
		},
		"The user doesn't want to proceed with this tool use. The tool use was rejected. STOP what you are doing and wait for the user to tell you how to proceed.":                                         nil,
		"The user doesn't want to proceed with this tool use. To tell you how to proceed, the user said:\nThe user wants to clarify these questions.\n    This means they may have additional information.": nil,
		"The user rejected permission to use this specific tool call with the following feedback: Run only the unit tests.":                                                                                 {"Run only the unit tests."},
		"The user denied this operation and provided the following feedback:\n<feedback>\nRun only the unit tests.\n</feedback>":                                                                            {"Run only the unit tests."},
		"exec command rejected by user": nil,
	} {
		for _, early := range []bool{false, true} { // an early result comes before its call
			r, d, seq := reducer{files.DefaultTable()}, &Digest{Place: PlaceOf("", "", "/w")}, uint64(0)
			apply := func(reduce func(*Digest, *events.Recorded) *Change, p events.Payload) {
				seq++
				if c := reduce(d, &events.Recorded{Payload: p, Seq: seq}); c != nil {
					d.Apply(c, seq)
				}
			}
			called := &events.ToolCalled{ToolCallID: "k", ToolName: "Bash", Arguments: json.RawMessage(`{"command":"make test"}`)}
			returned := &events.ToolReturned{ToolCallID: "k", Success: &no, Error: text}
			apply(r.message, &events.MessageCreated{Role: "user", Content: "Test it."})
			if early {
				apply(r.returned, returned)
				apply(r.called, called)
			} else {
				apply(r.called, called)
				apply(r.returned, returned)
			}
			var taught []string
			for _, s := range d.Taught {
				said, about, found := strings.Cut(s.Text, refusedCall)
				require.True(t, found, "%s", s.Text)
				require.Equal(t, "make test)", about)
				taught = append(taught, said)
			}
			if early { // nobody knows that it was a command
				require.Empty(t, taught, text)
			} else {
				require.Equal(t, want, taught, text)
			}
			require.Empty(t, d.Runs, text)
			require.Empty(t, d.Troubles, text)
			require.Empty(t, d.Open, text)
			require.Equal(t, 1, d.Said, "a refusal is no message: %s", text)
		}
	}
}

func TestTheReasonAgainstAChangeOrAPlanIsNoInstruction(t *testing.T) {
	t.Parallel()
	no := false
	for said, want := range map[string][]string{
		"Just define the list of uploads above and drop the other one.": nil,
		"No, the retry belongs into the client.":                        {"No, the retry belongs into the client."},
	} {
		for _, call := range []*events.ToolCalled{
			{ToolCallID: "k", ToolName: "Write", Arguments: json.RawMessage(`{"file_path":"/w/retry.go","content":"x"}`)},
			{ToolCallID: "k", ToolName: "ExitPlanMode", Arguments: json.RawMessage(`{"plan":"Retry uploads."}`)},
		} {
			r, d := reducer{files.DefaultTable()}, &Digest{Place: PlaceOf("", "", "/w")}
			if c := r.called(d, &events.Recorded{Payload: call}); c != nil {
				d.Apply(c, 1)
			}
			reason := "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\n" + said
			d.Apply(r.returned(d, &events.Recorded{Payload: &events.ToolReturned{ToolCallID: "k", Success: &no, Error: reason}}), 2)
			var taught []string
			for _, s := range d.Taught {
				before, _, _ := strings.Cut(s.Text, refusedCall)
				taught = append(taught, before)
			}
			require.Equal(t, want, taught, call.ToolName)
		}
	}
}

func TestACallThatDidNotRunLeavesNoTrouble(t *testing.T) {
	t.Parallel()
	r, d, no := reducer{files.DefaultTable()}, &Digest{Place: PlaceOf("", "", "/w")}, false
	d.Apply(r.called(d, &events.Recorded{Payload: &events.ToolCalled{ToolCallID: "k", ToolName: "Bash", Arguments: json.RawMessage(`{"command":"make test"}`)}}), 1)
	d.Apply(r.returned(d, &events.Recorded{Payload: &events.ToolReturned{ToolCallID: "k", Success: &no, Error: "<tool_use_error>Sibling tool call errored</tool_use_error>"}}), 2)
	require.Empty(t, d.Troubles)
	require.Empty(t, d.Runs)
	require.Empty(t, d.Open)
}

func TestAnImageInARequestIsNamed(t *testing.T) {
	t.Parallel()
	r, d := reducer{files.DefaultTable()}, &Digest{Place: PlaceOf("", "", "/w")}
	text := "Make it look like ![this](data:image/png;base64," + strings.Repeat("AZr3", 5_000) + ") please."
	change := r.message(d, &events.Recorded{Payload: &events.MessageCreated{Role: "user", Content: text}, Seq: 1})
	require.Equal(t, "Make it look like ![this]([image/png, 15 kB]) please.", change.Request.Text)
}

func TestASlashCommandIsARequestAndItsArgumentsTeach(t *testing.T) {
	t.Parallel()
	r, d := reducer{files.DefaultTable()}, &Digest{Place: PlaceOf("", "", "/w")}
	for i, text := range []string{
		"<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args></command-args>",
		"<command-message>review</command-message>\n<command-name>/review</command-name>", // it does not say what the session is about
		"<command-message>plan</command-message>\n<command-name>/plan</command-name>\n<command-args>Always run the unit tests before you commit.</command-args>",
	} {
		seq := uint64(i + 1)
		d.Apply(r.message(d, &events.Recorded{Payload: &events.MessageCreated{Role: "user", Content: text}, Seq: seq}), seq)
	}
	task := `<teammate-message teammate_id="team-lead">Always say what you found in the cache.</teammate-message>`
	require.Equal(t, &Change{Turn: true, Request: &Said{Text: "Always say what you found in the cache."}}, r.message(d, &events.Recorded{Payload: &events.MessageCreated{Role: "user", Content: task}, Seq: 9}))
	task = `<teammate-message teammate_id="team-lead">/home/x/repo is the repository. Always run the unit tests before you commit.`
	require.Empty(t, r.message(d, &events.Recorded{Payload: &events.MessageCreated{Role: "user", Content: task}, Seq: 10}).Taught, "a path is no command")
	require.Equal(t, 1, d.Requests)
	require.Equal(t, "/plan Always run the unit tests before you commit.", d.Request.Text)
	require.Len(t, d.Taught, 1)
	require.Equal(t, "Always run the unit tests before you commit.", d.Taught[0].Text)
}

func TestWhatOnlyMentionsTheListOfClineIsReadAsWhatItIs(t *testing.T) {
	var made, done Called
	made.plan("TaskCreate", []byte(`{"subject":"task_progress"}`))
	require.Equal(t, "task_progress", made.Task)
	done.plan("TaskUpdate", []byte(`{"taskId":"1","status":"completed","metadata":{"task_progress":"all"}}`))
	require.Equal(t, []Todo{{ID: "1", State: "completed"}}, done.Todos)
}

func TestTheTodoListOfEveryAgentIsKept(t *testing.T) {
	t.Parallel()
	for arguments, tool := range map[string]string{
		`{"todos":[{"id":"1","content":"read","status":"completed"},{"id":"2","content":"write","status":"pending"}]}`:                               "TodoWrite",
		`{"plan":[{"step":"read","status":"completed"},{"step":"write","status":"in_progress"}]}`:                                                    "update_plan",
		`{"todos":[{"description":"read","status":"cancelled"},{"description":"write","status":"pending"}]}`:                                         "write_todos",
		`{"todos":[{"title":"read","status":"done"},{"title":"write","status":"pending"}]}`:                                                          "TodoList",
		`{"todos":[{"content":"read","status":"completed","active_form":"Reading"},{"content":"write","status":"pending","active_form":"Writing"}]}`: "todos",
		`{"command":"plan","task_list":[{"title":"read","notes":"all","status":"done"},{"title":"write","status":"todo"}]}`:                          "task_tracker",
		`{"todos":"[x] read\n[-] write\n"}`: "update_todo_list",
		`{"operation":"write","todoList":[{"id":1,"title":"read","description":"all of it","status":"completed"},{"id":2,"title":"write","status":"not-started"}]}`: "manage_todo_list",
		`{"path":"a.go","task_progress":"- [x] read\n- [ ] write"}`: "read_file", // Cline
	} {
		r, d := reducer{files.DefaultTable()}, &Digest{}
		apply := func(seq uint64, arguments string) {
			if c := r.called(d, &events.Recorded{Payload: &events.ToolCalled{ToolCallID: "k", ToolName: tool, Arguments: json.RawMessage(arguments)}, Seq: seq}); c != nil {
				d.Apply(c, seq)
			}
		}
		apply(1, arguments)
		apply(2, `{}`)
		apply(3, `{"command":"view","task_list":[]}`)
		apply(4, `{"operation":"read","todoList":[]}`)
		apply(5, `{"content":"the argument \"task_progress\" of a tool"}`)
		require.Len(t, d.Todos, 2, tool)
		require.Len(t, d.Undone(), 1, tool)
		require.Equal(t, "write", d.Undone()[0].Text, tool)
	}
}
