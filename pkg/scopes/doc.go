// Package scopes cuts the text of a source file into scopes: functions, types, sections of a document, and
// the code between them. It is pure, reads no other file, and never fails: a file it can't use has a reason.
//
//	Go                            go/parser; the cut by brackets if the file has errors
//	languages with brackets       the head before each bracket says what it opens
//	languages with indentation    a declaration reaches as far as its indentation
//	Markdown                      headings
//	configuration, SQL, …         blocks of lines between blank lines
//
// The cut by brackets and by indentation is not a parser. It knows strings and comments, so a bracket inside them
// counts for nothing, but it expects a file that is formatted as people format it.
package scopes
