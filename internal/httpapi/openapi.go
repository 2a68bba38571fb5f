package httpapi

import (
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// description is what a reader of the API's documents must know of every route.
const description = `Event-sourced memory for AI agents: publish what an agent does as CloudEvents, read back what it should see now.

**Events and positions.** Everything is a CloudEvent in a log. Publishing answers an event's *sequence*: its position in that log. What is read is derived from the log a few milliseconds later. To read your own write, pass the sequence as ` + "`at_least`" + `: the answer waits for it. To read the past, pass a sequence as ` + "`as_of`" + `.

**Ids.** A conversation's id is any text; percent-encode it in a path (` + "`a/b`" + ` is ` + "`a%2Fb`" + `). The ids ` + "`.`" + ` and ` + "`..`" + ` are possible but most clients take them for folders, even as ` + "`%2E`" + `. Ids are unique within their tenant, the query parameter ` + "`tenant`" + `.

**Publishing again is harmless.** An event is itself by tenant, conversation, source and id. The same event again changes nothing, whenever it comes.

**Lists** come in pages: ask for the next one with ` + "`cursor`" + ` set to the ` + "`next_cursor`" + ` of the page before. No ` + "`next_cursor`" + ` means that there is no more; a page that is not full means nothing.

**Caching.** What is read of conversations has an ` + "`ETag`" + `, made from positions. Send it back as ` + "`If-None-Match`" + `: if nothing has changed the answer is 304, at almost no cost.

**Errors** are problem documents (RFC 9457, ` + "`application/problem+json`" + `): ` + "`detail`" + ` says what to do, ` + "`errors`" + ` name the parameters or members that are wrong. 503 and 504 can be asked again.

**Packing.** Answers are packed with gzip for clients that ask; a request's body may be, with ` + "`Content-Encoding: gzip`" + `.`

// tags group the operations, in this order.
var tags = []*huma.Tag{
	{Name: "events", Description: "What goes in: CloudEvents, one by one, in batches, or as a whole export."},
	{Name: "conversations", Description: "What was said and done."},
	{Name: "summaries", Description: "What was said and done, shorter, on levels."},
	{Name: "context", Description: "What an agent should see now, within a budget of characters."},
	{Name: "operations", Description: "Whether everything that went in can be read, and whether what is read is right."},
}

// statuses are answers that an operation need not declare itself.
var statuses = map[int]string{
	http.StatusNotModified:           "The client has this answer already: its If-None-Match names the ETag",
	http.StatusBadRequest:            "The body broke off or is damaged; nothing of it was used, unless the operation says otherwise",
	http.StatusRequestTimeout:        "The body did not arrive in time",
	http.StatusRequestEntityTooLarge: "The body is over the limit",
	http.StatusUnsupportedMediaType:  "The body is of a type, or packed in a way, that is not taken",
	http.StatusUnprocessableEntity:   "A parameter or a member of the body is wrong: errors name it",
	clientGone:                       "The client went away before the answer; only logs and metrics can show it",
	http.StatusInternalServerError:   "A mistake in mneme; its log has the details",
	http.StatusServiceUnavailable:    "The log or a read model does not answer, or too much is asked at once: ask again",
}

// headersTooLarge is what a server answers before any operation sees the request.
var headersTooLarge = &huma.Response{
	Description: "The first line and the headers are over the limit of some 1.3 MB",
	Content:     map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}},
}

// clientGone is the status of a request whose client did not wait for the answer.
const clientGone = 499

// declareCommon adds to the OpenAPI document what all operations have in common.
func declareCommon(doc *huma.OpenAPI) {
	problem := &huma.MediaType{Schema: doc.Components.Schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "ErrorModel")}
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
			if op == nil {
				continue
			}
			add := []int{http.StatusUnprocessableEntity, clientGone, http.StatusInternalServerError, http.StatusServiceUnavailable}
			if op.RequestBody != nil {
				add = append(add, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
			}
			if op.Method == http.MethodGet && strings.HasPrefix(path, "/v1/conversations") {
				add = append(add, http.StatusNotModified)
				declareETag(op)
			}
			for _, status := range add {
				declared := &huma.Response{Description: statuses[status]}
				if status >= http.StatusBadRequest {
					declared.Content = map[string]*huma.MediaType{"application/problem+json": problem}
				}
				op.Responses[strconv.Itoa(status)] = declared
			}
			op.Responses[strconv.Itoa(http.StatusRequestHeaderFieldsTooLarge)] = headersTooLarge
		}
	}
}

// declareETag adds what [api.unchanged] reads and writes.
func declareETag(op *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "If-None-Match", In: "header", Schema: text, Description: "ETags of answers that the client has",
	})
	if ok := op.Responses["200"]; ok != nil {
		ok.Headers = map[string]*huma.Param{
			"ETag":          {Schema: text, Description: "weak; another one whenever the answer may be another"},
			"Cache-Control": {Schema: text, Description: "private, no-cache: keep it, and ask with If-None-Match"},
		}
	}
}
