// Package worker runs projections: a [Consumer] drives one on the read model that serves, and during
// a rebuild on the next. It also says where the read models are ([Stores]), and is the whole of the
// programs ingestor and file-tracker, which is why it links neither the API nor a NATS server.
package worker
