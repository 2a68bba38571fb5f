// Package embedded runs a NATS server inside the process, for mneme up and for tests. It is
// apart from natsdeploy so that a program that only connects to a server does not link one.
//
// Its errors, the size of the stream and what a power cut takes are described by natsdeploy.
package embedded
