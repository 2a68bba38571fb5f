package static

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"mneme.dev/mneme/internal/memo"
)

// maxWord is the longest word that is looked up, in characters.
const maxWord = 100

// pieces is the vocabulary of WordPiece (Y. Wu et al., Google's Neural Machine
// Translation System, 2016) as BERT's uncased models use it: numbers by piece.
type pieces struct {
	starts, continues map[string]int // pieces that begin a word, and pieces that continue one
	longest           int            // in bytes
	words             *memo.Memo[[]int]
}

func newPieces(vocabulary []string) *pieces {
	p := &pieces{starts: make(map[string]int, len(vocabulary)), continues: map[string]int{}}
	p.words = memo.New(1<<14, p.split)
	for i, piece := range vocabulary {
		p.longest = max(p.longest, len(piece))
		if rest, ok := strings.CutPrefix(piece, "##"); ok && rest != "" {
			p.continues[rest] = i
		} else {
			p.starts[piece] = i
		}
	}
	return p
}

// of returns the pieces of a text in order. A word that can't be split into known pieces has
// none.
func (p *pieces) of(text string) []int {
	found := make([]int, 0, len(text)/4)
	var word []byte
	flush := func() {
		if len(word) > 0 {
			found = append(found, p.words.Of(word)...)
			word = word[:0]
		}
	}
	// Replace invalid bytes first: next to them, how norm treats a character depends on the rest of the
	// text.
	for _, r := range norm.NFD.String(strings.ToValidUTF8(text, "\ufffd")) {
		switch kindOf(r) {
		case space:
			flush()
		case alone:
			flush()
			word = utf8.AppendRune(word, r)
			flush()
		case letter:
			word = utf8.AppendRune(word, unicode.ToLower(r))
		}
	}
	flush()
	return found
}

// split returns the pieces of a word, the longest possible first; none if part of it is
// unknown.
func (p *pieces) split(word string) (found []int) {
	if utf8.RuneCountInString(word) > maxWord {
		return nil
	}
	known := p.starts
	for from := 0; from < len(word); known = p.continues {
		to := min(len(word), from+p.longest)
		for ; to > from; to-- {
			if piece, ok := known[word[from:to]]; ok {
				found = append(found, piece)
				break
			}
		}
		if to == from {
			return nil
		}
		from = to
	}
	return found
}

// kind says what a character does to the word before it.
type kind byte

const (
	letter  kind = iota // belongs to it
	space               // ends it
	alone               // ends it and is itself a word
	ignored             // skipped: control characters and accents
)

var asciiKinds = func() (kinds [utf8.RuneSelf]kind) {
	for c := range kinds {
		kinds[c] = kindAmongAll(rune(c))
	}
	return kinds
}()

func kindOf(r rune) kind {
	if r < utf8.RuneSelf {
		return asciiKinds[r]
	}
	return kindAmongAll(r)
}

func kindAmongAll(r rune) kind {
	switch {
	case unicode.IsSpace(r):
		return space
	case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.C, unicode.Mn):
		return ignored
	case isPunctuation(r) || isIdeograph(r):
		return alone
	}
	return letter
}

// isPunctuation counts all ASCII marks as punctuation, including symbols such as $ and +.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != 0x7f
	}
	return unicode.IsPunct(r)
}

// isIdeograph reports whether a character is a word by itself.
func isIdeograph(r rune) bool {
	return r >= 0x4e00 && r <= 0x9fff || r >= 0x3400 && r <= 0x4dbf || r >= 0x20000 && r <= 0x2ceaf ||
		r >= 0xf900 && r <= 0xfaff || r >= 0x2f800 && r <= 0x2fa1f
}
