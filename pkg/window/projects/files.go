package projects

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strings"

	"mneme.dev/mneme/pkg/project"
	"mneme.dev/mneme/pkg/window"
)

// How files are ranked. Measured with `mneme bench start`, see docs/benchmarks.md. The conversions below keep the compiler
// from fusing operations, which only some processors do.
const (
	// halfLife is after how many sessions a session counts half, because what is worked on changes every few sessions.
	halfLife = 8.0
	// fitWeight is the weight of the session that fits the query best, relative to the newest session.
	fitWeight = 2.0
	// wordWeight is the weight of a file whose path has all words of the query, relative to others.
	wordWeight = 3.0
	// outside is the weight of a file outside of the repository.
	outside = 0.3
	// maxListed limits how many files are listed.
	maxListed = 120
)

// recency is the weight of a session by its rank, 1 for the newest.
func recency(rank int) float64 { return math.Exp2(-float64(rank) / halfLife) }

func logOf(n int) float64 { return math.Log2(1 + float64(n)) }

// ranked is a file of the project.
type ranked struct {
	path    string
	score   float64
	session *project.Session // of the newest call
	turn    int
	seq     uint64
	in      int  // sessions
	kept    bool // a session without a folder touched it, to which every absolute path is outside
}

// collectFiles shows as many of the files most worth knowing as fit, by folder. The item of a folder names the newest call
// that touched one of them.
func collectFiles(b *builder, room int) []window.Item {
	list := b.rankFiles()
	var items []window.Item
	at := map[string]int{}
	for _, f := range list[:min(len(list), maxListed)] {
		dir, name := path.Split(f.path)
		dir = path.Clean(cmp.Or(dir, "."))
		i, ok := at[dir]
		before := 0
		if !ok {
			i = len(items)
			items = append(items, window.Item{Kind: window.KindFolder, Path: dir})
		} else {
			before = items[i].Chars
		}
		with := items[i]
		if f.seq > with.Seq {
			with.Session, with.Turn, with.Seq = f.session.ID.ID, f.turn, f.seq
		}
		with.Names = append(slices.Clone(with.Names), name)
		with = with.Measured()
		if with.Chars-before > room {
			if !ok {
				items = items[:i]
			}
			continue // a shorter one may fit
		}
		room -= with.Chars - before
		items[i], at[dir] = with, i
	}
	return items
}

// isOutside reports whether a file is outside of the repository.
func isOutside(name string) bool { return path.IsAbs(name) || strings.HasPrefix(name, "~/") }

// rankFiles scores the files of all sessions.
func (b *builder) rankFiles() []ranked {
	var list []*ranked
	at := map[string]*ranked{}
	for i := range b.sessions {
		s := &b.sessions[i]
		for k := range s.Files {
			f, weight := &s.Files[k], recency(i)+float64(fitWeight*s.Fit*s.Fit)
			name := s.Path(&b.project, f.Path)
			if b.excluded(name) {
				continue
			}
			r := at[name]
			if r == nil {
				r = &ranked{path: name}
				at[name] = r
				list = append(list, r)
			}
			if f.Seq > r.seq {
				r.session, r.turn, r.seq = s, f.Turn, f.Seq
			}
			r.in++
			r.kept = r.kept || s.Place.Folder == ""
			if isOutside(name) {
				weight *= outside
			}
			r.score += float64(weight * logOf(f.Reads+2*f.Writes))
		}
	}
	folders := map[string]bool{} // which a tool listed or searched as if they were files
	for _, r := range list {
		for dir := path.Dir(r.path); len(dir) > 1 && !folders[dir]; dir = path.Dir(dir) {
			folders[dir] = true
		}
	}
	// A file outside that one session touched was its own, such as a plan or a trial.
	list = slices.DeleteFunc(list, func(r *ranked) bool {
		return folders[r.path] || r.in < 2 && !r.kept && isOutside(r.path)
	})
	out := make([]ranked, len(list))
	for i, r := range list {
		terms := map[string]bool{}
		for _, t := range project.QueryTerms(r.path) {
			terms[t] = true
		}
		r.score *= 1 + float64(wordWeight*overlap(b.query, terms))
		out[i] = *r
	}
	slices.SortStableFunc(out, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.seq, a.seq), cmp.Compare(a.path, b.path))
	})
	return out
}
