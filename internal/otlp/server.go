package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	collogspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	colmetricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/gzip" // what exporters compress with
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"mneme.dev/mneme/events"
	"mneme.dev/mneme/internal/access"
	"mneme.dev/mneme/internal/quota"
)

// Limits of requests.
const (
	MaxBytes     = 16 << 20 // of a request, unpacked
	maxAtOnce    = 4        // requests in memory
	maxOfATenant = 2        // of these, so that no tenant keeps the others out
	waitAtOnce   = 5 * time.Second
	maxReading   = 30 * time.Second
)

// TenantHeader names the tenant, of requests whose token is for all of them, or that need none.
const TenantHeader = "mneme-tenant"

// defaultTenant is the tenant of a request that names none.
const defaultTenant = "default"

// Server answers exporters.
type Server struct {
	Receiver *Receiver
	Gate     *access.Gate  // nil: no token is required
	Quotas   *quota.Quotas // nil: none
	slots    chan struct{}
	turns    turns
}

// Handler answers OTLP over HTTP and gRPC, on the same port.
func (s *Server) Handler() http.Handler {
	s.slots = make(chan struct{}, maxAtOnce)
	remote := grpc.NewServer(grpc.MaxRecvMsgSize(MaxBytes), grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}), grpc.UnaryInterceptor(s.recovered))
	collogspb.RegisterLogsServiceServer(remote, logService{s: s})
	coltracepb.RegisterTraceServiceServer(remote, traceService{s: s})
	colmetricspb.RegisterMetricsServiceServer(remote, metricsService{})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.Handle("POST /v1/traces", s.admitted(http.HandlerFunc(s.http)))
	mux.Handle("POST /v1/logs", s.admitted(http.HandlerFunc(s.http)))
	mux.Handle("POST /v1/metrics", s.admitted(http.HandlerFunc(dropMetrics)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, http.StatusNotFound, codes.Unimplemented, "mneme takes /v1/traces and /v1/logs by POST")
	})
	calls := s.admitted(remote)
	sites := http.NewCrossOriginProtection()
	return sites.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			calls.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
}

type tenantKey struct{}

// admitted finds out who sends a request before its body is read, and bounds how many requests are in memory.
func (s *Server) admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tenant := r.Header.Get(TenantHeader)
		if s.Gate != nil {
			grant, err := s.Gate.Check(r)
			switch {
			case errors.Is(err, access.ErrTooMany):
				answer(w, r, http.StatusTooManyRequests, codes.ResourceExhausted, err.Error())
				return
			case errors.Is(err, access.ErrUnavailable):
				answer(w, r, http.StatusServiceUnavailable, codes.Unavailable, err.Error())
				return
			case errors.Is(err, access.ErrNothing):
				answer(w, r, http.StatusForbidden, codes.PermissionDenied, err.Error())
				return
			case err != nil:
				w.Header().Set("WWW-Authenticate", `Bearer realm="mneme"`)
				answer(w, r, http.StatusUnauthorized, codes.Unauthenticated, err.Error()+"; exporters send it with OTEL_EXPORTER_OTLP_HEADERS")
				return
			case !access.Exporters.Allows(grant.Rights), tenant != "" && !grant.Covers(tenant):
				answer(w, r, http.StatusForbidden, codes.PermissionDenied, "the token may not write here: it needs the role write, and the tenant")
				return
			}
			tenant = cmp.Or(tenant, grant.Tenant)
		}
		tenant = cmp.Or(tenant, defaultTenant)
		if _, err := (events.Address{Tenant: tenant, Conversation: "c", Kind: "k"}).Subject(); err != nil {
			answer(w, r, http.StatusBadRequest, codes.InvalidArgument, TenantHeader+": "+err.Error())
			return
		}
		wait, cancel := context.WithTimeout(r.Context(), waitAtOnce)
		defer cancel()
		leave, err := s.turns.enter(wait, tenant, maxOfATenant)
		if err != nil {
			tooMany(w, r)
			return
		}
		defer leave()
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-wait.Done():
			tooMany(w, r)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(maxReading)) // every writer of net/http can
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tenantKey{}, tenant)))
	})
}

func tooMany(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "1")
	answer(w, r, http.StatusServiceUnavailable, codes.Unavailable, "too many requests at once")
}

// http answers a request in protobuf or JSON.
func (s *Server) http(w http.ResponseWriter, r *http.Request) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-protobuf" && kind != "application/json" {
		answer(w, r, http.StatusUnsupportedMediaType, codes.InvalidArgument, "the Content-Type must be application/x-protobuf or application/json")
		return
	}
	body, err := read(w, r)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		answer(w, r, http.StatusRequestEntityTooLarge, codes.InvalidArgument, fmt.Sprintf("a request has at most %d MiB, unpacked: have the exporter send smaller batches, with OTEL_BSP_MAX_EXPORT_BATCH_SIZE or OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", MaxBytes>>20))
		return
	case errors.Is(err, errCoding):
		answer(w, r, http.StatusUnsupportedMediaType, codes.InvalidArgument, err.Error())
		return
	case err != nil:
		answer(w, r, http.StatusBadRequest, codes.InvalidArgument, "the body is incomplete or damaged: "+err.Error())
		return
	}
	var out proto.Message
	hexIDs := kind == "application/json"
	if r.URL.Path == "/v1/logs" {
		request := &collogspb.ExportLogsServiceRequest{}
		if err = decode(body, hexIDs, request); err == nil {
			out, err = s.logs(r.Context(), request, hexIDs, len(body))
		}
	} else {
		request := &coltracepb.ExportTraceServiceRequest{}
		if err = decode(body, hexIDs, request); err == nil {
			out, err = s.traces(r.Context(), request, hexIDs, len(body))
		}
	}
	if err != nil {
		code := http.StatusBadRequest
		switch status.Code(err) {
		case codes.Unavailable:
			w.Header().Set("Retry-After", "1")
			code = http.StatusServiceUnavailable
		case codes.ResourceExhausted:
			w.Header().Set("Retry-After", retryAfter(err))
			code = http.StatusTooManyRequests
		case codes.FailedPrecondition:
			code = http.StatusInsufficientStorage
		}
		answer(w, r, code, status.Code(err), status.Convert(err).Message())
		return
	}
	write(w, http.StatusOK, kind, out)
}

// dropMetrics accepts metrics, which hold nothing of a conversation. Gemini CLI can't be told to send none, and would show
// its user each refusal.
func dropMetrics(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, MaxBytes)) // of what is dropped, nothing can be wrong
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	write(w, http.StatusOK, kind, &colmetricspb.ExportMetricsServiceResponse{})
}

// errCoding means that the body has an unsupported compression.
var errCoding = errors.New("the Content-Encoding must be gzip, or none")

// read reads and decompresses a body.
func read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	var in io.Reader = http.MaxBytesReader(w, r.Body, MaxBytes)
	switch r.Header.Get("Content-Encoding") {
	case "", "identity":
	case "gzip":
		packed, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		in = packed
	default:
		return nil, errCoding
	}
	var body bytes.Buffer
	n, err := body.ReadFrom(io.LimitReader(in, MaxBytes+1))
	if err == nil && n > MaxBytes {
		err = &http.MaxBytesError{Limit: MaxBytes}
	}
	return body.Bytes(), err
}

// decode decodes a request. Members that it does not know are ignored.
func decode(body []byte, asJSON bool, into proto.Message) error {
	if err := checkParts(body, asJSON, into.ProtoReflect().Descriptor()); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	var err error
	if asJSON {
		err = protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(body, into)
	} else {
		err = proto.Unmarshal(body, into)
	}
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "the body is not an OTLP request: %v", err)
	}
	return nil
}

// answer reports an error in OTLP's way: with a google.rpc.Status.
func answer(w http.ResponseWriter, r *http.Request, code int, class codes.Code, text string) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if strings.HasPrefix(kind, "application/grpc") { // whose status is in headers
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Grpc-Status", fmt.Sprint(int(class)))
		w.Header().Set("Grpc-Message", strings.Map(func(r rune) rune {
			if r < ' ' || r > '~' || r == '%' {
				return '?'
			}
			return r
		}, text))
		w.WriteHeader(http.StatusOK)
		return
	}
	if kind != "application/x-protobuf" {
		kind = "application/json"
	}
	write(w, code, kind, status.New(class, text).Proto())
}

func write(w http.ResponseWriter, code int, kind string, m proto.Message) {
	var body []byte
	var err error
	if kind == "application/json" {
		body, err = protojson.Marshal(m)
	} else {
		body, err = proto.Marshal(m)
	}
	if err != nil {
		panic(err) // of messages that were made here
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(code)
	_, _ = w.Write(body)
}

func (s *Server) traces(ctx context.Context, request *coltracepb.ExportTraceServiceRequest, hexIDs bool, size int) (*coltracepb.ExportTraceServiceResponse, error) {
	result, err := s.take(ctx, traces, spansOf(request, hexIDs), size)
	if err != nil {
		return nil, err
	}
	out := &coltracepb.ExportTraceServiceResponse{}
	if result.refused > 0 {
		out.PartialSuccess = &coltracepb.ExportTracePartialSuccess{RejectedSpans: int64(result.refused), ErrorMessage: result.reason}
	}
	return out, nil
}

func (s *Server) logs(ctx context.Context, request *collogspb.ExportLogsServiceRequest, hexIDs bool, size int) (*collogspb.ExportLogsServiceResponse, error) {
	result, err := s.take(ctx, logs, recordsOf(request, hexIDs), size)
	if err != nil {
		return nil, err
	}
	out := &collogspb.ExportLogsServiceResponse{}
	if result.refused > 0 {
		out.PartialSuccess = &collogspb.ExportLogsPartialSuccess{RejectedLogRecords: int64(result.refused), ErrorMessage: result.reason}
	}
	return out, nil
}

// take records a request. It returns errors after which an exporter sends the request again, and one after which it
// does not: the tenant may store no more.
func (s *Server) take(ctx context.Context, kind signal, list []entry, size int) (taken, error) {
	tenant, _ := ctx.Value(tenantKey{}).(string)
	if err := s.Quotas.Take(tenant, len(list), size); err != nil {
		return taken{}, exhausted(err)
	}
	result, err := s.Receiver.take(ctx, tenant, kind, list)
	if full := (*quota.FullError)(nil); errors.As(err, &full) {
		return taken{}, status.Error(codes.FailedPrecondition, full.Error())
	}
	if err != nil {
		return taken{}, status.Error(codes.Unavailable, "it could not be recorded now: "+err.Error())
	}
	return result, nil
}

// exhausted is the error of a tenant that is over a quota of a second. Exporters send the request again only if it says
// when: see RetryInfo in OTLP's specification.
func exhausted(err error) error {
	after := time.Second
	if over, ok := errors.AsType[*quota.ExceededError](err); ok {
		after = over.After
	}
	s := status.New(codes.ResourceExhausted, err.Error())
	if detailed, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)}); err == nil {
		s = detailed
	}
	return s.Err()
}

// retryAfter returns when to send a request again, in the form of Retry-After.
func retryAfter(err error) string {
	after := time.Second
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			after = info.GetRetryDelay().AsDuration()
		}
	}
	return strconv.Itoa(int(max(math.Ceil(after.Seconds()), 1)))
}

// recovered answers a panic, which would end the process: the library runs calls outside of net/http's goroutines.
func (s *Server) recovered(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (out any, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			s.Receiver.Logger.Error("panic", "cause", cause, "stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "this is a mistake in mneme; its log has the details")
		}
	}()
	return next(ctx, request)
}

type traceService struct {
	coltracepb.UnimplementedTraceServiceServer
	s *Server
}

// Export implements the service of OTLP.
func (t traceService) Export(ctx context.Context, request *coltracepb.ExportTraceServiceRequest) (*coltracepb.ExportTraceServiceResponse, error) {
	return t.s.traces(ctx, request, false, proto.Size(request))
}

type logService struct {
	collogspb.UnimplementedLogsServiceServer
	s *Server
}

// Export implements the service of OTLP.
func (l logService) Export(ctx context.Context, request *collogspb.ExportLogsServiceRequest) (*collogspb.ExportLogsServiceResponse, error) {
	return l.s.logs(ctx, request, false, proto.Size(request))
}

type metricsService struct {
	colmetricspb.UnimplementedMetricsServiceServer
}

// Export implements the service of OTLP: it drops them.
func (metricsService) Export(context.Context, *colmetricspb.ExportMetricsServiceRequest) (*colmetricspb.ExportMetricsServiceResponse, error) {
	return &colmetricspb.ExportMetricsServiceResponse{}, nil
}
