package neo4jstore

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/neo4j/neo4j-go-driver/v5/neo4j"

	"mneme.dev/mneme/pkg/projection"
)

// tooLarge holds the codes of a transaction that needs more memory or time than the server
// allows. The first is the code of db.memory.transaction.max, in 5.26 and in 2026.09; a
// commit can fail with it too. The memory limit for all transactions has the same code: see
// disturbed.
var tooLarge = []string{
	memoryPool,
	"Neo.TransientError.General.TransactionOutOfMemoryError",
	"Neo.TransientError.General.OutOfMemoryError",
	"Neo.ClientError.Transaction.TransactionTimedOut",
	"Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
}

// tookTooLong reports whether the server ended a transaction at its time limit.
func tookTooLong(err error) bool {
	return strings.HasPrefix(codeOf(err), "Neo.ClientError.Transaction.TransactionTimedOut")
}

// refusals holds the codes of data that the server refuses.
var refusals = []string{
	constraintViolated,
	"Neo.ClientError.Statement.ArgumentError",
	"Neo.ClientError.Statement.TypeError",
}

const (
	constraintViolated = "Neo.ClientError.Schema.ConstraintValidationFailed"
	memoryPool         = "Neo.TransientError.General.MemoryPoolOutOfMemoryError"
)

func codeOf(err error) string {
	if e, ok := errors.AsType[*neo4j.Neo4jError](err); ok {
		return e.Code
	}
	return ""
}

// disturbed reports whether a retry may succeed: other transactions held locks, used up the
// memory for all transactions, or deleted nodes that this one had found.
func disturbed(err error) bool {
	code := codeOf(err)
	return strings.HasPrefix(code, "Neo.TransientError.Transaction.") || code == "Neo.ClientError.Statement.EntityNotFound" ||
		code == memoryPool && strings.Contains(err.Error(), "dbms.memory.transaction.total.max")
}

// classify maps the server's errors to the errors of the package comment.
func classify(err error) error {
	if err == nil {
		return nil
	}
	code := codeOf(err)
	var class error
	switch {
	case slices.Contains(tooLarge, code):
		class = projection.ErrTooLarge
	case slices.Contains(refusals, code), strings.Contains(err.Error(), "Property value is too large to index"): // its code is a generic one
		class = projection.ErrRejected
	case strings.HasPrefix(code, "Neo.ClientError.Security."):
		class = ErrUnauthorized
	case code == "Neo.ClientError.Database.DatabaseNotFound":
		class = ErrDatabase
	case code == "" && (strings.Contains(err.Error(), "x509: ") || strings.Contains(err.Error(), "tls: ")): // the driver hides the errors' types
		class = ErrTLS
	case errors.Is(err, projection.ErrUnavailable):
		return err
	case unavailable(err):
		class = projection.ErrUnavailable
	default:
		return err
	}
	return fmt.Errorf("%w: %w", class, err)
}

// classifyOne is classify for a single statement. There is no batch that could be smaller, so a server that does not
// finish it in time is busy.
func classifyOne(err error) error {
	if tookTooLong(err) {
		return fmt.Errorf("%w in time: %w", projection.ErrUnavailable, err)
	}
	return classify(err)
}

// unavailable reports whether the server or the network failed.
func unavailable(err error) bool {
	var none *lost
	var doubt *neo4j.ConnectivityError
	return errors.As(err, &none) || errors.As(err, &doubt) || neo4j.IsRetryable(err)
}
