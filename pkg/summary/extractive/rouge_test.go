package extractive

import (
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
)

// rouge holds the F1 of ROUGE-1, -2 and -L between a text and a reference, over lower-cased
// words without stemming (C.-Y. Lin, ROUGE: A Package for Automatic Evaluation of
// Summaries, 2004). L treats each whole text as one sequence.
type rouge struct{ one, two, l float64 }

func rougeOf(text, reference string) rouge {
	a, b := wordsOf(text), wordsOf(reference)
	return rouge{overlap(a, b, 1), overlap(a, b, 2), f1(subsequence(a, b), len(a), len(b))}
}

func wordsOf(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

func f1(common, a, b int) float64 {
	if common == 0 {
		return 0
	}
	p, r := float64(common)/float64(a), float64(common)/float64(b)
	return 2 * p * r / (p + r)
}

func overlap(a, b []string, n int) float64 {
	grams := map[string]int{}
	for i := 0; i+n <= len(b); i++ {
		grams[strings.Join(b[i:i+n], " ")]++
	}
	common := 0
	for i := 0; i+n <= len(a); i++ {
		if gram := strings.Join(a[i:i+n], " "); grams[gram] > 0 {
			grams[gram]--
			common++
		}
	}
	return f1(common, max(0, len(a)-n+1), max(0, len(b)-n+1))
}

// subsequence returns the length of the longest common subsequence.
func subsequence(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// The example of Lin's paper, section 3.1, and its reference.
func TestRouge(t *testing.T) {
	reference := "police killed the gunman"
	assert.InDelta(t, 0.75, rougeOf("police kill the gunman", reference).l, 1e-12)
	assert.InDelta(t, 0.5, rougeOf("the gunman kill police", reference).l, 1e-12)
	assert.InDelta(t, 0.75, rougeOf("the gunman kill police", reference).one, 1e-12)
	assert.InDelta(t, 1.0/3, rougeOf("the gunman kill police", reference).two, 1e-12)
	assert.Zero(t, rougeOf("", reference))
}
