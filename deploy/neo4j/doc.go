// Package neo4jdeploy owns everything mneme asks of Neo4j: which versions, the settings
// of a server and why each is so (neo4j.conf), and how a real one is fetched and run for
// tests and development, without a container and without an installation.
//
//	Fetch ──▶ folder of jars ──▶ Start ──▶ Server     tests, make run-neo4j
//	neo4j.conf ─────────────────────────▶             a server of one's own
//
// Neo4j is a server in Java, so it is a process beside the program and not inside it.
// Its jars come from Maven Central; a Java must be installed.
//
//	line     versions        Java
//	LTS      5.26.x          17 or 21
//	Current  from 2025.11    21 or 25
//
// # What a crash takes
//
// Nothing that was committed: the server syncs its transaction log before it answers a
// commit, and reads it again at the next start.
//
// # What uses the memory
//
// With the default of 384 MiB of heap and 64 MiB of page cache the process holds about
// 350 MB when it has started, and at most 800 MB with the graph of 42,000 events. A
// server for more takes 1 GiB and 512 MiB (1.5 GB in all), or 2 GiB and 2 GiB (4.4 GB,
// 424,000 events).
package neo4jdeploy
