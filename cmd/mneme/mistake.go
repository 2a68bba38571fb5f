package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/program"
)

// mistaken returns the command in which there is a mistake, as far as it was parsed.
func mistaken(err error) string {
	if bad, ok := errors.AsType[*kong.ParseError](err); ok {
		if node := bad.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "mneme"
}

// What kong says about mistakes, where it names its own types and tokens.
var (
	enumOf     = regexp.MustCompile(`must be one of (".*") but got `)
	wholeOf    = regexp.MustCompile(`a valid \d+ bit (u?)int `)
	missingOf  = regexp.MustCompile(`^expected "(<.+)"$`)
	endOf      = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)`)
	lengthOf   = regexp.MustCompile(`expected duration but got ("[^"]*").*?( \(|$)`)
	flagFor    = regexp.MustCompile(`expected \w+ value but got ("-.*") \((?:long|short) flag\); perhaps try (.+)\?`)
	unexpected = regexp.MustCompile(`(?s)^unexpected argument (.+)$`)
	shortFlags = regexp.MustCompile(`^(unknown flag -[^-]),? ?.*`)
)

// mistake says in plain words what is wrong with a command line.
func mistake(err error) string {
	if environment, ok := errors.AsType[environmentError](err); ok {
		return environment.Error()
	}
	text := missingOf.ReplaceAllString(err.Error(), "missing: $1")
	text = enumOf.ReplaceAllStringFunc(text, func(list string) string {
		return strings.ReplaceAll(strings.Replace(list, `"",`, "", 1), `","`, `", "`)
	})
	text = wholeOf.ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(number, "uint") {
			return "a whole number from 0 on "
		}
		return "a whole number "
	})
	text = lengthOf.ReplaceAllString(text, "expected a length of time such as 30s, 5m or 2h but got $1$2")
	text = endOf.ReplaceAllString(text, "needs a value")
	text = flagFor.ReplaceAllString(text, "needs a value, and $1 looks like a flag; to give it as the value: $2")
	var bad *kong.ParseError
	if missing := missingOf.FindStringSubmatch(err.Error()); missing != nil && errors.As(err, &bad) {
		text += choices(bad.Context.Selected(), missing[1])
	}
	if word := unexpected.FindStringSubmatch(text); word != nil && errors.As(err, &bad) {
		if node := bad.Context.Selected(); node != nil {
			text += instead(node, word[1])
		} else if paths := commandsNamed(bad.Context.Model.Node, word[1]); len(paths) > 0 {
			text += ", did you mean " + strings.Join(paths, " or ") + "?"
		}
	}
	if short := shortFlags.FindStringSubmatch(text); short != nil && errors.As(err, &bad) {
		text = short[1] // kong takes any other letter for a misspelt one
		if node := bad.Context.Selected(); node != nil && len(node.Positional) > 0 {
			text += "; an argument that begins with a dash comes last, after --"
		}
	}
	return text
}

// commandsNamed returns the commands of groups that have this name, such as "conversations show", in quotes.
func commandsNamed(parser *kong.Node, name string) (paths []string) {
	for _, group := range parser.Children {
		for _, command := range group.Children {
			if command.Name == name && !command.Hidden {
				paths = append(paths, `"`+group.Name+" "+name+`"`)
			}
		}
	}
	return paths
}

// meant are the flags that take what is easily given as an argument, by command.
var meant = map[string]string{
	"analyze": "conversation", "backup create": "out", "context": "query", "conversations branch": "title", "conversations create": "title",
	"conversations update": "title", "doctor": "data", "failed list": "conversation", "failed retry": "conversation", "insights": "conversation",
	"quotas": "tenant", "restore": "data", "tail": "conversation", "tokens create": "name", "up": "data", "watch": "agent",
}

// instead asks whether an argument that a command does not take belongs to a flag, "" if none is known.
func instead(command *kong.Node, argument string) string {
	flag, found := meant[strings.TrimPrefix(command.Path(), "mneme ")]
	if !found {
		return ""
	}
	if strings.ContainsAny(argument, " \t\n\"'") {
		argument = strconv.Quote(argument)
	}
	return fmt.Sprintf(", did you mean --%s %s?", flag, argument)
}

// choices lists what an argument of a command can be, "" if it can be anything.
func choices(command *kong.Node, argument string) string {
	if command == nil {
		return ""
	}
	for _, one := range command.Positional {
		if one.Summary() == argument && one.Enum != "" {
			return ", one of " + strings.Join(one.EnumSlice(), ", ")
		}
	}
	return ""
}

// maxMistakes bounds the mistakes of a command line that are told at once.
const maxMistakes = 5

// mistakes says everything that is wrong with a command line. The parser ends at the first mistake, so what that is
// about is left out and the rest is parsed again.
func mistakes(args []string, err error) string {
	list := []string{mistake(err)}
	wrong := map[string]bool{} // flags whose mistakes were told
	for len(list) < maxMistakes {
		if missing := missingArguments(err); missing != "" {
			list = append(list, missing)
			break
		}
		if found := wrongFlag.FindStringSubmatch(err.Error()); found != nil {
			wrong[found[1]] = true
		}
		if args = withoutFlag(args, err); args == nil {
			break
		}
		parser, broken := newParser(&CLI{}, kong.Writers(io.Discard, io.Discard), kong.Exit(func(int) {}))
		if broken != nil {
			break
		}
		_, err = parser.Parse(args)
		// Without its flag, what was meant as a value looks like an argument.
		if err == nil || strings.HasPrefix(err.Error(), "unexpected argument") {
			break
		}
		if text := withoutTold(mistake(err), wrong); text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, "\n")
}

const missingFlags = "missing flags: "

// withoutTold leaves flags whose mistakes were told out of those that are missing: they are not, but were taken out of the
// arguments. "" means that no flag is missing.
func withoutTold(text string, told map[string]bool) string {
	list, found := strings.CutPrefix(text, missingFlags)
	if !found {
		return text
	}
	missing := slices.DeleteFunc(strings.Split(list, ", "), func(flag string) bool {
		name, _, _ := strings.Cut(flag, "=")
		return told[name]
	})
	if len(missing) == 0 {
		return ""
	}
	return missingFlags + strings.Join(missing, ", ")
}

// missingArguments names the arguments that are missing too if flags are missing, which the parser says first.
func missingArguments(err error) string {
	var bad *kong.ParseError
	if !strings.HasPrefix(err.Error(), missingFlags) || !errors.As(err, &bad) || bad.Context.Selected() == nil {
		return ""
	}
	var missing []string
	for _, arg := range bad.Context.Selected().Positional {
		if arg.Required && !arg.Set {
			missing = append(missing, arg.Summary())
		}
	}
	if len(missing) == 0 {
		return ""
	}
	return "missing: " + strings.Join(missing, " ")
}

// wrongFlag finds the flag that a mistake is about.
var wrongFlag = regexp.MustCompile(`^(?:unknown flag )?(--[a-z0-9][a-z0-9-]*)`)

// withoutFlag returns the arguments without the flag that a mistake is about, and without its value; nil if it is about
// something else.
func withoutFlag(args []string, err error) []string {
	found := wrongFlag.FindStringSubmatch(err.Error())
	if found == nil {
		return nil
	}
	for i, arg := range args {
		switch {
		case arg == "--":
			return nil
		case strings.HasPrefix(arg, found[1]+"="):
			return slices.Delete(slices.Clone(args), i, i+1)
		case arg != found[1]:
			continue
		}
		end := i + 1
		if known := !strings.HasPrefix(err.Error(), "unknown"); known && end < len(args) && (!strings.HasPrefix(args[end], "-") || flagFor.MatchString(err.Error())) {
			end++
		}
		return slices.Delete(slices.Clone(args), i, end)
	}
	return nil
}

// flagOf names what sets a parameter of the API on the command line.
func flagOf(parameter string) string {
	switch parameter {
	case "query":
		return "the query"
	case "wait_ms":
		return "--wait"
	}
	return "--" + strings.ReplaceAll(parameter, "_", "-")
}

// memberOf names what sets a member of a request's body on the command line.
func memberOf(member string) string {
	switch {
	case member == "message_id":
		return "<message>"
	case member == "into":
		return "<into>"
	case strings.ContainsAny(member, ".["): // of a file
		return "body." + member
	}
	return flagOf(member)
}

// problem turns an error answer to a request with these parameters into one message with the locations that it names.
// It names flags and commands, as the command line does. It is a usage error if all locations are parameters, because
// these come from flags and arguments.
func problem(status int, body []byte, sent url.Values) error {
	var p struct {
		Title  string
		Detail string
		Errors []struct{ Message, Location string }
	}
	if json.Unmarshal(body, &p) != nil || p.Title == "" {
		return fmt.Errorf("the server answered %d: %s", status, console.Cut(console.OneLine(string(body)), 300))
	}
	text := cmp.Or(bounds.Replace(p.Detail), p.Title)
	known := map[string]bool{}
	for name := range sent {
		known[name] = true
	}
	usage := status == http.StatusUnprocessableEntity && len(p.Errors) > 0
	for _, e := range p.Errors {
		name, parameter := strings.CutPrefix(e.Location, "query.")
		argument, positional := strings.CutPrefix(e.Location, "path.")
		usage = usage && (parameter || positional)
		if message := bounds.Replace(e.Message); !strings.Contains(text, message) {
			text += "\n  " + e.Location + ": " + message
		}
		if parameter {
			known[name] = true
			text = strings.ReplaceAll(text, e.Location+": ", flagOf(name)+": ")
		}
		if member, ok := strings.CutPrefix(e.Location, "body."); ok {
			text = strings.ReplaceAll(text, e.Location+": ", memberOf(member)+": ")
		}
		if positional {
			text = strings.ReplaceAll(text, e.Location+": ", "<"+argument+">: ")
		}
	}
	if usage {
		return &program.UsageError{Err: errors.New(inFlags(text, known))}
	}
	return errors.New(routes.Replace(text))
}

// bounds says in words which numbers and lengths are accepted.
var bounds = strings.NewReplacer("expected number >= ", "must be at least ", "expected number <= ", "must be at most ",
	"expected length >= ", "must not be shorter than ", "expected length <= ", "must not be longer than ")

// routes replaces the API's advice to its own clients with the commands that do the same.
var routes = strings.NewReplacer(
	"see GET /v1/conversations/{id}/contexts", "mneme contexts ID lists those that were",
	"see GET /v1/projects", "mneme projects list shows the projects",
	"or change it with PATCH", "or change it with mneme conversations update",
	"--force (force in the body)", "--force",
	"/docs and /openapi.json list every path", "is the server of another version? (mneme version)",
)

// Where a refusal names parameters: with a value, as what it is about, or as what that is compared with.
var (
	valued   = regexp.MustCompile(`(?:^|[ (])([a-z_]+)=`)
	subjects = regexp.MustCompile(`^([a-z_]+)(?: and ([a-z_]+))? (?:is|are|needs?|has) `)
	compared = regexp.MustCompile(` (?:after|before|below|above) ([a-z_]+):`)
)

// inFlags writes the known parameters that a refusal names as flags.
func inFlags(text string, known map[string]bool) string {
	for _, names := range []*regexp.Regexp{valued, compared, subjects} {
		found := names.FindAllStringSubmatchIndex(text, -1)
		for _, at := range slices.Backward(found) {
			for i := len(at) - 2; i >= 2; i -= 2 {
				if at[i] >= 0 && known[text[at[i]:at[i+1]]] {
					text = text[:at[i]] + flagOf(text[at[i]:at[i+1]]) + text[at[i+1]:]
				}
			}
		}
	}
	return text
}
