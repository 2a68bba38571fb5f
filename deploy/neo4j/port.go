package neo4jdeploy

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Where free ports are looked for: below the ports that systems give to clients. A
// client that tries again and again while its server is down could get the server's
// own port otherwise, and the server not have it back.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// freePort is an address with a port on which nothing listens. Neo4j could choose one
// itself, but tells nobody which.
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
