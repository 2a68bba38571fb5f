package main

import (
	"context"
	"embed"
	"io"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"mneme.dev/mneme/internal/console"
	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/settings"
)

//go:embed shells
var shells embed.FS

// CompletionCmd prints a script.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*CompletionCmd) Help() string {
	return `The script asks mneme itself, so it never goes out of date. Conversations are completed if a server answers at once.

Examples that load it in every new shell:

    echo 'source <(mneme completion bash)' >> ~/.bashrc
    echo 'source <(mneme completion zsh)' >> ~/.zshrc
    mneme completion fish > ~/.config/fish/completions/mneme.fish`
}

func (c *CompletionCmd) Run(t *terminal) error {
	script, err := shells.ReadFile("shells/mneme." + c.Shell)
	if err != nil {
		return err
	}
	return t.text(string(script))
}

// completeCommand is the command that the scripts call, with the words of the line up to
// the cursor. It prints a line that says what is completed (words, files, directories) and
// then a line for each word: the word, a tab, and its meaning.
const completeCommand = "__complete"

// completeWithin is how long a server may take to list its conversations. It is short
// because a person is waiting.
const completeWithin = 200 * time.Millisecond

// complete answers a script. It prints nothing if there are no candidates.
func complete(ctx context.Context, words []string, out io.Writer) {
	if len(words) == 0 {
		words = []string{""}
	}
	var commands CLI
	parser, err := newParser(&commands)
	if err != nil {
		return
	}
	c := completion{ctx: ctx, node: parser.Model.Node, flags: map[string]string{}}
	kind, list := c.words(words[:len(words)-1], words[len(words)-1])
	var text strings.Builder
	text.WriteString(kind + "\n")
	for _, candidate := range list {
		if strings.HasPrefix(candidate[0], words[len(words)-1]) && console.OneLine(candidate[0]) == candidate[0] {
			text.WriteString(candidate[0] + "\t" + console.OneLine(candidate[1]) + "\n")
		}
	}
	_, _ = io.WriteString(out, text.String())
}

// candidates are words with their meanings.
type candidates [][2]string

// completion is the state of parsing the words of a line.
type completion struct {
	ctx        context.Context
	node       *kong.Node
	positional int               // number of arguments given to the node
	flags      map[string]string // values of flags that are given
	waiting    *kong.Flag        // a flag whose value comes next
	noFlags    bool              // after --
}

func (c *completion) words(before []string, last string) (kind string, list candidates) {
	for _, word := range before {
		c.take(word)
	}
	if c.waiting != nil {
		return c.value(c.waiting.Value, "")
	}
	if name, _, found := strings.Cut(last, "="); found && strings.HasPrefix(last, "--") && !c.noFlags {
		if flag := c.flag(name); flag != nil {
			return c.value(flag.Value, name+"=")
		}
	}
	if strings.HasPrefix(last, "-") && !c.noFlags {
		return "words", c.flagNames()
	}
	if c.positional == 0 {
		for _, child := range c.node.Children {
			if !child.Hidden {
				list = append(list, [2]string{child.Name, child.Help})
			}
		}
	}
	if i := c.positional; len(c.node.Positional) > 0 {
		last := c.node.Positional[len(c.node.Positional)-1]
		if i < len(c.node.Positional) {
			return c.value(c.node.Positional[i], "")
		} else if last.IsCumulative() {
			return c.value(last, "")
		}
	}
	return "words", list
}

// take processes the next word.
func (c *completion) take(word string) {
	switch {
	case c.waiting != nil:
		c.flags[c.waiting.Name], c.waiting = word, nil
	case c.noFlags || !strings.HasPrefix(word, "-") || word == "-":
		for _, child := range c.node.Children {
			if child.Name == word || (len(child.Aliases) > 0 && child.Aliases[0] == word) {
				c.node = child
				return
			}
		}
		c.positional++
	case word == "--":
		c.noFlags = true
	default:
		name, value, given := strings.Cut(word, "=")
		flag := c.flag(name)
		switch {
		case flag == nil:
		case given:
			c.flags[flag.Name] = value
		case !flag.IsBool():
			c.waiting = flag
		}
	}
}

// flag finds a flag of the command or its parents, "--limit" or "-o".
func (c *completion) flag(word string) *kong.Flag {
	for node := c.node; node != nil; node = node.Parent {
		for _, flag := range node.Flags {
			if word == "--"+flag.Name || (flag.Short != 0 && word == "-"+string(flag.Short)) {
				return flag
			}
		}
	}
	return nil
}

func (c *completion) flagNames() (list candidates) {
	for node := c.node; node != nil; node = node.Parent {
		for _, flag := range node.Flags {
			if !flag.Hidden {
				list = append(list, [2]string{"--" + flag.Name, flag.Help})
			}
		}
	}
	return list
}

// value completes a value; each candidate begins with a prefix.
func (c *completion) value(value *kong.Value, prefix string) (kind string, list candidates) {
	if value.Enum != "" {
		for _, one := range value.EnumSlice() {
			if one != "" {
				list = append(list, [2]string{prefix + one, ""})
			}
		}
		return "words", list
	}
	switch value.Tag.Get("complete") {
	case "file":
		return "files", nil
	case "directory":
		return "directories", nil
	case "conversation":
		for _, conversation := range c.conversations() {
			list = append(list, [2]string{prefix + conversation.ID, conversation.Title})
		}
	}
	return "words", list
}

// conversations lists the conversations of the server that the line or the environment names.
func (c *completion) conversations() []httpapi.Conversation {
	var s settings.Client
	if settings.Read(&s) != nil {
		return nil
	}
	if url := c.flags["url"]; url != "" {
		s.URL = url
	}
	if tenant := c.flags["tenant"]; tenant != "" {
		s.Tenant = tenant
	}
	api, err := (&Globals{Client: s}).client()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(c.ctx, completeWithin)
	defer cancel()
	var page struct{ Conversations []httpapi.Conversation }
	if api.get(ctx, "/v1/conversations", parameters{"limit": maxPage}, &page) != nil {
		return nil
	}
	return page.Conversations
}
