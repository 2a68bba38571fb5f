package projection

import "time"

// sayEvery is how often the same error is logged.
const sayEvery = time.Minute

// trouble is the error that a projector logged last. It keeps the log short: a projector
// retries a store that is down for a day thousands of times, always with the same error.
type trouble struct {
	text string
	at   time.Time
}

// isNews reports whether to log an error: it is another one, or a minute has passed.
func (t *trouble) isNews(err error) bool {
	if err.Error() == t.text && time.Since(t.at) < sayEvery {
		return false
	}
	t.text, t.at = err.Error(), time.Now()
	return true
}
