// Package project is the read model "projects": what the conversations of a project say about
// it. A project's context is made of that, by package window/projects.
//
// Each conversation has a [Digest]: what its user asked, how it ended, which files it touched,
// which commands it ran and what it taught. Every event that matters adds one [Change], so a
// digest can be read as of any sequence; every few changes the whole digest is stored, so that
// a read applies few of them. A [Member] lists a conversation under the name of its project,
// under the root of its repository, or a [Chapter] under the project whose story it tells.
//
//	event ──reducer──▶ Change ──Digest.Apply──▶ Digest ──Sessions──▶ the context of the project
//	                   Member ──────────Find──────────────▲
//
// [Find] says which project a name means: its aliases and the folders below its root belong to
// it. [Sessions] reads the digests of at most [MaxSessions] conversations, however many the
// project has.
//
// Reducers are pure. Package projection says what it does with their errors.
package project
