package tabular

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func written[T any](t require.TestingT, format string, rows ...T) []byte {
	var b bytes.Buffer
	w, err := New[T](format, &b)
	require.NoError(t, err)
	for _, row := range rows {
		require.NoError(t, w.Write(row))
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestParquetIsReadBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String()
		number := rapid.Int64()
		at := rapid.Custom(func(t *rapid.T) time.Time {
			if rapid.Bool().Draw(t, "none") {
				return time.Time{}
			}
			return time.UnixMicro(rapid.Int64Range(-1<<50, 1<<52).Draw(t, "micros")).UTC()
		})
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Call {
			return Call{
				Conversation: text.Draw(t, "id"), Tool: text.Draw(t, "tool"), Arguments: text.Draw(t, "arguments"), Seq: number.Draw(t, "seq"), Time: at.Draw(t, "time"),
				Success: rapid.Ptr(rapid.Bool(), true).Draw(t, "success"), DurationMS: rapid.Ptr(rapid.Float64Range(-1e300, 1e300), true).Draw(t, "duration"),
				ResultChars: rapid.Ptr(number, true).Draw(t, "chars"), Error: text.Draw(t, "error"),
			}
		}), 1, 50).Draw(t, "rows")
		raw := written(t, "parquet", want...)
		got, err := parquet.Read[Call](bytes.NewReader(raw), int64(len(raw)))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestRowGroupsOfParquetAreBounded(t *testing.T) {
	t.Parallel()
	groups := func(n int, arguments string) (rows []int64) {
		var b bytes.Buffer
		w, err := New[Call]("parquet", &b)
		require.NoError(t, err)
		for i := range n {
			require.NoError(t, w.Write(Call{Seq: int64(i), Arguments: arguments}))
		}
		require.NoError(t, w.Close())
		raw := b.Bytes()
		f, err := parquet.OpenFile(bytes.NewReader(raw), int64(len(raw)))
		require.NoError(t, err)
		for _, g := range f.RowGroups() {
			rows = append(rows, g.NumRows())
		}
		return rows
	}
	require.Equal(t, []int64{GroupRows, GroupRows, 10}, groups(2*GroupRows+10, ""))
	require.Equal(t, []int64{512, 88}, groups(600, strings.Repeat("x", 64<<10)))
}

func TestAFormatThatIsCutOffIsNoParquet(t *testing.T) {
	t.Parallel()
	raw := written(t, "parquet", File{Path: "/a"}, File{Path: "/b"})
	_, err := parquet.OpenFile(bytes.NewReader(raw[:len(raw)-4]), int64(len(raw)-4))
	require.Error(t, err)
	_, err = New[File]("xlsx", io.Discard)
	require.ErrorContains(t, err, "xlsx")
}

func TestLinesHaveAllColumnsInOrder(t *testing.T) {
	t.Parallel()
	yes := true
	raw := written(t, "jsonl", Call{Conversation: "c", Seq: 7, Success: &yes, Arguments: "{\"a\":\"<\n\"}"}, Call{Time: time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)})
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	require.Len(t, lines, 2)
	require.Equal(t, `{"conversation_id":"c","project":"","turn":0,"step":0,"seq":7,"time":null,"tool_call_id":"","tool":"","arguments":"{\"a\":\"<\n\"}",`+
		`"success":true,"duration_ms":null,"result_seq":null,"result_chars":null,"error":""}`, lines[0])
	var row map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &row))
	require.Equal(t, "2026-01-02T03:04:05.000006Z", row["time"])
	require.Len(t, row, len(Columns[Call]()))
}

func TestCSVKeepsTextsAndRunsNoFormula(t *testing.T) {
	t.Parallel()
	titles := []string{"plain", "a\nb", `say "x", y`, "=HYPERLINK(1)", "+1", "-1", "@a", "\tx", "\nx", "'quoted", ""}
	var rows []Conversation
	for _, title := range titles {
		rows = append(rows, Conversation{ID: "c", Title: title, Tags: []string{"a", "b"}, Chars: -3})
	}
	got, err := csv.NewReader(bytes.NewReader(written(t, "csv", rows...))).ReadAll()
	require.NoError(t, err)
	require.Equal(t, Columns[Conversation](), got[0])
	for i, title := range titles {
		cell := got[i+1][2]
		require.Equal(t, title, strings.TrimPrefix(cell, "'"[:min(1, len(cell)-len(title))]))
		require.Equal(t, strings.ContainsAny(title[:min(1, len(title))], "=+-@\t\n'"), cell != title, title)
		require.Equal(t, `["a","b"]`, got[i+1][3])
		require.Equal(t, "-3", got[i+1][16], "a number is no text")
		require.Empty(t, got[i+1][9], "no time")
	}
}

// A million rows take less than ten seconds, and memory does not grow with them.
func BenchmarkParquetOfAMillionCalls(b *testing.B) {
	yes, took, n := true, 12.5, int64(800)
	for b.Loop() {
		w, err := New[Call]("parquet", io.Discard)
		require.NoError(b, err)
		var most uint64
		for i := range 1_000_000 {
			row := Call{
				Conversation: fmt.Sprint("claude_code:", i/200), Project: "/home/me/work", Turn: int64(i / 20), Step: int64(i / 2), Seq: int64(i),
				Time: time.UnixMicro(int64(i) * 1e6), ID: fmt.Sprint("toolu_", i*7919), Tool: "Bash",
				Arguments: fmt.Sprintf(`{"command":"cd /home/me/work && go test ./pkg/a%d -run Test%d","description":"Run the tests of the package"}`, i%97, i),
				Success:   &yes, DurationMS: &took, ResultSeq: &n, ResultChars: &n,
			}
			if err := w.Write(row); err != nil {
				b.Fatal(err)
			}
			if i%50_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapInuse)
			}
		}
		require.NoError(b, w.Close())
		b.ReportMetric(float64(most)/(1<<20), "MB-heap")
	}
}
