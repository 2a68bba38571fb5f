package settings

import (
	"cmp"
	"errors"
	"net/url"
	"strings"
)

// Telemetry holds the OpenTelemetry variables that mneme reads itself. The exporters and
// the SDK read the others: headers, timeouts, certificates, compression, sampler, service
// name and attributes, queue sizes.
type Telemetry struct {
	Disabled       string `envconfig:"OTEL_SDK_DISABLED" default:"false" desc:"true switches traces off"`
	Exporter       string `envconfig:"OTEL_TRACES_EXPORTER" default:"otlp" oneof:"otlp,none" desc:"otlp or none"`
	Endpoint       string `envconfig:"OTEL_EXPORTER_OTLP_ENDPOINT" desc:"where traces go; unset means nowhere"`
	TracesEndpoint string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" desc:"where traces go, if not to OTEL_EXPORTER_OTLP_ENDPOINT"`
	Protocol       string `envconfig:"OTEL_EXPORTER_OTLP_PROTOCOL" default:"http/protobuf" oneof:"http/protobuf,grpc" desc:"http/protobuf or grpc"`
	TracesProtocol string `envconfig:"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" oneof:",http/protobuf,grpc" desc:"the protocol for traces, if not OTEL_EXPORTER_OTLP_PROTOCOL"`
	Capture        string `envconfig:"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" default:"false" desc:"true puts the text of messages into spans"`
}

// ForTelemetry returns the default settings of traces.
func ForTelemetry() *Telemetry { return &Telemetry{} }

// ReadTelemetry reads and checks the variables of OpenTelemetry.
func ReadTelemetry() (Telemetry, error) {
	t := ForTelemetry()
	err := Read(t)
	return *t, err
}

// Check implements [Spec].
func (t *Telemetry) Check() error {
	return errors.Join(otlpEndpoint("OTEL_EXPORTER_OTLP_ENDPOINT", t.Endpoint), otlpEndpoint("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", t.TracesEndpoint))
}

// On reports whether traces are exported.
func (t Telemetry) On() bool {
	return !strings.EqualFold(t.Disabled, "true") && t.Exporter == "otlp" && t.To() != ""
}

// To returns the endpoint that traces go to, for messages: without a password.
func (t Telemetry) To() string { return Redacted(cmp.Or(t.TracesEndpoint, t.Endpoint)) }

// GRPC reports whether traces go out over gRPC.
func (t Telemetry) GRPC() bool {
	if t.TracesProtocol != "" {
		return t.TracesProtocol == "grpc"
	}
	return t.Protocol == "grpc"
}

// Content reports whether spans hold the text of messages. The values are those of the
// GenAI instrumentations; "event_only" counts as false because mneme emits no such events.
func (t Telemetry) Content() bool {
	switch strings.ToLower(t.Capture) {
	case "true", "span_only", "span_and_event":
		return true
	}
	return false
}

func otlpEndpoint(name, text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return refuse(name, Redacted(text), "not a URL such as http://127.0.0.1:4318")
	}
	return nil
}
