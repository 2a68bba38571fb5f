package settings

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenTelemetryVariablesTurnTracesOn(t *testing.T) {
	const to = "http://127.0.0.1:4318"
	for name, c := range map[string]struct {
		env               map[string]string
		on, grpc, content bool
	}{
		"nothing":                {},
		"an endpoint":            {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to}, on: true},
		"an endpoint for traces": {env: map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": to}, on: true},
		"disabled":               {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_SDK_DISABLED": "TRUE"}},
		"no exporter":            {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_TRACES_EXPORTER": "none"}},
		"gRPC":                   {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": to, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, on: true, grpc: true},
		"another for traces":     {env: map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}},
		"content":                {env: map[string]string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true"}, content: true},
		"content in spans":       {env: map[string]string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}, content: true},
		"content not in spans":   {env: map[string]string{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"}},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.env {
				t.Setenv(variable, value)
			}
			s, err := ReadTelemetry()
			require.NoError(t, err)
			require.Equal(t, c.on, s.On())
			require.Equal(t, c.grpc, s.GRPC())
			require.Equal(t, c.content, s.Content())
		})
	}
}

func TestInvalidOpenTelemetryVariableIsNamed(t *testing.T) {
	for variable, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "unix:///x",
		"OTEL_TRACES_EXPORTER": "zipkin", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "udp",
	} {
		t.Run(variable, func(t *testing.T) {
			t.Setenv(variable, value)
			_, err := ReadTelemetry()
			require.ErrorContains(t, err, variable+`="`+value+`"`)
		})
	}
}

func TestThePasswordOfACollectorIsNotShown(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "https://me:hush@collector:4318")
	s, err := ReadTelemetry()
	require.NoError(t, err)
	require.Equal(t, "https://me:xxxxx@collector:4318", s.To())
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "me:hush@collector:4318")
	_, err = ReadTelemetry()
	require.ErrorContains(t, err, `OTEL_EXPORTER_OTLP_ENDPOINT="xxxxx@collector:4318"`)
}
