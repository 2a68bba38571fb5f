package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlFile is Codex's config.toml, which gets a block at its end:
//
//	# Written by mneme connect; mneme disconnect codex removes it.
//	[mcp_servers.mneme]
//	command = "…"
//	args = ["mcp"]
//
// There is no second mark at its end, because Codex would put the tables that it adds before it.
type tomlFile struct{}

func serversTOML(*agent) format { return tomlFile{} }

const tomlMark = "# Written by mneme connect; mneme disconnect codex removes it."

// tomlBlock matches the block, with the empty line before it.
var tomlBlock = regexp.MustCompile(`(?m)(^\r?\n)?^` + regexp.QuoteMeta(tomlMark) + `\r?\n\[mcp_servers\.mneme\]\r?\ncommand = .*\nargs = .*(\n|\z)`)

// TOML returns an MCP server in the form of Codex's config.toml.
func TOML(command string, args []string) string {
	return fmt.Sprintf("[mcp_servers.mneme]\ncommand = %s\nargs = %s\n", quoted(command), quoted(args))
}

// quoted is a JSON string or list, which TOML reads too.
func quoted(value any) string {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	_ = e.Encode(value) // strings: it cannot fail
	return strings.TrimSpace(w.String())
}

// tables is what is read of the file.
type tables struct {
	Servers map[string]any `toml:"mcp_servers"`
}

func parseTOML(raw []byte) (t tables, err error) {
	if err = toml.Unmarshal(bytes.TrimPrefix(raw, byteOrderMark), &t); err != nil {
		return t, fmt.Errorf("it is not valid TOML, so nothing was changed: correct it first (%s)", strings.TrimPrefix(err.Error(), "toml: "))
	}
	return t, nil
}

// read implements [format].
func (tomlFile) read(raw []byte) (c Commands, _ int, err error) {
	t, err := parseTOML(raw)
	if err != nil {
		return c, 0, err
	}
	if block := tomlBlock.Find(raw); block != nil {
		var own struct {
			Servers map[string]server `toml:"mcp_servers"`
		}
		if err := toml.Unmarshal(block, &own); err != nil {
			return c, 0, fmt.Errorf("the table [mcp_servers.mneme] was changed by hand: correct it first (%w)", err)
		}
		s := own.Servers["mneme"]
		c.MCP = append([]string{s.Command}, s.Args...)
		return c, 0, nil
	}
	if other, ok := t.Servers["mneme"].(map[string]any); ok { // set up by hand
		command, _ := other["command"].(string)
		words := []string{command}
		args, _ := other["args"].([]any)
		for _, a := range args {
			word, _ := a.(string)
			words = append(words, word)
		}
		if isServer(words) {
			c.MCP = words
		}
	}
	return c, 0, nil
}

// newlineOf returns how the lines of a file end.
func newlineOf(file []byte) string {
	if bytes.Contains(file, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// appended returns a file with a block of lines at its end, after an empty line.
func appended(file []byte, newline, block string) []byte {
	if len(file) > 0 {
		if file[len(file)-1] != '\n' {
			file = append(file, newline...)
		}
		file = append(file, newline...)
	}
	return append(file, block...)
}

// write implements [format].
func (tomlFile) write(raw []byte, want Commands) ([]byte, error) {
	before, err := parseTOML(raw)
	if err != nil {
		return nil, err
	}
	at := tomlBlock.FindIndex(raw)
	if at == nil && (before.Servers["mneme"] != nil || bytes.Contains(raw, []byte(tomlMark))) {
		if want.MCP == nil {
			return raw, nil // not ours
		}
		return nil, errors.New("it has a server mcp_servers.mneme that mneme connect did not write: remove it first")
	}
	newline, block := newlineOf(raw), ""
	if want.MCP != nil {
		block = strings.ReplaceAll(tomlMark+"\n"+TOML(want.MCP[0], want.MCP[1:]), "\n", newline)
	}
	after := slices.Clone(raw)
	if at == nil {
		if want.MCP == nil {
			return raw, nil
		}
		after = appended(after, newline, block)
	} else {
		if err := alone(raw[at[1]:]); err != nil {
			return nil, err
		}
		old := raw[at[0]:at[1]]
		if lead := bytes.Index(old, []byte(tomlMark)); block != "" {
			block = string(old[:lead]) + block
		}
		after = slices.Concat(raw[:at[0]], []byte(block), raw[at[1]:])
	}
	got, err := parseTOML(after)
	if err == nil && want.MCP == nil && got.Servers["mneme"] != nil {
		return nil, errors.New("the table [mcp_servers.mneme] has tables of its own, such as [mcp_servers.mneme.env]: remove all of them by hand")
	}
	if err != nil || (got.Servers["mneme"] != nil) != (want.MCP != nil) {
		return nil, errors.New("a table [mcp_servers.mneme] does not fit into the file: write mcp_servers as tables, not on one line")
	}
	return after, nil
}

// alone reports an error if lines after the block belong to its table.
func alone(rest []byte) error {
	for line := range bytes.Lines(rest) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		if line[0] != '[' {
			return errors.New("the table [mcp_servers.mneme] has further keys: remove the table by hand")
		}
		return nil
	}
	return nil
}
