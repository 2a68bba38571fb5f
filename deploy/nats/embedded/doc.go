// Package embedded runs a NATS server inside the process, for mneme up and for tests. It is
// apart from natsdeploy so that a program that only connects to a server does not link one.
//
// natsdeploy describes its errors, the size of the stream and what a power cut loses.
package embedded
