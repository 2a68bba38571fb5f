package recall

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"mneme.dev/mneme/internal/testdata"
)

// knob is one constant and the values to compare.
type knob struct {
	name   string
	of     func(w *weights) *float64
	values []float64
}

var knobs = []knob{
	{"k1", func(w *weights) *float64 { return &w.k1 }, []float64{0.9, 1.2, 1.5}},
	{"b", func(w *weights) *float64 { return &w.b }, []float64{0.3, 0.4, 0.5}},
	{"length", func(w *weights) *float64 { return &w.length }, []float64{0.1, 0.2, 0.3}},
	{"lexical", func(w *weights) *float64 { return &w.lexical }, []float64{0.25, 0.3, 0.35, 0.4, 0.45}},
	{"expect", func(w *weights) *float64 { return &w.expect }, []float64{0, 0.2, 0.35, 0.5, 0.7}},
	{"agree, least", func(w *weights) *float64 { return &w.agree.least }, []float64{0.3, 0.4, 0.5}},
	{"agree, full", func(w *weights) *float64 { return &w.agree.full }, []float64{0.8, 0.85, 0.9}},
	{"nearness 1", func(w *weights) *float64 { return &w.nearness[0] }, []float64{0.5, 0.6, 0.7}},
	{"nearness 2", func(w *weights) *float64 { return &w.nearness[1] }, []float64{0.3, 0.4, 0.5}},
	{"session", func(w *weights) *float64 { return &w.session }, []float64{0.2, 0.3, 0.4}},
	{"speaker", func(w *weights) *float64 { return &w.speaker }, []float64{0.05, 0.1, 0.15}},
	{"date", func(w *weights) *float64 { return &w.date }, []float64{0.25, 0.35, 0.45}},
	{"role", func(w *weights) *float64 { return &w.role }, []float64{0.1, 0.15, 0.2}},
}

// tuneSets are the recorded sets, each also in other words. LongMemEval's two questions with
// evidence say nothing about constants.
var tuneSets = []string{"locomo", "beam_100k", "bfcl_memory"}

// asking is a question, ready to be asked again and again.
type asking struct {
	c        *conversation
	query    Query
	evidence []string
}

// BenchmarkConstants prints three tables: how standard does on each set; what each other value of each constant
// changes; and what the constants would be, and achieve, if one set were missing when they are chosen. It takes minutes
// and only prints, so it is not a test; make tune runs it once.
func BenchmarkConstants(b *testing.B) {
	s := &study{seen: map[weights][][]float64{}}
	for _, name := range tuneSets {
		all := conversations(b, name, builtIn)
		plain, other := askings(b, name, all, false), askings(b, name, all, true)
		s.names = append(s.names, name, name+" (other words)")
		s.sets = append(s.sets, plain, other)
	}
	b.Logf("recall@10 in percent; [ ] is where the mean difference is in 95 of 100 samples of the questions")
	for i, name := range s.names {
		b.Logf("%-26s %4d questions  %5.1f", name, len(s.sets[i]), s.of(standard)[i])
	}
	b.Logf("%-26s %4s            %5.1f", "mean", "", mean(s.of(standard)))
	for _, k := range knobs {
		for _, v := range k.values {
			w := standard
			if *k.of(&w) = v; w != standard {
				b.Logf("%-12s %4.2f, not %4.2f   %s", k.name, v, *k.of(&standard), s.against(w, standard, s.all()))
			}
		}
	}
	for held := range tuneSets {
		mine := []int{2 * held, 2*held + 1}
		others := slices.DeleteFunc(s.all(), func(i int) bool { return slices.Contains(mine, i) })
		w := s.climb(others)
		b.Logf("chosen without %-12s %s", tuneSets[held]+":", differences(w))
		b.Logf("    on it, not standard:  %s", s.against(w, standard, mine))
	}
}

// study remembers how each question did with each set of weights.
type study struct {
	names []string
	sets  [][]asking
	seen  map[weights][][]float64 // by set and question: the share of the evidence that is among the first ten messages
}

func (s *study) all() (list []int) {
	for i := range s.sets {
		list = append(list, i)
	}
	return list
}

// results asks all questions.
func (s *study) results(w weights) [][]float64 {
	if done, ok := s.seen[w]; ok {
		return done
	}
	out := make([][]float64, len(s.sets))
	var asked sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, set := range s.sets {
		out[i] = make([]float64, len(set))
		for part := range slices.Chunk(numbers(len(set)), 100) {
			free <- struct{}{}
			asked.Go(func() {
				for _, j := range part {
					out[i][j] = set[j].ask(w)
				}
				<-free
			})
		}
	}
	asked.Wait()
	s.seen[w] = out
	return out
}

// of returns the recall of each set in percent.
func (s *study) of(w weights) (list []float64) {
	for _, r := range s.results(w) {
		list = append(list, 100*mean(r))
	}
	return list
}

// climb changes one constant after the other to the value that is best on some sets, until none
// gains.
func (s *study) climb(sets []int) weights {
	value := func(w weights) (sum float64) {
		for _, i := range sets {
			sum += mean(s.results(w)[i])
		}
		return sum
	}
	best := standard
	for range 2 {
		before := best
		for _, k := range knobs {
			for _, v := range k.values {
				w := best
				if *k.of(&w) = v; value(w) > value(best) {
					best = w
				}
			}
		}
		if best == before {
			break
		}
	}
	return best
}

// samples is how often the bootstrap draws the questions.
const samples = 2_000

// against says how much better the weights w are than others on some sets: the mean over the sets, with its interval,
// and the worst set.
func (s *study) against(w, than weights, sets []int) string {
	a, b := s.results(w), s.results(than)
	worst, where := 100.0, 0
	var sum float64
	for _, i := range sets {
		d := 100 * (mean(a[i]) - mean(b[i]))
		if sum += d; d < worst {
			worst, where = d, i
		}
	}
	random := rand.New(rand.NewPCG(1, 1)) // the same samples for all
	var drawn []float64
	for range samples {
		var total float64
		for _, i := range sets {
			var d float64
			for range a[i] {
				j := random.IntN(len(a[i]))
				d += a[i][j] - b[i][j]
			}
			total += 100 * d / float64(len(a[i]))
		}
		drawn = append(drawn, total/float64(len(sets)))
	}
	slices.Sort(drawn)
	return fmt.Sprintf("mean %+5.2f [%+5.2f %+5.2f], worst %+5.2f on %s", sum/float64(len(sets)), drawn[samples/40], drawn[samples-samples/40], worst, s.names[where])
}

// ask returns the share of the evidence that is among the first ten messages.
func (a *asking) ask(w weights) float64 {
	q := a.query
	q.weights = &w
	n := 0
	for _, h := range a.c.index.Search(q) {
		if slices.Contains(a.evidence, a.c.ids[h.Seq]) {
			n++
		}
	}
	return float64(n) / float64(len(a.evidence))
}

// askings returns the questions of a set that have evidence. With otherWords, each loses the words that it shares with
// its evidence; a question without words left is dropped.
func askings(t testing.TB, name string, all map[string]*conversation, otherWords bool) (list []asking) {
	for q := range testdata.Lines[question](t, filepath.Join(testdata.Dir(t), "qa", name+".jsonl.gz")) {
		c := all[q.ConversationID]
		evidence := slices.Compact(slices.Sorted(slices.Values(q.Evidence)))
		if len(evidence) == 0 || c == nil {
			continue
		}
		text := q.Question
		if otherWords {
			if text = c.without(text, evidence); len(queryTerms(text)) == 0 {
				continue
			}
		}
		query := Query{Text: text, Vector: builtIn(c.index.Unnamed(text, 0)), Limit: 10}
		list = append(list, asking{c, query, evidence})
	}
	require.NotEmpty(t, list, name)
	return list
}

// without removes the words from a text that are in some messages.
func (c *conversation) without(text string, ids []string) string {
	x := &c.index
	inThese := func(term string) bool {
		id, ok := x.termOf[term]
		return ok && slices.ContainsFunc(x.postings[id], func(p posting) bool {
			return slices.Contains(ids, c.ids[x.messages[x.passages[p.passage].message].seq])
		})
	}
	words := slices.DeleteFunc(strings.Fields(text), func(word string) bool {
		return slices.ContainsFunc(AppendTerms(nil, word), inThese)
	})
	return strings.Join(words, " ")
}

// differences names the constants that differ from standard.
func differences(w weights) string {
	var list []string
	for _, k := range knobs {
		if v := *k.of(&w); v != *k.of(&standard) {
			list = append(list, fmt.Sprintf("%s %.2f", k.name, v))
		}
	}
	if list == nil {
		return "as standard"
	}
	return strings.Join(list, ", ")
}

func mean(list []float64) (sum float64) {
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}
