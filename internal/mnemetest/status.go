package mnemetest

// Status is what tests of running programs read of the API's status. They don't take its own type, with which they would
// link the API and all stores.
type Status struct {
	Stream struct {
		Head, Messages uint64
		Error          string
	}
	Projections []struct {
		Name, State, Error       string
		Lag, Applied, Duplicates uint64
		Failed                   int
	}
}
