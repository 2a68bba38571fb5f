package summary

// Mark is where a step or a turn of a conversation begins. Ranges of level 1 end right
// before a mark.
type Mark struct {
	Seq   uint64 // Sequence of the event that begins it.
	Turn  int    // The turn it belongs to.
	Chars int    // Characters of the conversation before it, see [Count].
}

// Plan is a summary that is due.
type Plan struct {
	Level     int
	First     uint64 // Range of sequences.
	Last      uint64
	FirstTurn int
	LastTurn  int
	Chars     int     // Characters in the range, of the conversation or of the texts of Children.
	Children  []Range // Oldest first; none for level 1.
	Due       uint64  // Sequence of the event that made it due.
}

// State is the recorded part of a conversation from the end of level 1 on.
type State struct {
	FirstSeq uint64 // First sequence of the conversation.
	Ledger   Ledger
	// Turn is the turn in which the uncovered part begins, and Chars is how many characters of the conversation are
	// before that part.
	Turn  int
	Chars int
	// Head is a mark at the conversation's end, as if a step began there.
	Head Mark
	// Marks are the marks after the end of level 1, oldest first. If More is true there are
	// further ones, which may be needed to find what is due.
	Marks []Mark
	More  bool
	// Open lists the summaries that no higher one covers, oldest first; Open[0] is level 1.
	Open [][]Range
}

// Due finds the summary that became due first, if any. It replays the recorded state step
// by step, so the answer does not depend on when it is called or how much came at once.
// Higher levels go first. Call it until nothing is due.
//
// With force, everything before the last turns is due, no matter how little, and only the
// present state counts.
//
// more is true if the answer needs more marks than the state has.
func Due(state State, settings Settings, force bool) (plan Plan, due, more bool) {
	for i := len(state.Open) - 1; i >= 0; i-- {
		if plan, due = dueAbove(i+2, state, settings); due {
			return plan, true, false
		}
	}
	return dueTurns(state, settings, force)
}

// dueAbove consolidates the open summaries of the level below, except the last.
func dueAbove(level int, state State, settings Settings) (Plan, bool) {
	open := state.Open[level-2]
	chars, threshold := 0, settings.Threshold(level)
	for i := 2; i < len(open); i++ { // at least two, so that each level has fewer
		if i == 2 {
			chars = counted(open[0].Chars)
		}
		if chars += counted(open[i-1].Chars); chars >= threshold {
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

// dueTurns tries each mark as the conversation's end and looks for the last mark at which a
// range may end.
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
	cut := 0 // a range may end before any of marks[:cut]
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

// firstOfTurns remembers where the last few turns begin.
type firstOfTurns struct {
	marks [keepTurns]Mark
	n     int
}

// add adds the next mark.
func (f *firstOfTurns) add(m Mark) {
	if f.n > 0 && f.marks[(f.n-1)%keepTurns].Turn == m.Turn {
		return
	}
	f.marks[f.n%keepTurns] = m
	f.n++
}

// before returns the number of characters before a turn, which must be one of the newest.
func (f *firstOfTurns) before(turn int) (chars int) {
	for i := f.n - 1; i >= max(0, f.n-keepTurns) && f.marks[i%keepTurns].Turn >= turn; i-- {
		chars = f.marks[i%keepTurns].Chars
	}
	return chars
}
