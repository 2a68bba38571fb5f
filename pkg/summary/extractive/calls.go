package extractive

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
	"mvdan.cc/sh/v3/syntax"

	"mneme.dev/mneme/pkg/files"
	"mneme.dev/mneme/pkg/harness"
	"mneme.dev/mneme/pkg/summary"
)

var table = files.DefaultTable()

// maxArguments limits how many bytes of arguments a call may have to be read.
const maxArguments = 256 << 10

// arguments are the arguments that say what a call was about, under the names that the
// usual agents use.
type arguments struct {
	Command  json.RawMessage `json:"command"`
	Cmd      json.RawMessage `json:"cmd"`
	Commands json.RawMessage `json:"commands"` // a list of them
	Pattern  string          `json:"pattern"`
	Query    string          `json:"query"`
	Regex    string          `json:"regex"`
}

// call counts what a call did.
func (t tally) call(e summary.Entry) {
	if e.Name != "" {
		t.add("Used", e.Name, 1)
	}
	if len(e.Text) > maxArguments {
		return
	}
	raw := json.RawMessage(e.Text)
	for _, a := range table.FromCall(files.Call{Tool: e.Name, Arguments: raw}) {
		switch a.Kind {
		case files.KindWrite:
			t.add("Edited", path.Base(a.Path), 1)
		case files.KindRead:
			t.add("Read", path.Base(a.Path), 1)
		}
	}
	var args arguments
	if json.Unmarshal(raw, &args) != nil {
		return
	}
	for _, sought := range []string{args.Pattern, args.Query, args.Regex} {
		if sought != "" {
			t.add("Searched for", `"`+clip(readable(sought), 40)+`"`, 1)
		}
	}
	commands := []json.RawMessage{args.Command, args.Cmd}
	var several []json.RawMessage
	if json.Unmarshal(args.Commands, &several) == nil {
		commands = append(commands, several...)
	}
	for _, command := range commands {
		for _, program := range programs(script(command)) {
			t.add("Ran", program, 1)
		}
	}
}

var notation = strings.NewReplacer(".*", " ", ".?", " ", `\s+`, " ", `\s*`, " ", `\b`, "", `\`, "", "^", "", "$", "", `"`, "", "(", "", ")", "")

// readable returns the first alternative of a pattern without most of its notation.
func readable(pattern string) string {
	first, _, _ := strings.Cut(pattern, "|")
	if plain := oneLine(notation.Replace(first)); plain != "" {
		return plain
	}
	return oneLine(pattern)
}

// script returns the shell command in an argument: a text, a list of words whose last
// one is the script, or a program with its arguments.
func script(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var called struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	if json.Unmarshal(raw, &called) == nil {
		return strings.Join(append([]string{called.Command}, called.Args...), " ")
	}
	var words []string
	if json.Unmarshal(raw, &words) != nil || len(words) == 0 {
		return ""
	}
	if len(words) == 3 && strings.HasPrefix(words[1], "-") && strings.HasSuffix(words[1], "c") {
		return words[2]
	}
	return strings.Join(words, " ")
}

// silent are programs that change directories or show things: they are not what a command is for.
var silent = map[string]bool{
	"cd": true, "echo": true, "printf": true, "true": true, "set": true, "export": true, "sleep": true, "pwd": true, "source": true,
	"head": true, "tail": true, "cat": true, "ls": true, "wc": true, "sort": true, "uniq": true, "tr": true, "cut": true, "tee": true, "which": true,
	"test": true, "[": true, "view": true, "create": true, "str_replace": true, "insert": true, // the last four are commands of editor tools
}

// programs returns the programs that a script runs, with their subcommands, each once.
func programs(text string) []string {
	const long = 20_000 // bytes; a longer script contains a file
	if text == "" || len(text) > long {
		return nil
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil
	}
	var names []string
	syntax.Walk(file, func(node syntax.Node) bool {
		if c, ok := node.(*syntax.CallExpr); ok {
			if name := program(c.Args); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return true
	})
	return names
}

// program returns the name of the called program, "" if it is silent or known only at run
// time.
func program(args []*syntax.Word) string {
	for len(args) > 0 && (args[0].Lit() == "sudo" || args[0].Lit() == "env" || args[0].Lit() == "time") {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	name := path.Base(args[0].Lit())
	if args[0].Lit() == "" || silent[name] {
		return ""
	}
	if len(args) > 3 && name == "git" && args[1].Lit() == "-C" {
		args = args[2:]
	}
	if len(args) > 1 && isSubcommand(args[1].Lit()) && !takesText[name] {
		name += " " + args[1].Lit()
	}
	return clip(oneLine(name), 40)
}

// takesText are programs whose first operand is not a subcommand.
var takesText = map[string]bool{"grep": true, "rg": true, "find": true, "mkdir": true, "rm": true, "touch": true, "sed": true, "awk": true, "jq": true, "man": true, "kill": true, "pkill": true}

func isSubcommand(word string) bool {
	for _, r := range word {
		if (r < 'a' || r > 'z') && r != '-' && r != ':' {
			return false
		}
	}
	return word != "" && word[0] != '-' && len(word) <= 20
}

// failure counts a failed call, with the reason that its result gives.
func (t tally) failure(e summary.Entry) {
	tool := cmp.Or(e.Name, "a call")
	if reason := reasonOf(e.Text); reason != "" {
		tool += ` "` + reason + `"`
	}
	t.add("Failed:", tool, 1)
}

// reasonOf returns the line of a failed call's result that says why: the first one that
// complains, else the first one, "" if there is none worth showing.
func reasonOf(result string) string {
	const long = 80 // characters
	result = ansi.Strip(result[:min(len(result), 8<<10)])
	if _, refused := harness.Refusal(result); refused {
		return "rejected by the user"
	}
	first, announced := "", ""
	for line := range strings.Lines(result) {
		for _, mark := range []string{"<tool_use_error>", "</tool_use_error>", "\""} {
			line = strings.ReplaceAll(line, mark, "")
		}
		line = oneLine(line)
		if announced != "" {
			line, announced = announced+" "+line, ""
		}
		line = clip(line, long)
		switch {
		case line == "" || strings.HasPrefix(line, "Exit code") || strings.HasPrefix(line, "[") || strings.Trim(line, "-= ") == "":
			continue
		case strings.HasSuffix(line, ":") && !strings.Contains(line, " "): // "ERROR:", with the reason on the next line
			announced = line
		case complains(line):
			return line
		case first == "" && !strings.HasPrefix(line, "?"):
			first = line
		}
	}
	return first
}

// complaint matches words of errors, but not inside file names.
var complaint = regexp.MustCompile(`(?i)(?:^|[^\w./-]|[a-z])(?:error|fail|panic|fatal|exception|denied|not found|no such|cannot|undefined|conflict)(?:[a-z]*)(?:$|[^\w./-]|\.$|\. )`)

func complains(line string) bool { return complaint.MatchString(line) }
