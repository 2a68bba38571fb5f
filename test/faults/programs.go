package main

import "strings"

// partitions of the log: four projections with so many consumers each are as many as a
// stream should have.
const partitions = 8

// program is one that runs in a process of its own.
type program struct {
	name   string // unique
	binary string
	neo4j  bool // its store; else SQLite
}

// programs are all of ours: two of a kind share the partitions on Neo4j, one alone has
// all of them on SQLite.
var programs = []program{
	{"ingestor-neo4j-1", "ingestor", true},
	{"ingestor-neo4j-2", "ingestor", true},
	{"file-tracker-neo4j-1", "file-tracker", true},
	{"file-tracker-neo4j-2", "file-tracker", true},
	{apiNeo4j, "context-api", true},
	{ingestorSQLite, "ingestor", false},
	{fileTrackerSQLite, "file-tracker", false},
	{apiSQLite, "context-api", false},
}

const (
	apiNeo4j          = "context-api-neo4j"
	apiSQLite         = "context-api-sqlite"
	ingestorSQLite    = "ingestor-sqlite"
	fileTrackerSQLite = "file-tracker-sqlite"
)

// sqlitePrograms are those that have files of the SQLite read models open.
func sqlitePrograms() []string { return []string{ingestorSQLite, fileTrackerSQLite, apiSQLite} }

// everybody, as who a link is from, is all who have one to the server.
const everybody = "everybody"

// publishers are who a link of the campaign's own publishers is from.
const publishers = "publishers"

// link names what connects somebody to a server.
func link(server, from string) string { return server + " from " + from }

// linkServer is the server that a link leads to.
func linkServer(name string) string {
	server, _, _ := strings.Cut(name, " from ")
	return server
}

// linkFrom is who a link is from.
func linkFrom(name string) string {
	_, from, _ := strings.Cut(name, " from ")
	return from
}
