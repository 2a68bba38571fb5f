package projection

import "time"

// FinishWithin sets how long the current batch may take when a partition is given back.
func (l *Leases) FinishWithin(d time.Duration) { l.finish = d }
