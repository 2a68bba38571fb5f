// Package tabular writes rows of one type as Parquet, JSON lines or CSV, in bounded memory.
//
// A row is a struct. Its parquet tags name the columns and say which can be null: a column
// with the option optional is null if the field is nil or, for a time, zero. JSON and CSV have the
// same columns with the same names, in the same order.
package tabular

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
)

// Formats are the names of the formats.
var Formats = []string{"parquet", "jsonl", "csv"}

// GroupRows is the largest number of rows in a row group of a Parquet file, and of rows kept in memory.
const GroupRows = 20_000

// groupBytes limits the text of a row group: the row that reaches it ends the group.
const groupBytes = 32 << 20

// Writer writes rows. JSON lines and CSV are written one line at a time. Close ends the file but does not close the underlying writer. After an error, including one of
// Close, the output is not a complete file.
type Writer[T any] interface {
	Write(row T) error
	Close() error
}

// New returns a writer of a format.
func New[T any](format string, to io.Writer) (Writer[T], error) {
	columns := columnsOf(reflect.TypeFor[T]())
	switch format {
	case "parquet":
		return &parquetWriter[T]{
			w:       parquet.NewGenericWriter[T](to, parquet.Compression(&parquet.Snappy), parquet.CreatedBy("mneme", "", "")),
			columns: columns,
		}, nil
	case "jsonl":
		return &lines[T]{to, columns}, nil
	case "csv":
		w := &csvWriter[T]{to: to, columns: columns}
		return w, w.line(Columns[T]())
	}
	return nil, fmt.Errorf("no format %q: use one of %s", format, strings.Join(Formats, ", "))
}

// Columns lists the names of the columns.
func Columns[T any]() []string {
	var names []string
	for _, c := range columnsOf(reflect.TypeFor[T]()) {
		names = append(names, c.name)
	}
	return names
}

type column struct {
	name  string
	index int
}

func columnsOf(t reflect.Type) (list []column) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("parquet"), ",")
		list = append(list, column{name, i})
	}
	return list
}

type parquetWriter[T any] struct {
	w           *parquet.GenericWriter[T]
	columns     []column
	rows, bytes int
}

func (p *parquetWriter[T]) Write(row T) error {
	if _, err := p.w.Write([]T{row}); err != nil {
		return err
	}
	p.rows++
	v := reflect.ValueOf(&row).Elem()
	for _, c := range p.columns {
		if f := v.Field(c.index); f.Kind() == reflect.String {
			p.bytes += f.Len()
		}
	}
	if p.rows < GroupRows && p.bytes < groupBytes {
		return nil
	}
	p.rows, p.bytes = 0, 0
	return p.w.Flush()
}

func (p *parquetWriter[T]) Close() error { return p.w.Close() }

// value returns a field's value, nil for null.
func value(f reflect.Value) any {
	if f.Kind() == reflect.Pointer {
		if f.IsNil() {
			return nil
		}
		f = f.Elem()
	}
	v := f.Interface()
	if at, ok := v.(time.Time); ok {
		if at.IsZero() {
			return nil
		}
		return at.Format(time.RFC3339Nano)
	}
	return v
}

type lines[T any] struct {
	to      io.Writer
	columns []column
}

func (l *lines[T]) Write(row T) error {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	v := reflect.ValueOf(&row).Elem()
	line := []byte{'{'}
	for i, c := range l.columns {
		b.Reset()
		if err := encoder.Encode(value(v.Field(c.index))); err != nil {
			return err
		}
		if i > 0 {
			line = append(line, ',')
		}
		line = strconv.AppendQuote(line, c.name)
		line = append(append(line, ':'), strings.TrimSuffix(b.String(), "\n")...)
	}
	_, err := l.to.Write(append(line, "}\n"...))
	return err
}

func (l *lines[T]) Close() error { return nil }

type csvWriter[T any] struct {
	to      io.Writer
	columns []column
	out     bytes.Buffer
}

func (c *csvWriter[T]) line(cells []string) error {
	c.out.Reset()
	w := csv.NewWriter(&c.out)
	_ = w.Write(cells) // a buffer never fails
	w.Flush()
	_, err := c.to.Write(c.out.Bytes())
	return err
}

func (c *csvWriter[T]) Write(row T) error {
	v := reflect.ValueOf(&row).Elem()
	cells := make([]string, len(c.columns))
	for i, column := range c.columns {
		switch x := value(v.Field(column.index)).(type) {
		case nil:
		case string:
			cells[i] = Inert(x)
		case []string:
			raw, err := json.Marshal(x)
			if err != nil {
				return err
			}
			cells[i] = string(raw)
		default:
			cells[i] = fmt.Sprint(x)
		}
	}
	return c.line(cells)
}

func (c *csvWriter[T]) Close() error { return nil }

// Inert puts a ' before a text that a spreadsheet would take for a formula. What agents record can come
// from anywhere.
func Inert(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n'", rune(text[0])) {
		return "'" + text
	}
	return text
}
