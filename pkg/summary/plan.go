package summary

// Mark is where a step or a turn of a conversation begins. Ranges of level 1 end before
// one.
type Mark struct {
	Seq   uint64 // Of the event that begins it.
	Turn  int    // That it belongs to.
	Chars int    // Of the conversation before it, as [Count] counts them.
}

// Plan is a summary that is due.
type Plan struct {
	Level     int
	First     uint64 // The range of sequences.
	Last      uint64
	FirstTurn int
	LastTurn  int
	Chars     int     // In the range: of the conversation, or of the texts of Children.
	Children  []Range // Oldest first; none for level 1.
	Due       uint64  // The sequence of the event that made it due.
}

// State is what is recorded of a conversation, from where level 1 ends on.
type State struct {
	FirstSeq uint64 // Of the conversation.
	Ledger   Ledger
	// Turn is the turn at the beginning of what no summary covers, Chars are those of
	// the conversation before it.
	Turn  int
	Chars int
	// Head is the conversation's end, as if a step began there.
	Head Mark
	// Marks are those after the end of level 1, oldest first. They may end early: then
	// More is true, and what is due may show with more of them.
	Marks []Mark
	More  bool
	// Open are the summaries that no higher one covers, by level: Open[0] is level 1,
	// oldest first.
	Open [][]Range
}

// Due finds the summary that was due first, if any is. It looks at the recorded state
// as it was at each step: whenever it is asked, and however much came at once, the answer
// is the same. A higher level goes first; when nothing is due any more, recursion has
// ended.
//
// With force, what is due is whatever is not in the last turns, however little it is,
// and Due looks at the present only.
//
// It returns more if the answer needs more marks than the state has.
func Due(state State, settings Settings, force bool) (plan Plan, due, more bool) {
	for i := len(state.Open) - 1; i >= 0; i-- {
		if plan, due = dueAbove(i+2, state, settings); due {
			return plan, true, false
		}
	}
	return dueTurns(state, settings, force)
}

// dueAbove consolidates the summaries of the level below, all but the last.
func dueAbove(level int, state State, settings Settings) (Plan, bool) {
	open := state.Open[level-2]
	chars, threshold := 0, settings.Threshold(level)
	for i := 2; i < len(open); i++ { // two at least: so there are fewer on each level
		if i == 2 {
			chars = open[0].Chars
		}
		if chars += open[i-1].Chars; chars >= threshold {
			children := open[:i:i]
			return Plan{
				Level: level, First: state.Ledger.Next(level, state.FirstSeq), Last: children[i-1].Last,
				FirstTurn: children[0].FirstTurn, LastTurn: children[i-1].LastTurn,
				Chars: chars, Children: children, Due: open[i].Last,
			}, true
		}
	}
	return Plan{}, false
}

// dueTurns looks at each mark in turn, as if the conversation ended there, for the last
// mark before which a range may end.
func dueTurns(state State, settings Settings, force bool) (plan Plan, due, more bool) {
	marks, first := state.Marks, state.Ledger.Next(1, state.FirstSeq)
	if len(marks) > 0 && (marks[0].Seq <= first || state.Turn == 0 && marks[0].Chars == state.Chars) { // a conversation's first turn
		state.Turn, marks = marks[0].Turn, marks[1:]
	}
	if force && !state.More {
		marks = append(marks[:len(marks):len(marks)], state.Head)
	}
	begun := firstOfTurns{}
	begun.add(Mark{Turn: state.Turn, Chars: state.Chars})
	cut := 0 // marks[:cut] are such that a range may end before the last of them
	for now, mark := range marks {
		begun.add(mark)
		keep := min(settings.Raw(), mark.Chars-begun.before(mark.Turn-keepTurns+1))
		for cut <= now && mark.Chars-marks[cut].Chars >= keep {
			cut++
		}
		if cut == 0 || force && now < len(marks)-1 {
			continue
		}
		end := marks[cut-1]
		chars := end.Chars - state.Chars
		enough := chars >= settings.Threshold(1) || settings.MaxTurns > 0 && end.Turn-state.Turn >= settings.MaxTurns || force
		if !enough || chars == 0 {
			continue
		}
		last := state.Turn
		for _, m := range marks[:cut-1] {
			last = m.Turn
		}
		return Plan{Level: 1, First: first, Last: end.Seq - 1, FirstTurn: state.Turn, LastTurn: last, Chars: chars, Due: mark.Seq}, true, false
	}
	return Plan{}, false, state.More
}

// firstOfTurns knows where the last few turns begin.
type firstOfTurns struct {
	marks [keepTurns]Mark
	n     int
}

// add takes the next mark.
func (f *firstOfTurns) add(m Mark) {
	if f.n > 0 && f.marks[(f.n-1)%keepTurns].Turn == m.Turn {
		return
	}
	f.marks[f.n%keepTurns] = m
	f.n++
}

// before is how many characters there are before a turn, which is the newest known or
// one of those before it.
func (f *firstOfTurns) before(turn int) (chars int) {
	for i := f.n - 1; i >= max(0, f.n-keepTurns) && f.marks[i%keepTurns].Turn >= turn; i-- {
		chars = f.marks[i%keepTurns].Chars
	}
	return chars
}
