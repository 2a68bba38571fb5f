// Package service assembles the services that read what others write: the summarizer and the API.
// [RunSummarizer] and [RunContextAPI] are programs of their own; package instance runs the same
// services with everything else in one process.
//
// Every service has one life: its constructor makes it, Start begins it, and Stop
// ends it. Stop is synchronous, idempotent, and legal before Start.
package service
