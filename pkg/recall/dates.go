package recall

import (
	"strconv"
	"strings"
	"time"
)

// Date is a calendar day. A Month of 0 means no date. In a date that a query names, a Year
// or Day of 0 means that the query leaves it open.
type Date struct {
	Year, Month, Day int16
}

// dateOf returns the date of a time in its own zone, or none for the zero time and for
// years that do not fit four digits.
func dateOf(t time.Time) Date {
	year, month, day := t.Date()
	if t.IsZero() || year < 0 || year > 9999 {
		return Date{}
	}
	return Date{int16(year), int16(month), int16(day)}
}

// Matches reports whether the date is one that the query named.
func (d Date) Matches(said Date) bool {
	return d.Month != 0 && d.Month == said.Month && (said.Day == 0 || said.Day == d.Day) && (said.Year == 0 || said.Year == d.Year)
}

var months = map[string]int16{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6,
	"july": 7, "august": 8, "september": 9, "october": 10, "november": 11, "december": 12,
}

// datesIn returns the dates that an English text names: 8 May 2023, 8th of May, May 8, May
// 2023, May, 2023-05-08. "May" and "March" alone are dates only after a word such as in or
// since.
func datesIn(text string) []Date {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !isWordRune(r) && r != '-' })
	var dates []Date
	for i, word := range words {
		if t, err := time.Parse(time.DateOnly, word); err == nil {
			dates = append(dates, dateOf(t))
			continue
		}
		month, ok := months[word]
		if !ok {
			continue
		}
		at := func(j int) string {
			if j < 0 || j >= len(words) {
				return ""
			}
			return words[j]
		}
		d, next := Date{Month: month}, i+1
		before := i - 1
		if at(before) == "of" {
			before--
		}
		if d.Day = dayOf(at(before)); d.Day == 0 {
			if d.Day = dayOf(at(next)); d.Day != 0 {
				next++
			}
		}
		d.Year = yearOf(at(next))
		if d.Day == 0 && d.Year == 0 && (word == "may" || word == "march") && !beforeMonth[at(i-1)] {
			continue
		}
		dates = append(dates, d)
	}
	return dates
}

// beforeMonth lists words after which "may" or "march" is a month.
var beforeMonth = map[string]bool{
	"in": true, "of": true, "during": true, "since": true, "until": true, "by": true,
	"last": true, "this": true, "early": true, "mid": true, "late": true,
}

// dayOf returns the day of the month that a word names, such as 8 or 8th, else 0.
func dayOf(word string) int16 {
	for _, ending := range []string{"st", "nd", "rd", "th"} {
		word = strings.TrimSuffix(word, ending)
	}
	if n, err := strconv.ParseUint(word, 10, 8); err == nil && len(word) <= 2 && n <= 31 {
		return int16(n)
	}
	return 0
}

// yearOf returns the year that a word names, else 0.
func yearOf(word string) int16 {
	if n, err := strconv.ParseUint(word, 10, 15); err == nil && len(word) == 4 && n >= 1000 {
		return int16(n)
	}
	return 0
}
