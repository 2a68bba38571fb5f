package erasure

// OnStep sets a function that an eraser calls before each step.
func (e *Eraser) OnStep(step func(string)) { e.step = step }
