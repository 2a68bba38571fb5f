package httpapi

import (
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"mneme.dev/mneme/internal/view"
)

// description explains what applies to every route.
const description = `Event-sourced memory for AI agents: publish what an agent does as CloudEvents, read back what it should see now.

**Events and positions.** Everything is a CloudEvent in a log. Publishing returns an event's *sequence*: its position in that log. Everything you read is derived from the log a few milliseconds later. To read your own write, pass the sequence as ` + "`at_least`" + `: the answer waits for it. To read the past, pass a sequence as ` + "`as_of`" + `.

**Ids.** A conversation's id is any text; percent-encode it in a path (` + "`a/b`" + ` is ` + "`a%2Fb`" + `). The ids ` + "`.`" + ` and ` + "`..`" + ` are valid, but most clients treat them as folders, even as ` + "`%2E`" + `. Ids are unique within their tenant, the query parameter ` + "`tenant`" + `.

**Tokens.** A server that others can reach asks for a token: ` + "`Authorization: Bearer mneme_…`" + `. It names the tenant, a role (read, write, operate or admin; each includes the ones before it), and perhaps one project. ` + "`x-mneme-access`" + ` says what each operation needs. Without a valid token the answer is 401, without the rights 403. Once a token is revoked or expires, requests in progress with it are cut off.

**Publishing again is harmless.** Tenant, conversation, source and id identify an event. Publishing the same event again, at any time, changes nothing.

**Lists** come in pages: ask for the next one with ` + "`cursor`" + ` set to the ` + "`next_cursor`" + ` of the previous page. No ` + "`next_cursor`" + ` means that this was the last page; a page that is not full does not.

**Caching.** Answers about conversations and projects have an ` + "`ETag`" + `, made from positions. Send it back as ` + "`If-None-Match`" + `: if nothing has changed the answer is 304, at almost no cost.

**Errors** are problem documents (RFC 9457, ` + "`application/problem+json`" + `): ` + "`detail`" + ` says what to do, ` + "`errors`" + ` names the wrong parameters or members. Requests answered with 503 and 504 can be repeated.

**Compression.** Answers are compressed with gzip for clients that accept it; a request's body may be compressed too, with ` + "`Content-Encoding: gzip`" + `.`

// tags group the operations, in this order.
var tags = []*huma.Tag{
	{Name: "events", Description: "Publish CloudEvents: one by one, in batches, or as a whole export."},
	{Name: "conversations", Description: "What was said and done."},
	{Name: "summaries", Description: "Shorter versions of what was said and done, on several levels."},
	{Name: "projects", Description: "Projects: which conversations belong together."},
	{Name: "insights", Description: "What many conversations say together."},
	{Name: "context", Description: "What an agent should see now, within a budget of characters."},
	{Name: "operations", Description: "Check that every event can be read, and that the read models match the log."},
}

// statuses describes the answers that an operation need not declare itself.
var statuses = map[int]string{
	http.StatusNotModified:           "The client has this answer already: its If-None-Match names the ETag",
	http.StatusUnauthorized:          "The server asks for a token, and the request has none that is valid",
	http.StatusForbidden:             "The token does not allow this: it is of another tenant, of another project, or its role is less than the operation needs",
	http.StatusBadRequest:            "The body is incomplete or damaged; none of it was used, unless the operation says otherwise",
	http.StatusRequestTimeout:        "The body did not arrive in time",
	http.StatusRequestEntityTooLarge: "The body is over the limit",
	http.StatusUnsupportedMediaType:  "The body has an unsupported type or compression",
	http.StatusUnprocessableEntity:   "A parameter or a member of the body is wrong: errors names it",
	clientGone:                       "The client went away before the answer; only logs and metrics can show it",
	http.StatusInternalServerError:   "A bug in mneme; its log has the details",
	http.StatusServiceUnavailable:    "The log or a read model does not answer, or there are too many requests at once: try again",
}

// Document returns the description of the whole API as JSON, which servers have at /openapi.json.
func Document() ([]byte, error) {
	a := &api{Config: Config{Cache: new(view.Cache)}, limits: newLimits()}
	return a.register(http.NewServeMux()).MarshalJSON()
}

// headersTooLarge is the server's answer to large headers, before any operation sees the request.
var headersTooLarge = &huma.Response{
	Description: "The request line and the headers exceed the limit of about 1.3 MB",
	Content:     map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}},
}

// clientGone is the status of a request whose client left before the answer.
const clientGone = 499

// declareCommon adds to the OpenAPI document the answers that all operations share.
func declareCommon(doc *huma.OpenAPI) {
	doc.Components.SecuritySchemes = map[string]*huma.SecurityScheme{tokenScheme: {
		Type: "http", Scheme: "bearer", Description: "A token that `mneme tokens create` made, or a JWT of the configured identity provider. A server on loopback, or in a trusted network, may ask for none.",
	}}
	problem := &huma.MediaType{Schema: doc.Components.Schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "ErrorModel")}
	contradicts := &huma.MediaType{Schema: doc.Components.Schemas.Schema(reflect.TypeFor[conflict](), true, "Conflict")}
	for op := range operations(doc) {
		add := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, clientGone, http.StatusInternalServerError, http.StatusServiceUnavailable}
		if op.RequestBody != nil {
			add = append(add, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType)
		}
		if op.Method == http.MethodGet && hasETag(op.Path) {
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
		if declared := op.Responses[strconv.Itoa(http.StatusConflict)]; declared != nil {
			declared.Content = map[string]*huma.MediaType{"application/problem+json": contradicts}
		}
	}
}

// operations yields the operations of a document.
func operations(doc *huma.OpenAPI) iter.Seq[*huma.Operation] {
	return func(yield func(*huma.Operation) bool) {
		for _, item := range doc.Paths {
			for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete} {
				if op != nil && !yield(op) {
					return
				}
			}
		}
	}
}

// hasETag reports whether answers of a path have an ETag: those made from read models, but not those read from the log.
func hasETag(path string) bool {
	for _, end := range []string{"/contexts", "/analyses", "/memory"} {
		if strings.HasSuffix(path, end) {
			return false
		}
	}
	return slices.ContainsFunc([]string{"/v1/conversations", "/v1/search", "/v1/projects", "/v1/code", "/v1/insights"}, func(of string) bool {
		return path == of || strings.HasPrefix(path, of+"/")
	})
}

// declareETag adds the headers that [api.unchanged] reads and writes.
func declareETag(op *huma.Operation) {
	text := &huma.Schema{Type: huma.TypeString}
	op.Parameters = append(op.Parameters, &huma.Param{
		Name: "If-None-Match", In: "header", Schema: text, Description: "ETags of answers that the client already has",
	})
	if ok := op.Responses["200"]; ok != nil {
		ok.Headers = map[string]*huma.Param{
			"ETag":          {Schema: text, Description: "weak; changes whenever the answer may have changed"},
			"Cache-Control": {Schema: text, Description: "private, no-cache: keep the answer, and revalidate it with If-None-Match"},
		}
	}
}
