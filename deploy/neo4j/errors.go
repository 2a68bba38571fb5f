package neo4jdeploy

import "errors"

var (
	// ErrNoMaven: the program mvn, which fetches the jars, is not installed.
	ErrNoMaven = errors.New("no Maven")

	// ErrNoJava: no Java of a version that this Neo4j runs on was found. The text
	// says which it needs, which were found and what to do.
	ErrNoJava = errors.New("no suitable Java")

	// ErrNotFetched: the folder holds no Neo4j. [Fetch] fills it.
	ErrNotFetched = errors.New("Neo4j is not fetched")

	// ErrNotResolved: Maven could not get any of a line's versions.
	ErrNotResolved = errors.New("Neo4j was not resolved")

	// ErrNotLoopback: the address to listen on can be reached from other machines.
	ErrNotLoopback = errors.New("not a loopback address")

	// ErrPortInUse: another program listens on the address.
	ErrPortInUse = errors.New("port in use")

	// ErrDirInUse: another server has the directory open, perhaps one left by a program
	// that died.
	ErrDirInUse = errors.New("data directory in use")

	// ErrPassword: the password is too short, or the directory has another one.
	ErrPassword = errors.New("password refused")

	// ErrNotStarted: the server ended, or did not answer in time. The text ends with
	// its last log lines.
	ErrNotStarted = errors.New("Neo4j did not start")
)
