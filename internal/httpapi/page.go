package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/pkg/graph"
)

const pagesDoc = "A page may hold fewer rows than limit, even none, although there are more, because each request examines a bounded number of rows. Only next_cursor says whether there are more."

// PageParams select a page of a list.
type PageParams struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"50" doc:"maximum number of rows"`
	Cursor string `query:"cursor" doc:"next_cursor of the previous page; requires the same order and filters"`
}

// RowsParams select a page of a conversation's rows.
type RowsParams struct {
	ConversationParam
	AsOfParam
	WaitParams
	PageParams
	Order string `query:"order" enum:"newest,oldest" default:"newest" doc:"which end of the conversation comes first"`
}

// rows opens a list: it returns its query, the scope of its cursors, and what to read it from. filters are the list's
// filters other than those of RowsParams.
func (a *api) rows(ctx context.Context, p *RowsParams, operation string, filters ...string) (q graph.ListQuery, s scope, g graph.Reader, err error) {
	s = scopeOf(operation, append([]string{p.Tenant, p.ID, p.Order, strconv.FormatUint(p.AsOf, 10)}, filters...)...)
	start, err := s.start(p.Cursor)
	if err != nil {
		return q, s, nil, err
	}
	if g, err = a.graph(ctx, p.id(), p.WaitParams, p.AsOfParam); err != nil {
		return q, s, nil, err
	}
	return graph.ListQuery{AsOf: p.AsOf, Start: start, Limit: p.Limit, OldestFirst: p.Order == "oldest"}, s, g, nil
}

// scope identifies the list that a cursor belongs to: an operation with its order and
// filters. In another list the cursor's position would mean something else.
type scope [8]byte

func scopeOf(operation string, parts ...string) (s scope) {
	digest := events.DigestOf(append([]string{operation}, parts...)...)
	copy(s[:], digest[:])
	return s
}

// next returns the cursor of the next page, "" if there is none.
func (s scope) next(position uint64) string {
	if position == 0 {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint64(s[:], position))
}

// start returns the position in a cursor, 0 if there is no cursor. It refuses a cursor
// of another list.
func (s scope) start(cursor string) (uint64, error) {
	if cursor == "" {
		return 0, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err == nil && len(raw) == 16 && scope(raw[:8]) == s {
		if position := binary.BigEndian.Uint64(raw[8:]); position > 0 {
			return position, nil
		}
	}
	return 0, huma.Error422UnprocessableEntity("the cursor does not belong to this list with this order and these filters",
		&huma.ErrorDetail{Location: "query.cursor", Message: "not a cursor of this list", Value: cursor})
}

// Optional is a parameter whose zero value differs from an absent one.
type Optional[T any] struct {
	Value T
	Given bool
}

// Schema implements huma.SchemaProvider.
func (Optional[T]) Schema(r huma.Registry) *huma.Schema {
	return huma.SchemaFromType(r, reflect.TypeFor[T]())
}

// Receiver implements huma.ParamWrapper.
func (o *Optional[T]) Receiver() reflect.Value { return reflect.ValueOf(o).Elem().Field(0) }

// OnParamSet implements huma.ParamReactor.
func (o *Optional[T]) OnParamSet(given bool, _ any) { o.Given = given }

// pointer returns the value, nil if none was given.
func (o *Optional[T]) pointer() *T {
	if !o.Given {
		return nil
	}
	return &o.Value
}

// TurnParam selects the rows of one turn.
type TurnParam struct {
	Turn Optional[int] `query:"turn" minimum:"0" doc:"only rows of this turn; turn 0 is everything before the first user message"`
}

func (p *TurnParam) filter() string {
	if p.Turn.Given {
		return strconv.Itoa(p.Turn.Value)
	}
	return ""
}

// each converts rows to the API's form. It never returns nil, which would be null in JSON.
func each[A, B any](rows []A, show func(A) B) []B {
	list := make([]B, len(rows))
	for i, r := range rows {
		list[i] = show(r)
	}
	return list
}
