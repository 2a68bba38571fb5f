package main

import "strings"

// projections are those whose rows a campaign recomputes; verify compares the others with the log.
var projections = []string{"graph", "files", "summaries"}

// partitions of the log: with a consumer for each projection and two stores, about as many as a
// stream should have.
const partitions = 5

// program is one that runs as a separate process.
type program struct {
	name   string // unique
	binary string
	neo4j  bool // its store; else SQLite
}

// programs lists all of our programs: two of a kind share the partitions on Neo4j, a single one has
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

// contextChars is the budget of a context in characters. Summaries are due when a tenth of it is
// not covered, so conversations of about 80 events have summaries on two levels.
const contextChars = 50_000

// writer returns the flag for the writer of a summarizer's summaries: the ones on Neo4j write, the
// one on SQLite only follows the log.
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

// sqlitePrograms are those that open the files of the SQLite read models.
func sqlitePrograms() []string {
	return []string{ingestorSQLite, fileTrackerSQLite, summarizerSQLite, apiSQLite}
}

// everybody, as the origin of a link, means all that have a link to the server.
const everybody = "everybody"

// publishers is the origin of the link of the campaign's own publishers.
const publishers = "publishers"

// link names the link from a program to a server.
func link(server, from string) string { return server + " from " + from }

// linkServer returns the server that a link leads to.
func linkServer(name string) string {
	server, _, _ := strings.Cut(name, " from ")
	return server
}

// linkFrom returns the origin of a link.
func linkFrom(name string) string {
	_, from, _ := strings.Cut(name, " from ")
	return from
}
