// Package program is what the main functions of mneme's programs share: arguments, settings and
// exit codes, the HTTP listener that refuses foreign hosts, telemetry, and the connection to the log.
package program
