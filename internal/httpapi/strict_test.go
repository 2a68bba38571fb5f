package httpapi_test

import (
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/events"
)

func TestAmbiguousJSONIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	b.create(`{"id":"c"}`)
	for _, path := range []string{"POST /v1/conversations", "PATCH /v1/conversations/c", "POST /v1/conversations/c/branches", "POST /v1/events/lookup"} {
		method, path, _ := strings.Cut(path, " ")
		for body, says := range map[string]string{
			`{"id":"a","id":"b"}`:           "duplicate",
			`{"title":"a","title":"a"}`:     "duplicate",
			`{"tags":[{"x":1,"x":2}]}`:      "duplicate",
			"{\"id\":\"a\xff\"}":            "UTF-8",
			`{"id":"\ud83d"}`:               "surrogate",
			`{"id":"\udc00\ud83d"}`:         "surrogate",
			`{"title":"t"} {"title":"two"}`: "more than one JSON value",
		} {
			p := b.refused(http.StatusBadRequest, method, path, map[string]string{"Content-Type": "application/json"}, body)
			require.Contains(t, fmt.Sprint(p.Detail, p.Errors), says, "%s %s %s", method, path, body)
		}
	}
	b.create(`{"id":"pair \ud83d\ude00"}`)
	require.Equal(t, "pair 😀", b.show(url.PathEscape("pair 😀"), b.head()).ID)
}

// Each of millions of tiny values would take hundreds of bytes, and an error of its own in the answer.
func TestABodyOfMillionsOfValuesIsRefusedBeforeItIsRead(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	lookup := func(event string, times int) string {
		return `{"events":[` + strings.Repeat(event+",", times-1) + event + `]}`
	}
	header := map[string]string{"Content-Type": "application/json"}
	p := b.refused(http.StatusBadRequest, http.MethodPost, "/v1/events/lookup", header, lookup("{}", 1_000_000))
	require.Contains(t, p.Detail, "more than 100000 objects, lists and commas")
	require.Len(t, p.Errors, 1)
	b.do(http.StatusOK, http.MethodPost, "/v1/events/lookup", header, []byte(lookup(`{"conversation":",,,,,,,,,,,,","source":"\",[{,,,","id":"\\"}`, 10_000)), nil)
}

func TestMediaTypesIgnoreCase(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	for i, contentType := range []string{"APPLICATION/JSON", "Application/Json; Charset=UTF-8"} {
		b.do(http.StatusCreated, http.MethodPost, "/v1/conversations", map[string]string{"Content-Type": contentType}, fmt.Appendf(nil, `{"id":"c%d"}`, i), nil)
	}
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "Application/CloudEvents+JSON"}, structured("c", "1", message("m", "user", "x")), nil)
	b.do(http.StatusCreated, http.MethodPost, "/v1/events", map[string]string{"Content-Type": "APPLICATION/CLOUDEVENTS-BATCH+JSON"}, []byte("["+string(structured("c", "2", message("m2", "user", "x")))+"]"), nil)
	b.do(http.StatusOK, http.MethodPost, "/v1/import", map[string]string{"Content-Type": "APPLICATION/X-NDJSON"}, structured("c", "3", message("m3", "user", "x")), nil)
}

func TestQueryTimesMayBeAnyRFC3339Form(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	for _, at := range []string{"2026-01-31t15:04:05z", "2016-12-31T23:59:60Z", "2026-01-31t15:04:05.5%2b01:00", "2026-01-31T15:04:05Z"} {
		b.get("/v1/conversations?tag=a%20b&updated_after="+at, nil)
	}
	b.refused(http.StatusUnprocessableEntity, http.MethodGet, "/v1/conversations?updated_after=2026-01-31T15:04:60Z", nil, "")

	e := strings.Replace(string(structured("c", "1", message("m", "user", "x"))), `"specversion"`, `"time":"2016-12-31t23:59:60z","specversion"`, 1)
	seq := b.publish([]byte(e)).Seq
	var stored struct {
		Time string `json:"time"`
	}
	b.get(fmt.Sprintf("/v1/events/%d", seq), &stored)
	require.Equal(t, "2016-12-31T23:59:59.999999999Z", stored.Time)
}

func TestHalfASurrogatePairInAnIDIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	for _, body := range []string{
		strings.Replace(string(structured("c", "1", message("ID", "user", "x"))), "ID", `\ud83d`, 1),
		strings.Replace(string(structured("SUBJECT", "1", message("m", "user", "x"))), "SUBJECT", `\ud83d`, 1),
	} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/events", map[string]string{"Content-Type": events.ContentTypeEvent}, body)
		require.Contains(t, p.Detail, "half of a surrogate pair")
	}
}

func TestSequenceZeroIsRefused(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	seq := b.publish(structured("c", "1", message("m", "user", "x"))).Seq
	for _, path := range []string{"context", "messages", "turns", "files", "tool-calls"} {
		p := b.refused(http.StatusUnprocessableEntity, http.MethodGet, fmt.Sprintf("/v1/conversations/c/%s?at_least=%d&as_of=0", path, seq), nil, "")
		require.Contains(t, p.Detail, "query.as_of: sequences begin at 1", path)
		b.get(fmt.Sprintf("/v1/conversations/c/%s?at_least=%d&as_of=%d", path, seq, seq), nil)
		b.get(fmt.Sprintf("/v1/conversations/c/%s?at_least=%d", path, seq), nil)
	}
}

func TestTheNameOfAnExportIsShortAndPlain(t *testing.T) {
	t.Parallel()
	b, _ := up(t)
	for id, want := range map[string]string{
		"c1":                           "c1.ndjson",
		"a/b:c":                        "a_b_c.ndjson",
		"x\u202egnp.exe":               "xgnp.exe.ndjson",
		"a\r\nSet-Cookie: b":           "aSet-Cookie_ b.ndjson",
		"\u2066\u200f\u0085\u2028":     "conversation.ndjson",
		"Gespräch über Größe":          "Gespräch über Größe.ndjson",
		strings.Repeat("x", 400):       strings.Repeat("x", 120) + ".ndjson",
		"y" + strings.Repeat("😀", 100): "y" + strings.Repeat("😀", 29) + ".ndjson",
	} {
		b.publish(structured(id, "1", message("m", "user", "x")))
		response, _ := b.send(http.MethodGet, fmt.Sprintf("/v1/conversations/%s/export?at_least=%d", url.PathEscape(id), b.head()), nil, nil)
		require.Equal(t, http.StatusOK, response.StatusCode, id)
		header := response.Header.Get("Content-Disposition")
		_, parameters, err := mime.ParseMediaType(header)
		require.NoError(t, err, header)
		require.Equal(t, want, parameters["filename"])
		if strings.Trim(want, "\x00\x7f") != "" && utf8.RuneCountInString(want) != len(want) {
			require.Contains(t, header, "filename*=utf-8''")
		}
	}
}
