package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/tabular"
	"mneme.dev/mneme/internal/writefile"
)

// ExportCmd writes a table of all conversations.
type ExportCmd struct {
	Table   string  `arg:"" enum:"conversations,turns,calls,files" help:"The table: conversations, turns, calls or files."`
	Format  string  `help:"parquet, jsonl (one JSON object a line) or csv. Default: by the ending of the file's name, else parquet." enum:",parquet,jsonl,csv" default:"" placeholder:"FORMAT"`
	Since   instant `help:"Only of conversations whose newest event is from this time or later: RFC 3339, a date, which means its local midnight, or how long ago, such as 7d." placeholder:"TIME"`
	Project string  `help:"Only rows of conversations of this project; . means the project of this folder." placeholder:"NAME" complete:"directory"`
	Output  string  `short:"o" aliases:"out" help:"The file to write, - for standard output. A regular file is written completely or not at all; a device, a FIFO or /dev/fd/N is written to directly. Links are followed." default:"-" placeholder:"FILE" type:"path" complete:"file"`
}

func (*ExportCmd) Help() string {
	return `Writes a table for your own tools, such as DuckDB, pandas or a spreadsheet. docs/export.md lists the columns. To move conversations to another mneme, with all of their events, use mneme conversations export.

Examples:

    mneme export calls -o calls.parquet
    mneme export conversations -o conversations.csv
    mneme export files --project . --since 2026-01-31 --format jsonl | jq -r .path
    duckdb -c "SELECT tool, count(*), avg(duration_ms) FROM 'calls.parquet' GROUP BY tool"`
}

func (c *ExportCmd) Run(ctx context.Context, g *Globals, t *terminal, api *client) error {
	if g.JSON {
		return usageError("this command writes files: use --format jsonl")
	}
	toTerminal := c.Output == "-" || c.Output == "/dev/stdout"
	format, err := c.format()
	if err != nil {
		return err
	}
	if toTerminal && format == "parquet" && t.isPerson() {
		return usageError("Parquet is not text: name a file with -o, or use --format csv")
	}
	project, err := projectNamed(c.Project)
	if err != nil {
		return err
	}
	e := exporting{api: api, table: c.Table, format: format, filters: parameters{"order": "created", "project": project, "updated_after": c.Since.query}}
	if toTerminal {
		err = e.write(ctx, escapeControls{t.out, t.isPerson()})
	} else {
		from, to := io.Pipe()
		go func() { _ = to.CloseWithError(e.write(ctx, to)) }()
		defer func() { _ = from.CloseWithError(io.ErrClosedPipe) }()
		err = writefile.Write(c.Output, from)
	}
	if err == nil && e.conversations == 0 {
		t.say("No conversation matches, so the table has no rows.")
		api.remarkUnknown(ctx, t, project)
	}
	return err
}

// format returns the format that the flag, or the file's name, says.
func (c *ExportCmd) format() (string, error) {
	switch ending := strings.TrimPrefix(filepath.Ext(c.Output), "."); {
	case c.Format != "":
		return c.Format, nil
	case ending == "csv" || ending == "jsonl":
		return ending, nil
	case ending == "" || ending == "parquet":
		return "parquet", nil
	default:
		return "", usageError("-o %s: a name that ends in .parquet, .jsonl or .csv says the format; else give --format", c.Output)
	}
}

// exporting writes a table page by page.
type exporting struct {
	api           *client
	table, format string
	filters       parameters
	conversations int // how many the filters match
}

func (e *exporting) write(ctx context.Context, to io.Writer) error {
	switch e.table {
	case "conversations":
		return exportTable(ctx, e, to, func(c *httpapi.Conversation, write func(tabular.Conversation) error) error {
			return write(tabular.ConversationRow(c))
		})
	case "turns":
		return exportTable(ctx, e, to, func(c *httpapi.Conversation, write func(tabular.Turn) error) error {
			return eachRow(ctx, e.api, conversation(c.ID, "/turns"), "turns", oldestFirst, func(t *httpapi.Turn) error {
				row, own := tabular.TurnRow(c, t)
				if !own {
					return nil
				}
				return write(row)
			})
		})
	case "calls":
		return exportTable(ctx, e, to, func(c *httpapi.Conversation, write func(tabular.Call) error) error {
			return eachRow(ctx, e.api, conversation(c.ID, "/tool-calls"), "tool_calls", oldestFirst, func(t *httpapi.ToolCall) error {
				row, own := tabular.CallRow(c, t)
				if !own {
					return nil
				}
				return write(row)
			})
		})
	default:
		return exportTable(ctx, e, to, func(c *httpapi.Conversation, write func(tabular.File) error) error {
			var answer struct{ Files []httpapi.File }
			if err := e.api.get(ctx, conversation(c.ID, "/files"), parameters{"limit": maxFiles, "all": true}, &answer); err != nil {
				return err
			}
			for i := range answer.Files {
				if err := write(tabular.FileRow(c, &answer.Files[i])); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// maxFiles is the most files that the API lists of a conversation.
const maxFiles = 10_000

var oldestFirst = parameters{"order": "oldest"}

// exportTable writes the rows that each conversation has. A conversation that is deleted during the export has
// no further messages.
func exportTable[T any](ctx context.Context, e *exporting, to io.Writer, rows func(*httpapi.Conversation, func(T) error) error) error {
	w, err := tabular.New[T](e.format, to)
	if err != nil {
		return err
	}
	err = eachRow(ctx, e.api, "/v1/conversations", "conversations", e.filters, func(c *httpapi.Conversation) error {
		e.conversations++
		err := rows(c, w.Write)
		if answered, ok := errors.AsType[*answeredError](err); ok && answered.status == http.StatusNotFound {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	return w.Close()
}

// eachRow reads a list page by page, and passes its rows on one by one.
func eachRow[T any](ctx context.Context, api *client, path, member string, query parameters, visit func(*T) error) error {
	for cursor := ""; ; {
		page, next, err := api.page(ctx, path, member, maxPage, cursor, query)
		if err != nil {
			return err
		}
		rows, err := decodeRows[T](page)
		if err != nil {
			return err
		}
		for i := range rows {
			if err := visit(&rows[i]); err != nil {
				return err
			}
		}
		if cursor = next; cursor == "" {
			return nil
		}
	}
}
