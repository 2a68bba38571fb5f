package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"github.com/nats-io/nats.go"

	"mneme.dev/mneme/internal/codeindex"
	"mneme.dev/mneme/internal/connect"
	"mneme.dev/mneme/internal/program"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/transcript"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/insight"
)

const description = `Event-sourced memory for AI agents.

Agents publish what they do as CloudEvents; mneme keeps the log and says what an agent should see now.

    mneme up                               everything in one process, on ./.mneme
    mneme import ~/.claude/projects --wait import existing recordings
    mneme conversations list               list the conversations
    mneme context ID --max-chars 20000     what an agent should see now

On a terminal, tables fit its width. In a pipe, tabs separate the columns, and a value that contains a tab, a line break, or another control or direction character, or begins with a quote, is a JSON string. Scripts should use --json.

Exit codes: 0 success, 1 failure, 2 wrong usage, 3 a check found a difference or a problem, 130 ended at once by a second Ctrl-C.`

// variables replaces each ${} in the tags of commands with its value. Kong's own variables do the same, but kong reads
// the values of all of them again for each flag, which takes a third of the time of a short command.
var variables = strings.NewReplacer(
	"${formats}", strings.Join(append([]string{transcript.Auto}, transcript.Formats()...), ", "),
	"${kinds}", strings.Join(tailKinds(), ", "),

	"${mcp_clients}", mcpClientNames(),
	"${agents}", strings.Join(connect.Names(), ", "),
	"${captured}", strings.Join(settings.Captured, ", "),
	"${hooked}", hookedNames(),

	"${insights_by}", strings.Join(insight.By, ", "),
	"${insights_sort}", strings.Join(insight.Sorts, ", "),
	"${projections}", strings.Join(readmodel.Names(), ", "),
	"${max_index_files}", fmt.Sprint(codeindex.DefaultMaxFiles),
)

// groups are the headings of the help, in the order of the commands.
var groups = []kong.Group{
	{Key: "start", Title: "Start here:"},
	{Key: "read", Title: "Read:"},
	{Key: "write", Title: "Write:"},
	{Key: "operate", Title: "Operate:"},
	{Key: "measure", Title: "Measure:"},
	{Key: "global", Title: "Flags of every command:"},
}

// Globals are flags that every command has.
type Globals struct {
	settings.Client
	JSON bool `help:"Print JSON, for scripts." name:"json" group:"global"`

	given   flagsGiven
	refused atomic.Pointer[string] // what NATS first said the user may not do
	end     context.CancelFunc     // ends the command's context
}

// CLI is the tree of commands. A command is carried out by its Run; its Help is what --help says besides the flags.
type CLI struct {
	Globals

	Up     UpCmd     `cmd:"" group:"start" help:"Run everything in one process."`
	Doctor DoctorCmd `cmd:"" group:"start" help:"Check what mneme needs, and say how to fix problems."`
	MCP    MCPCmd    `cmd:"" name:"mcp" group:"start" help:"Serve memory to an agent as MCP tools on stdin and stdout, or print how to set one up."`
	Hook   HookCmd   `cmd:"" group:"start" help:"Report an event of a coding agent to the server, and print what the agent should see."`

	Connect    ConnectCmd    `cmd:"" group:"start" help:"Make a coding agent use mneme, by changing the agent's settings."`
	Disconnect DisconnectCmd `cmd:"" group:"start" help:"Remove mneme from a coding agent's settings."`
	Connected  ConnectedCmd  `cmd:"" group:"start" help:"Show which coding agents use mneme, and what is missing."`

	Watch WatchCmd `cmd:"" group:"start" help:"Follow the transcripts of this machine's agents, for a server elsewhere."`

	Completion CompletionCmd `cmd:"" group:"start" help:"Print the completion script of a shell."`
	Version    VersionCmd    `cmd:"" group:"start" help:"Show the version of this program and of the server."`

	Conversations ConversationsCmd `cmd:"" help:"List, show, create, change, branch and export conversations."`

	Projects ProjectsCmd `cmd:"" help:"List and show projects; join two of them."`

	Context   ContextCmd   `cmd:"" group:"read" help:"Print what an agent should see of a conversation, or of a project, now."`
	Contexts  ContextsCmd  `cmd:"" group:"read" help:"List the contexts that were recorded as shown, or rebuild one of them."`
	Messages  MessagesCmd  `cmd:"" group:"read" help:"Read a transcript, or one message in full."`
	Turns     TurnsCmd     `cmd:"" group:"read" help:"List turns: user messages and everything up to the next."`
	Steps     StepsCmd     `cmd:"" group:"read" help:"Read steps: assistant messages with tool calls."`
	ToolCalls ToolCallsCmd `cmd:"" group:"read" help:"List tool calls, or show one in full."`
	Insights  InsightsCmd  `cmd:"" group:"read" help:"Show figures over many conversations: tokens, calls, errors, files."`
	Code      CodeCmd      `cmd:"" help:"Search the code of projects."`
	Search    SearchCmd    `cmd:"" group:"read" help:"Search all conversations, or the messages of one."`
	Summaries SummariesCmd `cmd:"" group:"read" help:"List the summaries, or show one in full."`
	Files     FilesCmd     `cmd:"" group:"read" help:"List the files that a conversation's tools touched."`
	Event     EventCmd     `cmd:"" group:"read" help:"Show one event of the log in full."`
	Export    ExportCmd    `cmd:"" group:"read" help:"Export conversations, turns, calls or files as a table for your own tools: Parquet, JSON lines or CSV."`
	Tail      TailCmd      `cmd:"" group:"read" help:"Follow the log as events are published."`

	Import  ImportCmd  `cmd:"" group:"write" help:"Import recorded transcripts into the log."`
	Index   IndexCmd   `cmd:"" group:"write" help:"Index the code of a project, so that contexts and searches find it."`
	Publish PublishCmd `cmd:"" group:"write" help:"Publish CloudEvents from a file or a pipe."`

	Summarize   SummarizeCmd   `cmd:"" group:"write" help:"Summarize a conversation now."`
	Resummarize ResummarizeCmd `cmd:"" group:"write" help:"Write new revisions of a conversation's summaries."`
	Condense    CondenseCmd    `cmd:"" group:"write" help:"Have a model condense large tool results."`
	Analyze     AnalyzeCmd     `cmd:"" group:"write" help:"Have a model do a task with each of many conversations, and store the answers."`

	Status     StatusCmd     `cmd:"" group:"operate" help:"Show the log, the projections and the processes."`
	Verify     VerifyCmd     `cmd:"" group:"operate" help:"Replay the log and compare the read models with it."`
	Rebuild    RebuildCmd    `cmd:"" group:"operate" help:"Rebuild a read model while the old one serves."`
	Repair     RepairCmd     `cmd:"" group:"operate" help:"Write lost events back to the log."`
	Backup     BackupCmd     `cmd:"" group:"operate" help:"Back up the log, or verify a backup."`
	Restore    RestoreCmd    `cmd:"" group:"operate" help:"Restore the log from a backup."`
	Erase      EraseCmd      `cmd:"" group:"operate" help:"Erase conversations permanently, or prove that nothing of them is left."`
	Redact     RedactCmd     `cmd:"" group:"operate" help:"Find secrets in what is stored."`
	Failed     FailedCmd     `cmd:"" group:"operate" help:"List, show and retry events that a projection skipped."`
	Partitions PartitionsCmd `cmd:"" group:"operate" help:"Show how many partitions the log has, or give it more."`
	Tokens     TokensCmd     `cmd:"" group:"operate" help:"Make, list and revoke access tokens."`
	Quotas     QuotasCmd     `cmd:"" group:"operate" help:"Show what tenants use of their quotas."`
	Audit      AuditCmd      `cmd:"" group:"operate" help:"Show who changed what, and who read across conversations."`
	Config     ConfigCmd     `cmd:"" group:"operate" help:"Show the settings in effect, and the source of each."`

	NATSConfig NATSConfigCmd `cmd:"" name:"nats-config" group:"operate" help:"Print the configuration of a NATS server with mneme's roles."`

	Bench BenchCmd `cmd:"" group:"measure" help:"Measure on this machine."`

	Reference ReferenceCmd `cmd:"" hidden:"" help:"Write the reference pages docs/commands.md and docs/settings.md."`
}

// newParser returns the parser of the command line. Settings become flags, whose defaults
// come from environment variables.
func newParser(commands *CLI, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(commands, append([]kong.Option{
		kong.Name("mneme"), kong.Description(description), kong.ExplicitGroups(groups),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, FlagsLast: true, WrapUpperBound: 120}), kong.ValueFormatter(helpOf),
		kong.PostBuild(func(k *kong.Kong) error {
			return kong.Visit(k.Model, func(node kong.Visitable, next kong.Next) error {
				switch one := node.(type) {
				case *kong.Flag:
					expand(one.Value)
					describe(one)
				case *kong.Positional:
					expand(one)
				}
				return next(nil)
			})
		}),
		kong.Resolvers(kong.ResolverFunc(fromEnvironment)),
	}, options...)...)
}

// expand replaces the variables in the description of a value.
func expand(value *kong.Value) {
	for _, text := range []*string{&value.Help, &value.Default, &value.Enum} {
		*text = variables.Replace(*text)
	}
}

// describe sets the help and the allowed values of a flag that is a setting.
func describe(flag *kong.Flag) {
	if flag.Name == "help" {
		flag.Group = &groups[len(groups)-1]
	}
	if !flag.Tag.Has("envconfig") {
		return
	}
	flag.Help = sentence(flag.Tag.Get("desc"))
	flag.Enum, flag.Tag.Enum = flag.Tag.Get("oneof"), flag.Tag.Get("oneof")
	switch flag.Name {
	case "url", "nats-url", "tenant", "color", "token", "token-file", "ca-file", "nats-ca-file", "nats-cert-file", "nats-key-file", "nats-creds-file":
		flag.Group = &groups[len(groups)-1]
	}
}

// sentence turns a description into a sentence for the help.
func sentence(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:] + "."
}

// variable returns the environment variable of a flag, "" if the flag is not a setting.
func variable(value *kong.Value) string {
	return value.Tag.Get("envconfig")
}

// fileVariable returns the environment variable that can name a file with the value of a flag, "" if none can.
func fileVariable(value *kong.Value) string {
	return settings.FileOf(variable(value), value.Tag.Get("file"))
}

func helpOf(value *kong.Value) string {
	if name := variable(value); name != "" {
		if file := fileVariable(value); file != "" {
			name += " or $" + file
		}
		return strings.TrimSuffix(value.Help, ".") + " ($" + name + ")."
	}
	return value.Help
}

// fromEnvironment returns the value that the environment gives to a flag that is not on the command line. Its error names
// every variable of the command that can't be read.
func fromEnvironment(parsed *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if variable(flag.Value) == "" {
		return nil, nil
	}
	text, ok, err := settings.Lookup(variable(flag.Value), fileVariable(flag.Value))
	switch {
	case err == nil && !ok:
		return nil, nil
	case unreadable(flag) == nil:
		return text, nil
	}
	given := given(parsed)
	wrong := environmentError{}
	for _, f := range parsed.Flags() {
		if err := unreadable(f); err != nil && !given[variable(f.Value)] {
			wrong = append(wrong, err.Error())
		}
	}
	return nil, wrong
}

// environmentError are the reasons why variables can't be read.
type environmentError []string

func (e environmentError) Error() string { return strings.Join(e, "\n") }

// unreadable returns why the flag does not accept the value of its variable, nil if it does or the variable is not set.
func unreadable(flag *kong.Flag) error {
	name := variable(flag.Value)
	if name == "" {
		return nil
	}
	text, ok, err := settings.Lookup(name, fileVariable(flag.Value))
	if err != nil || !ok {
		return err
	}
	trial := *flag.Value // a flag that was parsed once can't be parsed again
	target := newTarget(flag)
	if trial.Parse(kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text}), target) != nil {
		return settings.Mistyped(name, text, target.Type())
	}
	if allowed := strings.Split(flag.Enum, ","); flag.Enum != "" && !slices.Contains(allowed, text) {
		return settings.NotOneOf(name, text, allowed)
	}
	return nil
}

// ConversationsCmd groups what can be done with conversations.
type ConversationsCmd struct {
	List      ConversationsListCmd      `cmd:"" group:"read" help:"List conversations, newest event first."`
	Show      ConversationsShowCmd      `cmd:"" group:"read" help:"Show a conversation, with the end of its transcript."`
	Similar   ConversationsSimilarCmd   `cmd:"" group:"read" help:"Find conversations that are similar to one."`
	Health    ConversationsHealthCmd    `cmd:"" group:"read" help:"Say what went wrong in a conversation: loops, repeated failures, re-reads."`
	About     ConversationsAboutCmd     `cmd:"" group:"read" help:"Find conversations about a file, a line of it, or a symbol."`
	Export    ConversationsExportCmd    `cmd:"" group:"read" help:"Export all events of a conversation, for import into another mneme."`
	Create    ConversationsCreateCmd    `cmd:"" group:"write" help:"Create a conversation."`
	Update    ConversationsUpdateCmd    `cmd:"" group:"write" help:"Change a conversation's title or tags."`
	Archive   ConversationsArchiveCmd   `cmd:"" group:"write" help:"Archive a conversation; it stays readable."`
	Unarchive ConversationsUnarchiveCmd `cmd:"" group:"write" help:"Make an archived conversation active again."`
	Branch    ConversationsBranchCmd    `cmd:"" group:"write" help:"Begin a conversation that shares the past of another."`
	Delete    ConversationsDeleteCmd    `cmd:"" group:"write" help:"Delete a conversation; the log keeps its events."`
}

// ProjectsCmd holds the commands about projects.
type ProjectsCmd struct {
	List    ProjectsListCmd    `cmd:"" group:"read" help:"List projects, sorted by name."`
	Show    ProjectsShowCmd    `cmd:"" group:"read" help:"Show a project and its newest conversations."`
	Forget  ProjectsForgetCmd  `cmd:"" group:"write" help:"Remove a line of What Was Learnt from the contexts of a project."`
	Alias   ProjectsAliasCmd   `cmd:"" group:"write" help:"Count a project as part of another one."`
	Unalias ProjectsUnaliasCmd `cmd:"" group:"write" help:"Undo an alias: count a project on its own again."`
}

// exitCode prints an error, unless it was already reported, and returns its exit code.
func exitCode(err error, t *terminal) int {
	var usage *program.UsageError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errDifference):
		return exitDifference
	case errors.As(err, &usage):
		t.say("mneme: %v", err)
		return exitUsage
	}
	t.say("mneme: %s", strings.TrimSpace(err.Error()))
	return exitFailed
}

// isRefused remembers what NATS first refused, and ends the command. The server does not answer a request that it refuses, so
// the command would otherwise wait for a timeout.
func (g *Globals) isRefused(err error) {
	g.refused.CompareAndSwap(nil, new(err.Error()))
	g.end()
}

// explained says what NATS refused, in the place of what ended the command.
func (g *Globals) explained(err error) error {
	refusal := g.refused.Load()
	if err == nil || refusal == nil {
		return err
	}
	what := strings.TrimPrefix(*refusal, nats.ErrPermissionViolation.Error()+": ")
	refused := fmt.Errorf("NATS does not let the user of %s do this (%s): docs/operations/access.md says which user may", settings.Redacted(g.NATSURL), what)
	if errors.Is(err, context.Canceled) {
		return errors.New(strings.Replace(err.Error(), context.Canceled.Error(), refused.Error(), 1))
	}
	return fmt.Errorf("%w: %w", err, refused)
}

// usageError returns an error for wrong usage.
func usageError(format string, args ...any) error {
	return &program.UsageError{Err: fmt.Errorf(format, args...)}
}
