package connect

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var kimiConfigs = map[string]string{
	"none":         "",
	"no line end":  "default_model = \"x\"",
	"line end":     "default_model = \"x\"\n",
	"mark":         "\ufeffa = 1\r\n",
	"mark alone":   "\ufeff",
	"windows":      "a = 1\r\n[t]\r\nb = 2\r\n",
	"other hooks":  "[[hooks]]\nevent = \"Stop\"\ncommand = \"notify\"\n\n# my models\n[models.a]\nprovider = \"b\"\n",
	"array values": "x = [\n  [1],\n  [2],\n]\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"\"\"\n[[hooks]]\n\"\"\"\n",
}

func TestTheConfigOfKimiCodeIsUndoneByteForByte(t *testing.T) {
	for name, text := range kimiConfigs {
		home, options := machine(t)
		path := filepath.Join(home, ".kimi-code", "config.toml")
		put(t, path, text)
		_, err := Connect(t.Context(), options(KimiCode))
		require.NoError(t, err, name)
		connected := get(t, path)
		require.True(t, strings.HasPrefix(connected, text), name)
		require.True(t, inspected(t, KimiCode, "").Connected, name)
		_, err = Connect(t.Context(), options(KimiCode))
		require.NoError(t, err, name)
		require.Equal(t, connected, get(t, path), name)
		_, err = Disconnect(t.Context(), options(KimiCode))
		require.NoError(t, err, name)
		require.Equal(t, map[string]string{"config.toml": text}, files(t, filepath.Dir(path)), name)
	}
}

// kimiFile returns the format of Kimi Code's config.toml.
func kimiFile(t require.TestingT) hooksTOMLFile {
	a, err := find(KimiCode)
	require.NoError(t, err)
	return hooksTOMLFile{a}
}

func TestHooksThatKimiCodeHasWrittenAgainAreRemoved(t *testing.T) {
	f := kimiFile(t)
	connected, err := f.write([]byte(kimiConfigs["other hooks"]), Commands{Hook: []string{"/a folder/mneme-hook", "kimi-code"}})
	require.NoError(t, err)
	all := map[string]any{}
	require.NoError(t, toml.Unmarshal(connected, &all))
	again, err := toml.Marshal(all) // in another order, and without comments
	require.NoError(t, err)
	require.NotContains(t, string(again), f.mark())
	c, at, err := f.read(again)
	require.NoError(t, err)
	require.Equal(t, len(f.events), at)
	require.Equal(t, []string{"/a folder/mneme-hook", "kimi-code"}, c.Hook)
	left, err := f.write(again, Commands{})
	require.NoError(t, err)
	require.NotContains(t, string(left), "mneme")
	require.Contains(t, string(left), "notify")

	moved, err := f.write(again, Commands{Hook: []string{"/new/mneme-hook", "kimi-code"}})
	require.NoError(t, err)
	require.NotContains(t, string(moved), "a folder")
	require.Equal(t, len(f.events), strings.Count(string(moved), "/new/mneme-hook"))
}

func TestWhatBelongsToOthersStaysInTheConfigOfKimiCode(t *testing.T) {
	f := kimiFile(t)
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, part := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"# a comment\n", "\n", "[[hooks]]\nevent = \"Stop\"\ncommand = \"notify\"\n", "[[hooks]]\nevent = \"Stop\"\ncommand = \"/old/mneme-hook kimi-code\"\ntimeout = 1\n",
			"[[permission.rules]]\npattern = \"Read\"\n", "  [[ hooks ]] # mine\n  event = \"Stop\"\n  command = '''\n[[hooks]]\ncommand = \"mneme-hook kimi-code\"\n'''\n", f.mark() + "\n",
		}), 0, 8).Draw(t, "parts") {
			text.WriteString(part)
		}
		raw := []byte(text.String())
		connected, err := f.write(raw, Commands{Hook: []string{"/p/mneme-hook", "kimi-code"}})
		if err != nil {
			require.ErrorContains(t, err, "edit the file by hand")
			return
		}
		c, at, err := f.read(connected)
		require.NoError(t, err)
		require.Equal(t, Commands{Hook: []string{"/p/mneme-hook", "kimi-code"}}, c)
		require.Equal(t, len(f.events), at)
		left, err := f.write(connected, Commands{})
		require.NoError(t, err)
		require.True(t, f.same(raw, left, nil))
	})
}

func TestWhatTheUserWritesAfterTheHooksOfKimiCodeStays(t *testing.T) {
	f := kimiFile(t)
	connected, err := f.write([]byte("a = 1\n"), Commands{Hook: []string{"/p/mneme-hook", "kimi-code"}})
	require.NoError(t, err)
	const mine = "\n# Remember to rotate the key.\n# [models.b]\n"
	moved, err := f.write(append(connected, mine...), Commands{Hook: []string{"/new/mneme-hook", "kimi-code"}})
	require.NoError(t, err)
	require.Contains(t, string(moved), mine)
	left, err := f.write(moved, Commands{})
	require.NoError(t, err)
	require.Equal(t, "a = 1\n"+mine, string(left))
}

// The settings of a new installation can have an empty list, beside which no table can be.
func TestAnEmptyListOfHooksOfKimiCodeMakesRoom(t *testing.T) {
	f := kimiFile(t)
	ours := Commands{Hook: []string{"/p/mneme-hook", "kimi-code"}}
	for text, want := range map[string]string{
		"a = 1\nhooks = []\nb = 2\n":                 "a = 1\nb = 2\n",
		"hooks = [ ] # none\r\n\r\n[t]\r\nc = 3\r\n": "\r\n[t]\r\nc = 3\r\n",
		"a = 1\n[t]\nhooks = []\n":                   "a = 1\n[t]\nhooks = []\n",
	} {
		connected, err := f.write([]byte(text), ours)
		require.NoError(t, err, text)
		c, at, err := f.read(connected)
		require.NoError(t, err, text)
		require.Equal(t, ours, c, text)
		require.Equal(t, len(f.events), at, text)
		left, err := f.write(connected, Commands{})
		require.NoError(t, err, text)
		require.Equal(t, want, string(left))
	}
	_, err := f.write([]byte("text = \"\"\"\nhooks = []\n\"\"\"\nhooks = []\n"), ours)
	require.ErrorContains(t, err, "edit the file by hand", "the first one is a part of a text")
}

func TestAConfigOfKimiCodeThatCanNotBeEditedIsLeftAlone(t *testing.T) {
	for text, says := range map[string]string{
		"a = \n":            "not valid TOML",
		"hooks = {a = 1}\n": "its hooks are not a list of tables",
		"[[hooks]]\nevent = \"Stop\"\ntimeout = 0.5\n":         "a whole number timeout",
		"hooks = [{event = \"Stop\", command = \"notify\"}]\n": "write each as a table [[hooks]]",
		"[hooks]\nevent = \"Stop\"\n":                          "write each as a table [[hooks]]",
	} {
		home, options := machine(t)
		put(t, filepath.Join(home, ".kimi-code", "config.toml"), text)
		_, err := Connect(t.Context(), options(KimiCode))
		require.ErrorContains(t, err, says)
		require.Equal(t, map[string]string{"config.toml": text}, files(t, filepath.Join(home, ".kimi-code")))
	}
}

func FuzzTOML(f *testing.F) {
	for _, text := range kimiConfigs {
		f.Add([]byte(text))
	}
	f.Add([]byte("hooks = []\n\r\r[a]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, file := range []struct {
			format
			want Commands
		}{{kimiFile(t), Commands{Hook: []string{"/p/mneme-hook", "kimi-code"}}}, {tomlFile{}, Commands{MCP: []string{"/p/mneme", "mcp"}}}} {
			connected, err := file.write(raw, file.want)
			if err != nil {
				continue
			}
			got, _, err := file.read(connected)
			require.NoError(t, err)
			require.Equal(t, file.want, got)
			again, err := file.write(connected, file.want)
			require.NoError(t, err)
			require.Equal(t, string(connected), string(again))
			if back, err := file.write(connected, Commands{}); err == nil {
				left, _, err := file.read(back)
				require.NoError(t, err)
				require.Equal(t, Commands{}, left)
			}
		}
	})
}
