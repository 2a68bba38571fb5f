package neo4jdeploy

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// The range searched for free ports is below the ports that systems give to clients.
// Otherwise a client that retries while its server is down could be given the server's
// port, and the server could not restart on it.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePort returns an address with a free port. Neo4j could choose one itself, but does
// not report it.
func freePort(ip net.IP) (string, error) {
	for range 100 {
		address := net.JoinHostPort(ip.String(), strconv.Itoa(lowestPort+rand.IntN(highestPort-lowestPort)))
		l, err := net.Listen("tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return "", err
		}
		return address, l.Close()
	}
	return "", ErrPortInUse
}
