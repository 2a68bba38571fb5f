package projection

import "time"

// sayEvery is how often the same trouble is logged.
const sayEvery = time.Minute

// trouble is what a projector has logged last. A store that is down for a day is tried
// thousands of times, always with the same error.
type trouble struct {
	text string
	at   time.Time
}

// isNews tells whether an error is worth a line: it is another one, or a minute has passed.
func (t *trouble) isNews(err error) bool {
	if err.Error() == t.text && time.Since(t.at) < sayEvery {
		return false
	}
	t.text, t.at = err.Error(), time.Now()
	return true
}
