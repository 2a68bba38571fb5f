package insight_test

import (
	"context"
	"fmt"
	"testing"

	"mneme.dev/mneme/pkg/insight"
)

// rows are stored rows in memory.
type rows struct {
	insight.Reader
	list []insight.Row
}

func (r rows) Rows(_ context.Context, _ string, q insight.RowQuery, yield func(*insight.Row) error) error {
	for _, row := range r.list {
		if q.Detail {
			row.Counts = ""
		} else {
			row.Detail = ""
		}
		if err := yield(&row); err != nil {
			return err
		}
	}
	return nil
}

// aYear returns rows like those that a million events of coding agents produce. Each row counts one conversation on one
// day.
func aYear(n int) rows {
	tools := []string{"Bash", "Read", "Edit", "Grep", "Glob", "TodoWrite", "Write", "WebFetch"}
	var list []insight.Row
	for i := range n {
		d := &insight.Day{Date: fmt.Sprintf("2026-%02d-%02d", i%3+1, i%28+1), Project: fmt.Sprint("p", i%9), Agent: "claude-code", Models: map[string]*insight.Model{}}
		d.Detail.Files, d.Detail.Commands = map[string]*insight.File{}, map[string]*insight.Calls{}
		for m := range 1 + i%2 {
			of := &insight.Model{Turns: 9, Steps: 60, Chars: 90_000, Tools: map[string]*insight.Calls{}, Tokens: insight.Tokens{Input: 900, CacheRead: 900_000, Output: 9000}}
			for t, tool := range tools[:3+i%6] {
				c := &insight.Calls{Count: 20, Succeeded: 18, Failed: 2}
				for k := range 10 {
					c.MS.Add(int64(1+t) << k * int64(10+i%7))
				}
				of.Tools[tool] = c
			}
			d.Models[fmt.Sprint("claude-", m)] = of
		}
		for k := range 15 {
			d.Detail.Files[fmt.Sprintf("pkg/a%d/file%d.go", i%40, k)] = &insight.File{Reads: 2, Writes: 1}
		}
		for k := range 8 {
			d.Detail.Commands[fmt.Sprint("make target", k)] = &insight.Calls{Count: 3, Succeeded: 3}
		}
		d.Detail.Errors = map[string]map[string]int64{"Bash": {"exit status <n>": 2, fmt.Sprint("undefined: x", i%50): 1}}
		list = append(list, d.Row(fmt.Sprint("conversation-", i/2)))
	}
	return rows{list: list}
}

func BenchmarkSum(b *testing.B) {
	stored := aYear(5000)
	for _, by := range insight.By {
		b.Run(by, func(b *testing.B) {
			c := insight.NewCache()
			for b.Loop() {
				if _, err := c.Sum(b.Context(), stored, insight.Query{By: by, Limit: 50}, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkRow(b *testing.B) {
	r := aYear(2).list[1]
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := r.Decode(); err != nil {
				b.Fatal(err)
			}
		}
	})
	d, err := r.Decode()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d.Row("c")
		}
	})
}
