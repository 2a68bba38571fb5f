// Package service assembles mneme's services: [Up] runs all of them in one process,
// [RunSummarizer] and [RunContextAPI] are programs of their own. Each service is made from the same
// parts in both cases.
//
// Every service has one life: its constructor makes it, Start begins it, and Stop
// ends it. Stop is synchronous, idempotent, and legal before Start.
package service
