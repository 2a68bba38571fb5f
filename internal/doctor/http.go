package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strings"
	"time"

	"mneme.dev/mneme/internal/httpapi"
	"mneme.dev/mneme/internal/mcp"
	"mneme.dev/mneme/internal/rebuild"
	"mneme.dev/mneme/internal/settings"
	"mneme.dev/mneme/internal/worker"
	"mneme.dev/mneme/pkg/graph/readmodel"
	"mneme.dev/mneme/pkg/projection"
)

// statusPatience is how long the status may take: the server first waits for stores that hang, and then says which.
const statusPatience = 2 * patience

// http checks the API, its clock, and the status that it reports.
func (e *examination) http(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, statusPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(e.Client.URL, "/")+"/v1/status", nil)
	if err != nil {
		e.add("http", Failed, err.Error(), "correct --url or MNEME_URL")
		return
	}
	asked := e.now()
	client, err := e.client()
	if err != nil {
		e.add("http", Failed, err.Error(), "correct MNEME_TOKEN_FILE or MNEME_CA_FILE")
		return
	}
	connected := false
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }}
	response, err := client.Do(request.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err != nil && ctx.Err() != nil && connected {
		e.add("http", Failed, settings.Redacted(e.Client.URL)+" takes connections, but has not answered in time", "its log says whether NATS or Neo4j does not answer it; if both do, see what keeps it and its machine busy")
		return
	}
	if err != nil {
		e.add("http", Failed, fmt.Sprintf("no answer from %s: %v", settings.Redacted(e.Client.URL), err), "start mneme with mneme up, or name the server with --url")
		return
	}
	defer func() { _ = response.Body.Close() }()
	e.clock(response, asked)
	e.served(response.TLS)
	var status struct {
		httpapi.Status
		Detail string `json:"detail"` // of a problem document
	}
	switch err := json.NewDecoder(response.Body).Decode(&status); {
	case response.StatusCode == http.StatusUnauthorized:
		e.add("http", Failed, settings.Redacted(e.Client.URL)+" asks for a token, and has none that is valid", "set MNEME_TOKEN or MNEME_TOKEN_FILE; mneme tokens create makes a token")
		return
	case response.StatusCode != http.StatusOK:
		e.add("http", Failed, strings.TrimSuffix(fmt.Sprintf("%s answers %s: %s", settings.Redacted(e.Client.URL), response.Status, status.Detail), ": "), "check the server's log; at startup it waits for NATS and for the read models")
		return
	case err != nil:
		e.add("http", Failed, fmt.Sprintf("the server at %s is not mneme: %v", settings.Redacted(e.Client.URL), err), "name the server with --url")
		return
	}
	e.answers = true
	if theirs := status.Version; theirs.Version != e.Mine.Version || theirs.Commit != e.Mine.Commit {
		e.add("http", Warning, fmt.Sprintf("%s is of another version: %s; this program is %s", settings.Redacted(e.Client.URL), theirs, e.Mine), "run the same version on both sides")
	} else {
		e.add("http", OK, fmt.Sprintf("%s, %s", settings.Redacted(e.Client.URL), theirs), "")
	}
	e.sameLog(status.Stream.Created)
	e.reported(status.Status)
	e.quotas(ctx, client)
	e.mcp(ctx)
}

// quotas asks whether the server could read its quotas file when that changed. Who may not know is not told.
func (e *examination) quotas(ctx context.Context, client *http.Client) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(e.Client.URL, "/")+"/v1/quotas?limit=1", nil)
	if err != nil {
		return
	}
	response, err := client.Do(request)
	if err != nil {
		return // the next check says so
	}
	defer func() { _ = response.Body.Close() }()
	var list httpapi.TenantQuotas
	if response.StatusCode == http.StatusOK && json.NewDecoder(response.Body).Decode(&list) == nil && list.Problem != "" {
		e.add("quotas", Failed, "the server can't read its quotas file since it was changed: "+list.Problem, quotasRemedy)
	}
}

// reported judges the status of a server.
func (e *examination) reported(status httpapi.Status) {
	if status.Stream.Error != "" {
		e.add("log writes", Failed, status.Stream.Error, LogRemedy(&status))
	} else if isApart(&status) {
		e.add("log writes", OK, "not checked, because only the NATS server knows: GET /healthz on its monitoring port says whether the log takes writes", "")
	}
	if status.ProcessesError != "" {
		e.add("leases", Failed, "the running processes, and what they drive, are unknown: "+status.ProcessesError, LeasesRemedy)
	}
	if status.ProviderError != "" {
		e.add("identity provider", Warning, status.ProviderError, ProviderRemedy)
	}
	for rest := status.Projections; len(rest) > 0; {
		n := 1
		for n < len(rest) && sameState(rest[0], rest[n]) {
			n++
		}
		e.projection(rest[:n], status.Rebuilds)
		rest = rest[n:]
	}
	if what, remedy := JudgeTranscripts(status.Capture, e.now()); what != "" {
		e.add("transcripts", Warning, what, remedy)
	} else if status.Capture != nil {
		e.add("transcripts", OK, fmt.Sprintf("events read from transcripts since the server started: %d", status.Capture.Published), "")
	}
	if what, remedy := JudgeOTLP(status.OTLP, e.now()); what != "" {
		e.add("otlp", Warning, what, remedy)
	} else if status.OTLP != nil {
		e.add("otlp", OK, told(status.OTLP), "")
	}
	for _, r := range status.Rebuilds {
		if r.State == string(rebuild.Unreadable) {
			e.add("rebuild "+r.Projection, Warning, r.Error, "run mneme rebuild "+r.Projection+", and find out who else writes to this NATS server")
		}
	}
}

// mcp checks that the server shows agents the tools.
func (e *examination) mcp(ctx context.Context) {
	client, err := e.client()
	if err != nil {
		e.add("mcp", Failed, err.Error(), "correct MNEME_TOKEN_FILE or MNEME_CA_FILE")
		return
	}
	at := settings.Redacted(e.Client.URL) + mcp.Path
	names, err := mcp.Remote{URL: e.Client.URL, Tenant: e.Client.Tenant, HTTP: client}.Tools(ctx)
	if err != nil {
		e.add("mcp", Failed, fmt.Sprintf("%s does not list the tools for agents: %v", at, err), "check the server's log")
		return
	}
	var missing []string
	for _, tool := range mcp.Definitions(true) {
		if !slices.Contains(names, tool.Name) {
			missing = append(missing, tool.Name)
		}
	}
	detail := fmt.Sprintf("%s lists %d tools for agents", at, len(names))
	switch {
	case slices.Equal(missing, []string{mcp.ToolRemember}):
		e.add("mcp", OK, detail+"; "+mcp.ToolRemember+" needs a token with the role write", "")
	case len(missing) > 0:
		e.add("mcp", Failed, detail+" and not "+strings.Join(missing, ", "), "run the same version on both sides")
	default:
		e.add("mcp", OK, detail, "")
	}
}

// clock compares the server's clock, which it reports in whole seconds, with this one.
func (e *examination) clock(response *http.Response, asked time.Time) {
	theirs, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return
	}
	off := theirs.Sub(asked)
	if off.Abs() > 5*time.Second+e.now().Sub(asked) {
		e.add("clock", Warning, fmt.Sprintf("the server's clock differs from this one by %s", off.Round(time.Second)), "synchronize both clocks with NTP; until then displayed times and filters by time are wrong")
		return
	}
	e.add("clock", OK, "the server's clock agrees with this one", "")
}

// isApart reports whether the log is on a NATS server of its own, so that mneme does not know all that is wrong with it.
func isApart(status *httpapi.Status) bool {
	return slices.ContainsFunc(status.Processes, func(p httpapi.ProcessStatus) bool { return p.Program == "context-api" })
}

// LogRemedy says what to do about a log that accepts no writes.
func LogRemedy(status *httpapi.Status) string {
	if isApart(status) {
		return "ask each NATS server on its monitoring port, GET /healthz, and read its log: after a full disk it needs room and a restart"
	}
	return "make room on the disk, or raise the limit that the message names; then restart mneme, which accepts no events until then"
}

// ProviderRemedy says what to do if the identity provider's keys can't be fetched.
const ProviderRemedy = "start the identity provider, or correct MNEME_OIDC_ISSUER; until it answers, tokens with keys that are not known here get 503, and nobody new can sign in"

// LeasesRemedy says what to do if the bucket of leases cannot be read.
const LeasesRemedy = "until it answers, processes cannot share the partitions and nothing new may become readable: start the NATS servers that are down; mneme doctor with --nats-url says which copies are missing"

// DiskRemedy says what to do about a store whose disk is full or failing.
const DiskRemedy = "make room on the disk, repair it, or let this user write to it; the projection then continues by itself"

// manyBehind is the lag, in events, above which doctor warns.
const manyBehind = 10_000

// sameState reports whether one finding can say what there is to say about two partitions.
func sameState(a, b httpapi.ProjectionStatus) bool {
	la, wa, _ := Judge(a, nil)
	lb, wb, _ := Judge(b, nil)
	return a.Name == b.Name && a.State == b.State && la == lb && wa == wb
}

// projection adds a finding about successive partitions in the same state.
func (e *examination) projection(list []httpapi.ProjectionStatus, rebuilds []httpapi.Rebuild) {
	p := list[0]
	detail := fmt.Sprintf("partition %d %s, checkpoint %d, lag %d", p.Partition, p.State, p.Checkpoint, p.Lag)
	if n := len(list) - 1; n > 0 {
		lag := uint64(0)
		for _, one := range list {
			lag += one.Lag
		}
		detail = fmt.Sprintf("partitions %d to %d %s, lag %d", p.Partition, list[n].Partition, p.State, lag)
	}
	level, what, remedy := Judge(p, rebuilds)
	switch {
	case p.State == "absent":
		detail = what
	case what != "":
		detail += ": " + what
	}
	e.add("projection "+p.Name, level, detail, remedy)
}

// Rebuilding reports whether a partition stands still until a rebuild that runs has replaced its read model.
func Rebuilding(p httpapi.ProjectionStatus, rebuilds []httpapi.Rebuild) bool {
	return (p.State == "halted" || p.State == "damaged") && slices.ContainsFunc(rebuilds, func(r httpapi.Rebuild) bool {
		return r.Projection == p.Name && r.State == string(rebuild.Building)
	})
}

// Judge returns what is wrong with a partition, if anything, and what to do about it. rebuilds are those of its server.
func Judge(p httpapi.ProjectionStatus, rebuilds []httpapi.Rebuild) (level Level, what, remedy string) {
	level, what, remedy = judgeState(p, rebuilds)
	if p.Failed == 0 || p.State == "absent" {
		return level, what, remedy
	}
	skipped := fmt.Sprintf("events that were skipped: %d", p.Failed)
	why := "mneme failed list says why; mneme failed retry tries them again; mneme erase conversation ID removes those of a deleted conversation"
	switch level {
	case OK:
		if what == "" { // else it is being rebuilt, which tries them again
			return Warning, skipped, why
		}
	case Warning: // what holds it up now will pass, and they remain
		return level, what + "; " + skipped, remedy + "; for the skipped events: " + why
	}
	return level, what, remedy
}

// judgeState is [Judge] without the events that were skipped.
func judgeState(p httpapi.ProjectionStatus, rebuilds []httpapi.Rebuild) (level Level, what, remedy string) {
	m := readmodel.Find(p.Name)
	program := m.Program
	switch {
	case Rebuilding(p, rebuilds):
		return OK, "it is being rebuilt from the log; mneme status shows the progress", ""
	case p.State == "absent" && m.Absent != "" && m.Needs == "":
		return OK, "missing: " + m.Absent, ""
	case p.State == "absent" && m.Absent != "":
		name, _, _ := strings.Cut(m.Needs, "=")
		return Warning, "its read model does not exist: " + m.Absent, "start " + program + " with the same " + name + " settings"
	case p.State == "absent":
		store := "data directory"
		if p.Store == "neo4j" {
			store = "Neo4j"
		}
		return Failed, "its read model does not exist", "start " + program + " on the same " + store + ", or mneme up"
	case p.State == "unavailable":
		return Failed, p.Error, worker.Neo4jRemedy(projection.ErrUnavailable)
	case p.State == "damaged", p.State == "halted" && strings.Contains(p.Error, (&projection.DamagedError{Projection: p.Name}).Summary()): // a halt has only the text
		return Failed, p.Error, "mneme rebuild " + p.Name
	case p.State == "halted" && strings.Contains(p.Error, projection.ErrRebuild.Error()):
		return Failed, p.Error, "mneme up does that itself within a minute, or its log says why not; with separate programs, run the command. What was applied remains readable"
	case p.State == "halted":
		return Failed, p.Error, "do what the message says; what it has applied remains readable"
	case p.Elsewhere():
		return Failed, p.Error, "start " + program + " and context-api on the same data directory, MNEME_DATA"
	case strings.Contains(p.Error, projection.ErrDisk.Error()): // a status holds only the text of the error
		return Failed, p.Error, DiskRemedy
	case m.Model != "" && strings.Contains(p.Error, "check the "): // waiting does not mend it
		return Warning, p.Error, fmt.Sprintf("correct %[1]sURL, %[1]sMODEL or %[1]sKEY of %[2]s or mneme up; what waits is done then", m.Model, program)
	case p.Error != "":
		return Warning, p.Error, "it retries by itself; if the error persists, check the log of " + program
	case p.State == "idle":
		return Warning, "no process is known to drive it", "start " + program + ", or mneme up"
	case p.Lag > manyBehind:
		return Warning, "it lags far behind", "mneme status shows whether it catches up; if it does not, check the log of " + program
	}
	return OK, "", ""
}
