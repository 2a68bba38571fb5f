package main

import "strings"

// projections are those that each store has a read model of.
var projections = []string{"graph", "files", "summaries"}

// partitions of the log: so many consumers of each projection, for two stores, are about
// as many as a stream should have.
const partitions = 5

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
	{"summarizer-neo4j-1", "summarizer", true},
	{"summarizer-neo4j-2", "summarizer", true},
	{apiNeo4j, "context-api", true},
	{ingestorSQLite, "ingestor", false},
	{fileTrackerSQLite, "file-tracker", false},
	{summarizerSQLite, "summarizer", false},
	{apiSQLite, "context-api", false},
}

// contextChars is the budget of a context in characters, of which summaries are due when a
// tenth is not covered: conversations of some 80 events have summaries on two levels.
const contextChars = 50_000

// writer is who writes the summaries of a summarizer: those on Neo4j do, the one on SQLite only follows the log.
func (p program) writer() string {
	if p.neo4j {
		return "extractive"
	}
	return "off"
}

const (
	apiNeo4j          = "context-api-neo4j"
	apiSQLite         = "context-api-sqlite"
	ingestorSQLite    = "ingestor-sqlite"
	fileTrackerSQLite = "file-tracker-sqlite"
	summarizerSQLite  = "summarizer-sqlite"
)

// sqlitePrograms are those that have files of the SQLite read models open.
func sqlitePrograms() []string {
	return []string{ingestorSQLite, fileTrackerSQLite, summarizerSQLite, apiSQLite}
}

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
