// Package telemetry shows operators what a program does: logs that name their trace,
// OpenTelemetry traces, and Prometheus metrics at /metrics.
//
// Only this package knows the OpenTelemetry SDK, its exporters and the Prometheus client.
// The packages that it observes offer callbacks (metrics) and use the OpenTelemetry API
// (traces).
//
// # Traces
//
// They are off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. One trace leads from the producer
// to the reader:
//
//	producer ─┬▶ POST /v1/events ──▶ publish AGENT_EVENTS ─┬▶ process graph
//	          │                                            └▶ process files
//	          └▶ GET /v1/conversations/{id}/context ─┬▶ await graph, await files
//	                                                 └▶ search_memory
//
// An event published over NATS makes the producer's span the parent of the process spans.
// Spans hold no conversation text unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT
// asks for it.
package telemetry
