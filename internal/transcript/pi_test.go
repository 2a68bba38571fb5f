package transcript

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// piSession is of version 3 of the format.
const piSession = "testdata/2026-10-05T09-00-00-000Z_01a0aaaa-bbbb-7ccc-8ddd-ffffffffffff.jsonl"

func TestASessionOfPiBecomesAConversation(t *testing.T) {
	const conversation = "pi:01a0aaaa-bbbb-7ccc-8ddd-ffffffffffff"
	items := readFile(t, piSession, Auto)
	for _, i := range items {
		assert.Equal(t, conversation, i.Event.Subject)
		assert.Equal(t, "import/pi", i.Event.Source)
		assert.False(t, i.Open)
	}
	want := []string{
		`1 CONV 00 {"agent":"pi","cwd":"/home/lea/shop"}`,
		`3 CONV:a1b2c3d5:title 00 {"title":"Cart total"}`,
		`4 CONV:a1b2c3d6 01 {"message_id":"CONV:a1b2c3d6","role":"user","content":"Why is the total 0?"}`,
		`5 CONV:a1b2c3d7 02 {"message_id":"CONV:a1b2c3d7","role":"assistant","content":"I read it.","reasoning":"Look at the cart.","model":"model-e","usage":{"input":3,"output":4,"cacheRead":5,"cacheWrite":6}}`,
		`5 call_1 02 {"tool_call_id":"call_1","message_id":"CONV:a1b2c3d7","tool_name":"read","arguments":{"path":"cart.go"}}`,
		`5 CONV:a1b2c3d7:c2 02 {"tool_call_id":"CONV:a1b2c3d7:c2","message_id":"CONV:a1b2c3d7","tool_name":"bash","arguments":{"command":"false"}}`,
		`6 res:call_1 02.25 {"tool_call_id":"call_1","success":true,"result":"total := 0\n[image]","duration_ms":250}`,
		`7 res:CONV:a1b2c3d7:c2 03 {"tool_call_id":"CONV:a1b2c3d7:c2","success":false,"result":"exit 1","error":"exit 1","duration_ms":1000}`,
		`8 CONV:a1b2c3da:bash 04 {"tool_call_id":"CONV:a1b2c3da:bash","message_id":"CONV:a1b2c3d7","tool_name":"bash","arguments":{"command":"ls"}}`,
		`8 res:CONV:a1b2c3da:bash 04 {"tool_call_id":"CONV:a1b2c3da:bash","success":true,"result":"cart.go\n"}`,
		`9 CONV:a1b2c3db:compaction 05 {"message_id":"CONV:a1b2c3db:compaction","role":"system","content":"The cart starts at zero.","origin":"compaction"}`,
		`10 CONV:a1b2c3dc 06 {"message_id":"CONV:a1b2c3dc","role":"system","content":"They tried to read it.","origin":"meta"}`,
		`11 CONV:a1b2c3dd 07 {"message_id":"CONV:a1b2c3dd","role":"user","content":"Fix the cart","origin":"meta"}`,
		`18 CONV:a1b2c3e4 10 {"message_id":"CONV:a1b2c3e4","role":"system","content":"earlier sessions","origin":"meta"}`,
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], "CONV", conversation)
	}
	assert.Equal(t, want, shown(t, items))
}

func TestUnknownLinesOfPiAreSkippedAndTold(t *testing.T) {
	data, err := os.ReadFile(piSession)
	require.NoError(t, err)
	var skips []string
	require.NoError(t, Read(context.Background(), strings.NewReader(string(data)), piSession, Auto, func(Item) error { return nil },
		OnSkip(func(s Skip) { skips = append(skips, s.String()) })))
	require.Equal(t, []string{"pi 3: holiday", "pi 3: message of oracle"}, skips)
}

func TestAGrownSessionOfPiBeginsWithTheSameEvents(t *testing.T) {
	data, err := os.ReadFile(piSession)
	require.NoError(t, err)
	whole := shown(t, readAll(t, data, piSession, Auto))
	lines := strings.SplitAfter(string(data), "\n")
	for n := range lines {
		part := shown(t, readAll(t, []byte(strings.Join(lines[:n], "")), piSession, piFormat))
		require.LessOrEqual(t, len(part), len(whole))
		assert.Equal(t, whole[:len(part)], append([]string{}, part...), "after %d lines", n)
	}
}

func TestASessionOfPiWithoutItsFirstLineHasTheIDOfItsFile(t *testing.T) {
	line := `{"type":"message","timestamp":"2026-10-05T09:00:01Z","message":{"role":"user","content":"hi"}}`
	list := good(t, readAll(t, []byte(line), piSession, piFormat))
	require.Len(t, list, 2)
	require.Equal(t, "pi:01a0aaaa-bbbb-7ccc-8ddd-ffffffffffff:1", list[1].ID)
	require.Equal(t, map[int]string{1: "there is no session line before this line, and the file's name has no session id"}, refused(readAll(t, []byte(line), "x.jsonl", piFormat)))
}
