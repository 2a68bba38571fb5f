// Package insight counts what conversations did: turns, steps, calls and their outcomes, errors, tokens, files read
// and changed. It is the read model "insight".
//
// Each conversation has one row for each UTC day on which it did something, a [Day]. A row only ever grows, by what
// an event adds. What a reducer must remember between events is in [Memory], which is bounded: the caps below say what
// is left out, and [Left] counts it. A query adds up rows, see [Cache.Sum]; costs are computed then, from [Prices].
//
// An event without a time, or with one outside of the years 2000 to 2099, counts on [UnknownDay].
package insight
