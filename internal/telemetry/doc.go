// Package telemetry tells operators what a program does: logs that name their trace,
// traces by OpenTelemetry, and metrics in Prometheus' format at /metrics.
//
// It is the one place that knows the SDK of OpenTelemetry, its exporters and the
// Prometheus client. The packages that are observed know functions that are called
// (metrics) and the API of OpenTelemetry (traces).
//
// # Traces
//
// They are off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. One trace leads from the
// producer to the reader:
//
//	producer ─┬▶ POST /v1/events ──▶ publish AGENT_EVENTS ─┬▶ process graph
//	          │                                            └▶ process files
//	          └▶ GET /v1/conversations/{id}/context ─┬▶ await graph, await files
//	                                                 └▶ search_memory
//
// A producer that publishes over NATS is the parent of the process spans itself. What
// was said in a conversation is in no span, unless
// OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for it.
package telemetry
