// Package service holds the lives of mneme's services. The four programs and
// `mneme up` start the same services from here; nothing is wired twice.
//
// Every service has one life: made by its constructor, begun by Start, ended by
// Stop, which is synchronous, idempotent and legal before Start.
package service
