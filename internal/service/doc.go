// Package service assembles and runs mneme's services. The four programs and
// `mneme up` start the same services from here, so nothing is wired twice.
//
// Every service has one life: its constructor makes it, Start begins it, and Stop
// ends it. Stop is synchronous, idempotent, and legal before Start.
package service
