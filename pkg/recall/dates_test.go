package recall

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestDates(t *testing.T) {
	for text, want := range map[string][]Date{
		"What did she say on 8 May, 2023?":    {{2023, 5, 8}},
		"the 8th of May":                      {{0, 5, 8}},
		"May 8th":                             {{0, 5, 8}},
		"May 8, 2023":                         {{2023, 5, 8}},
		"May 2023":                            {{2023, 5, 0}},
		"in May":                              {{0, 5, 0}},
		"May I ask":                           nil,
		"they may go":                         nil,
		"a long march":                        nil,
		"in march":                            {{0, 3, 0}},
		"June":                                {{0, 6, 0}},
		"between 1 June and July 3":           {{0, 6, 1}, {0, 7, 3}},
		"as of 2023-05-08":                    {{2023, 5, 8}},
		"2023-13-08, 99 June, 2023":           {{2023, 6, 0}},
		"June 31st 2023":                      {{2023, 6, 31}},
		"in the summer of 2023, or yesterday": nil,
		"":                                    nil,
	} {
		t.Run(text, func(t *testing.T) { assert.Equal(t, want, datesIn(text)) })
	}
}

func TestDateIsTakenInItsOwnZone(t *testing.T) {
	at, err := time.Parse(time.RFC3339, "2023-05-08T23:30:00-07:00")
	assert.NoError(t, err)
	d := dateOf(at)
	assert.Equal(t, Date{2023, 5, 8}, d)
	assert.Zero(t, dateOf(time.Time{}))
	for said, want := range map[Date]bool{{2023, 5, 8}: true, {0, 5, 0}: true, {0, 5, 8}: true, {2022, 5, 8}: false, {0, 6, 8}: false, {0, 5, 9}: false, {}: false} {
		assert.Equal(t, want, d.Matches(said), said)
	}
	assert.False(t, Date{}.Matches(Date{}))
}
