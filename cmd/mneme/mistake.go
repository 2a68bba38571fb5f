package main

import (
	"errors"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// mistaken returns the command in which there is a mistake, as far as it was parsed.
func mistaken(err error) string {
	var bad *kong.ParseError
	if errors.As(err, &bad) {
		if node := bad.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "mneme"
}

// What kong says of mistakes, as far as it speaks of its own types and tokens.
var (
	enumOf     = regexp.MustCompile(`must be one of (".*") but got `)
	wholeOf    = regexp.MustCompile(`a valid \d+ bit (u?)int `)
	missingOf  = regexp.MustCompile(`^expected "(<.+)"$`)
	endOf      = regexp.MustCompile(`expected \w+ value but got "EOL" \(<EOL>\)`)
	flagFor    = regexp.MustCompile(`expected \w+ value but got ("-.*") \((?:long|short) flag\); perhaps try (.+)\?`)
	shortFlags = regexp.MustCompile(`^(unknown flag -[^-]),? ?.*`)
)

// mistake says in plain words what is wrong with a command line.
func mistake(err error) string {
	text := missingOf.ReplaceAllString(err.Error(), "missing: $1")
	text = enumOf.ReplaceAllStringFunc(text, func(list string) string {
		return strings.ReplaceAll(strings.Replace(list, `"",`, "", 1), `","`, `", "`)
	})
	text = wholeOf.ReplaceAllStringFunc(text, func(number string) string {
		if strings.Contains(number, "uint") {
			return "a whole number from 0 on "
		}
		return "a whole number "
	})
	text = endOf.ReplaceAllString(text, "needs a value")
	text = flagFor.ReplaceAllString(text, "needs a value, and $1 looks like a flag; to give it as the value: $2")
	var bad *kong.ParseError
	if short := shortFlags.FindStringSubmatch(text); short != nil && errors.As(err, &bad) {
		text = short[1] // kong takes any other letter for a misspelt one
		if node := bad.Context.Selected(); node != nil && len(node.Positional) > 0 {
			text += "; an argument that begins with a dash comes last, after --"
		}
	}
	return text
}
