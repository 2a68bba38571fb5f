// Package neo4jdeploy owns everything mneme needs from Neo4j: the supported versions, the
// settings of a server with their reasons (neo4j.conf), and the code that fetches and runs
// a real server for tests and development, without a container or an installation.
//
//	Fetch ──▶ folder of jars ──▶ Start ──▶ Server     tests, make run-neo4j
//	neo4j.conf ─────────────────────────▶             your own server
//
// Neo4j is written in Java, so it runs as a separate process.
// Its jars come from Maven Central; a Java must be installed.
//
//	line     versions        Java
//	LTS      5.26.x          17 or 21
//	Current  from 2025.11    21 or 25
//
// # What a crash loses
//
// Nothing that was committed: the server syncs its transaction log before it answers a
// commit, and replays it at the next start.
//
// # What uses the memory
//
// With the default of 384 MiB of heap and 64 MiB of page cache the process holds about
// 350 MB after its start, and at most 800 MB with the graph of 42,000 events. A larger
// server takes 1 GiB and 512 MiB (1.5 GB in all), or 2 GiB and 2 GiB (4.4 GB, 424,000
// events).
package neo4jdeploy
