package connect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFile is a file that gets an MCP server, such as goose's config.yaml, where it is an extension:
//
//	extensions:
//	  mneme:
//	    …
//	    cmd: …
//	    args: ["mcp"]
//
// Lines are added and removed, so that the rest keeps its comments and its formatting.
type yamlFile struct {
	section string   // the key of the servers
	command string   // the key of a server's command
	more    []string // lines that a server has besides its command and arguments
	empty   *regexp.Regexp
}

var (
	gooseYAML  = yamlFile{"extensions", "cmd", []string{"type: stdio", "name: mneme", "enabled: true", "timeout: 60"}, emptyMapping("extensions")}
	hermesYAML = yamlFile{"mcp_servers", "command", nil, emptyMapping("mcp_servers")}
)

func serversYAML(*agent) format { return gooseYAML }

// YAML returns an MCP server in the form of an agent's config.yaml.
func YAML(agent, command string, args []string) string {
	if agent == Hermes {
		return hermesYAML.alone(command, args)
	}
	return gooseYAML.alone(command, args)
}

// alone returns a server with the key of the servers.
func (f yamlFile) alone(command string, args []string) string {
	return f.section + ":\n" + f.entry("  ", command, args)
}

// entry returns the lines of our server.
func (f yamlFile) entry(indent, command string, args []string) string {
	lines := []string{"mneme:"}
	for _, line := range f.more {
		lines = append(lines, "  "+line)
	}
	lines = append(lines, "  "+f.command+": "+quoted(command), "  args: "+quoted(args))
	return indent + strings.Join(lines, "\n"+indent) + "\n"
}

// yamlServers is the part of the file with the servers. Its nodes are nil if they are not there.
type yamlServers struct {
	key, value *yaml.Node
	ownKey     *yaml.Node
	ownValue   *yaml.Node
	own        []string // our command
	count      int
}

func (f yamlFile) parse(raw []byte) (e yamlServers, err error) {
	top, err := topOfYAML(raw)
	if top == nil || err != nil {
		return e, err
	}
	if e.key, e.value = member(top, f.section); e.value == nil || e.value.Tag == "!!null" {
		return e, nil
	}
	if e.value.Kind != yaml.MappingNode {
		return e, errors.New(f.section + " is not a mapping: correct it first")
	}
	e.count = len(e.value.Content) / 2
	key, value := member(e.value, "mneme")
	if e.ownKey, e.ownValue = key, value; key == nil {
		return e, nil
	}
	var own struct {
		Args []string `yaml:"args"`
	}
	if _, command := member(value, f.command); command != nil && value.Decode(&own) == nil {
		if command := append([]string{command.Value}, own.Args...); isServer(command) {
			e.own = command
		}
	}
	return e, nil
}

// topOfYAML returns the mapping that a file is, nil if it is empty.
func topOfYAML(raw []byte) (*yaml.Node, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("it is not valid YAML, so nothing was changed: correct it first (%s)", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if root.Kind == 0 || root.Content[0].Tag == "!!null" {
		return nil, nil
	}
	if root.Content[0].Kind != yaml.MappingNode {
		return nil, errors.New("it is not a YAML mapping, so nothing was changed: it must hold lines like NAME: VALUE")
	}
	return root.Content[0], nil
}

// member returns the key and the value of a member of a mapping, nil if there is none.
func member(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

// read implements [format].
func (f yamlFile) read(raw []byte) (c Commands, _ int, err error) {
	e, err := f.parse(raw)
	c.MCP = e.own
	return c, 0, err
}

// emptyMapping matches the line of a key whose value is {}.
func emptyMapping(key string) *regexp.Regexp {
	return regexp.MustCompile(`^` + key + `:([ \t]*\{[ \t]*\})[ \t]*(#.*)?\r?\n?$`)
}

// write implements [format].
func (f yamlFile) write(raw []byte, want Commands) ([]byte, error) {
	e, err := f.parse(raw)
	switch {
	case err != nil:
		return nil, err
	case want.MCP == nil && e.own == nil, want.MCP != nil && slices.Equal(e.own, want.MCP):
		return raw, nil
	case e.ownKey != nil && e.own == nil:
		return nil, errors.New(f.section + ".mneme is another server: rename it, or remove it")
	case bytes.Contains(bytes.ReplaceAll(raw, []byte("\r\n"), nil), []byte("\r")): // YAML counts lines otherwise
		return nil, errors.New("it has line ends without a line feed: correct them first")
	}
	lines := slices.Collect(bytes.Lines(raw))
	indent, at := "  ", len(lines)
	if e.own != nil {
		indent, at = strings.Repeat(" ", e.ownKey.Column-1), e.ownKey.Line-1
		end := at + 1
		for end < len(lines) && len(bytes.TrimSpace(lines[end])) > 0 && indentOf(lines[end]) > len(indent) {
			end++
		}
		end = withoutComments(lines, end)
		if want.MCP != nil {
			return f.renewed(raw, lines, end, e, want.MCP)
		}
		lines = slices.Delete(lines, at, end)
		if line := e.key.Line - 1; e.count == 1 && !bytes.Contains(lines[line], []byte("#")) {
			lines = slices.Delete(lines, line, line+1)
		}
	} else if e.key != nil {
		at = e.key.Line
		if e.count > 0 {
			indent = strings.Repeat(" ", e.value.Content[0].Column-1)
		} else if found := f.empty.FindSubmatch(lines[at-1]); found != nil {
			lines[at-1] = bytes.Replace(lines[at-1], found[1], nil, 1)
		}
	}
	if want.MCP != nil {
		lines = slices.Insert(lines, at, f.newEntry(raw, lines[:at], e.key == nil, indent, want.MCP)...)
	}
	after := bytes.Join(lines, nil)
	if !f.onlyOurs(raw, after, want.MCP) {
		return nil, fmt.Errorf("it can't be edited safely, so nothing was changed: %s", f.byHand(want.MCP))
	}
	return after, nil
}

// renewed returns the file with another command in our server, which ends before a line. Its other members may be the
// user's choice.
func (f yamlFile) renewed(raw []byte, lines [][]byte, end int, e yamlServers, command []string) ([]byte, error) {
	indent := strings.Repeat(" ", e.ownValue.Column-1)
	text := indent + f.command + ": " + quoted(command[0]) + e.besides(f.command) + "\n" + indent + "args: " + quoted(command[1:]) + e.besides("args") + "\n"
	if bytes.Contains(raw, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	for i := len(e.ownValue.Content) - 2; i >= 0; i -= 2 { // from the last one on, so that the numbers of lines stay valid
		key := e.ownValue.Content[i]
		if from := key.Line - 1; key.Value == f.command || key.Value == "args" {
			to := withoutComments(lines, end)
			lines = slices.Replace(lines, from, to, commentsOf(lines[from:to])...)
			if key.Value == f.command {
				lines = slices.Insert(lines, from, []byte(text))
			}
		}
		end = key.Line - 1
	}
	after := bytes.Join(lines, nil)
	if !f.onlyOurs(raw, after, command) {
		return nil, fmt.Errorf("it can't be edited safely, so nothing was changed: change the command of %s.mneme by hand to %s, and its args to %s", f.section, quoted(command[0]), quoted(command[1:]))
	}
	return after, nil
}

// commentsOf returns the lines that are comments only.
func commentsOf(lines [][]byte) [][]byte {
	return slices.DeleteFunc(slices.Clone(lines), func(line []byte) bool { return !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) })
}

// besides returns the comments at the ends of the lines of a member of our server.
func (e yamlServers) besides(name string) (comments string) {
	for i := 0; i < len(e.ownValue.Content); i += 2 {
		key, value := e.ownValue.Content[i], e.ownValue.Content[i+1]
		if key.Value != name {
			continue
		}
		for _, node := range append([]*yaml.Node{key, value}, value.Content...) {
			if node.LineComment != "" {
				comments += " " + strings.TrimSpace(node.LineComment)
			}
		}
	}
	return comments
}

// byHand says what to do with a file that can't be edited.
func (f yamlFile) byHand(command []string) string {
	if command == nil {
		return "remove " + f.section + ".mneme by hand"
	}
	return "add this by hand\n\n" + f.alone(command[0], command[1:])
}

// newEntry returns the lines of our server in the line ends of the file, with the key of the servers if it is alone.
func (f yamlFile) newEntry(raw []byte, before [][]byte, alone bool, indent string, command []string) [][]byte {
	text := f.entry(indent, command[0], command[1:])
	if alone {
		text = f.alone(command[0], command[1:])
	}
	if n := len(before); n > 0 && !bytes.HasSuffix(before[n-1], []byte("\n")) {
		text = "\n" + text
	}
	if bytes.Contains(raw, []byte("\r\n")) {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return [][]byte{[]byte(text)}
}

// withoutComments returns the end of some lines without the comments at their end, which may be about what follows.
func withoutComments(lines [][]byte, end int) int {
	for end > 1 && bytes.HasPrefix(bytes.TrimSpace(lines[end-1]), []byte("#")) {
		end--
	}
	return end
}

func indentOf(line []byte) int { return len(line) - len(bytes.TrimLeft(line, " ")) }

// onlyOurs reports whether two texts differ only in our server, and the second has the wanted one. If both have one,
// they may differ only in its command.
func (f yamlFile) onlyOurs(before, after []byte, want []string) bool {
	got, err := f.parse(after)
	if err != nil || !slices.Equal(got.own, want) {
		return false
	}
	had, err := f.parse(before)
	both := err == nil && had.own != nil && want != nil
	a, ok := f.rest(before, both)
	b, also := f.rest(after, both)
	return ok && also && (len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b))
}

// rest returns what a file holds besides our server, or with keep besides its command; ok is false if that can't be
// determined.
func (f yamlFile) rest(raw []byte, keep bool) (all map[string]any, ok bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	if err := decoder.Decode(&all); err != nil && !errors.Is(err, io.EOF) {
		return nil, false
	}
	if err := decoder.Decode(new(any)); !errors.Is(err, io.EOF) { // a second document
		return nil, false
	}
	list, _ := all[f.section].(map[string]any)
	if own, _ := list["mneme"].(map[string]any); keep {
		delete(own, f.command)
		delete(own, "args")
	} else {
		delete(list, "mneme")
	}
	if len(list) == 0 {
		delete(all, f.section)
	}
	return all, true
}
